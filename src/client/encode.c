#include "client/encode.h"

#include <stdio.h>
#include <string.h>

static void put_optional_string(struct json_writer *w, const char *key, const char *value)
{
	if (value)
		json_put_string(w, key, value);
}

static void put_optional_int(struct json_writer *w, const char *key, int64_t value)
{
	if (value)
		json_put_int(w, key, value);
}

/* The last pair of a name wins, as in an environment: JSON with a key twice is refused. */
static bool is_named_again(const char *name, const struct bunker_pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(pairs[i].name, name) == 0)
			return true;
	return false;
}

static void put_pairs_except(struct json_writer *w, const struct bunker_pair *pairs, size_t count,
	const struct bunker_pair *later, size_t later_count)
{
	for (size_t i = 0; i < count; i++)
		if (!is_named_again(pairs[i].name, pairs + i + 1, count - i - 1) &&
			!is_named_again(pairs[i].name, later, later_count))
			json_put_string(w, pairs[i].name, pairs[i].value);
}

static void put_pairs(
	struct json_writer *w, const char *key, const struct bunker_pair *pairs, size_t count)
{
	if (count == 0)
		return;
	json_key(w, key);
	json_begin_object(w);
	put_pairs_except(w, pairs, count, NULL, 0);
	json_end_object(w);
}

static void write_file(struct json_writer *w, const struct bunker_file *file)
{
	json_begin_object(w);
	json_put_string(w, "path", file->path);
	json_put_string(w, "encoding", "base64");
	json_key(w, "content");
	json_base64(w, file->data, file->size);
	if (file->mode) {
		char mode[8];
		snprintf(mode, sizeof mode, "%04o", file->mode & 07777u);
		json_put_string(w, "mode", mode);
	}
	json_end_object(w);
}

static void write_files(struct json_writer *w, const struct bunker_file *files, size_t count)
{
	for (size_t i = 0; i < count; i++)
		write_file(w, &files[i]);
}

static void put_files(struct json_writer *w, const struct bunker_file *files, size_t count)
{
	if (count == 0)
		return;
	json_key(w, "files");
	json_begin_array(w);
	write_files(w, files, count);
	json_end_array(w);
}

static void put_resources(struct json_writer *w, const struct bunker_create_options *o)
{
	if (!o->memory && !o->cpu && !o->pids && !o->open_files && !o->disk)
		return;
	json_key(w, "resources");
	json_begin_object(w);
	put_optional_string(w, "memory", o->memory);
	put_optional_string(w, "cpu", o->cpu);
	put_optional_int(w, "pids", o->pids);
	put_optional_int(w, "openFiles", o->open_files);
	put_optional_string(w, "disk", o->disk);
	json_end_object(w);
}

static void put_timeout(
	struct json_writer *w, const struct bunker_create_options *o, const char *execution)
{
	if (!o->idle_timeout && !execution && !o->lease && !o->paused_timeout)
		return;
	json_key(w, "timeout");
	json_begin_object(w);
	put_optional_string(w, "idle", o->idle_timeout);
	put_optional_string(w, "execution", execution);
	put_optional_string(w, "paused", o->paused_timeout);
	put_optional_string(w, "lease", o->lease);
	json_end_object(w);
}

/* What has the same name and form in a create and in a run. */
static void put_strings(
	struct json_writer *w, const char *key, const char *const *strings, size_t count)
{
	if (count == 0)
		return;
	json_key(w, key);
	json_begin_array(w);
	for (size_t i = 0; i < count; i++)
		json_string(w, strings[i]);
	json_end_array(w);
}

static void put_volumes(struct json_writer *w, const struct bunker_mount *volumes, size_t count)
{
	if (count == 0)
		return;
	json_key(w, "volumes");
	json_begin_array(w);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(w);
		json_put_string(w, "volume", volumes[i].volume);
		json_put_string(w, "path", volumes[i].path);
		if (volumes[i].read_only)
			json_put_bool(w, "readOnly", true);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_sandbox(struct json_writer *w, const struct bunker_create_options *o)
{
	put_optional_string(w, "template", o->template_name);
	put_optional_string(w, "snapshot", o->snapshot);
	put_volumes(w, o->volumes, o->volume_count);
	put_strings(w, "dependencies", o->dependencies, o->dependency_count);
	put_strings(w, "packages", o->packages, o->package_count);
	put_optional_string(w, "name", o->name);
	put_optional_string(w, "description", o->description);
	put_optional_string(w, "workdir", o->workdir);
	put_optional_string(w, "project", o->project);
	put_resources(w, o);
	put_pairs(w, "metadata", o->metadata, o->metadata_count);
}

static void put_command(struct json_writer *w, const struct bunker_exec_options *o)
{
	json_key(w, "command");
	if (o->shell) {
		json_string(w, o->shell);
		return;
	}
	json_begin_array(w);
	for (const char *const *arg = o->argv; arg && *arg; arg++)
		json_string(w, *arg);
	json_end_array(w);
}

static void put_execution(struct json_writer *w, const struct bunker_exec_options *o)
{
	put_command(w, o);
	put_optional_string(w, "cwd", o->cwd);
	if (o->input) {
		json_key(w, "stdin");
		json_base64(w, o->input, o->input_size);
		json_put_string(w, "stdinEncoding", "base64");
	}
}

void client_encode_create(struct json_writer *w, const struct bunker_create_options *o)
{
	json_begin_object(w);
	put_sandbox(w, o);
	put_optional_string(w, "user", o->user);
	put_timeout(w, o, o->execution_timeout);
	put_optional_string(w, "onIdle", o->on_idle);
	put_optional_string(w, "onLease", o->on_lease);
	if (o->auto_resume)
		json_put_bool(w, "autoResume", true);
	put_pairs(w, "env", o->env, o->env_count);
	put_files(w, o->files, o->file_count);
	json_end_object(w);
}

void client_encode_exec(struct json_writer *w, const struct bunker_exec_options *o)
{
	json_begin_object(w);
	put_execution(w, o);
	json_put_string(w, "encoding", "base64");
	put_optional_string(w, "user", o->user);
	put_optional_string(w, "timeout", o->timeout);
	put_pairs(w, "env", o->env, o->env_count);
	put_files(w, o->files, o->file_count);
	json_end_object(w);
}

static void put_terminal(struct json_writer *w, const struct bunker_process_options *p)
{
	if (!p->terminal)
		return;
	json_key(w, "pty");
	json_begin_object(w);
	put_optional_int(w, "rows", p->rows);
	put_optional_int(w, "columns", p->columns);
	json_end_object(w);
}

void client_encode_process(struct json_writer *w, const struct bunker_process_options *p)
{
	const struct bunker_exec_options *o = &p->command;
	json_begin_object(w);
	put_execution(w, o);
	put_optional_string(w, "user", o->user);
	put_optional_string(w, "timeout", o->timeout);
	put_optional_string(w, "name", p->name);
	put_pairs(w, "env", o->env, o->env_count);
	if (p->open_stdin)
		json_put_bool(w, "openStdin", true);
	put_terminal(w, p);
	json_end_object(w);
}

void client_encode_run(struct json_writer *w, const struct bunker_create_options *s,
	const struct bunker_exec_options *o)
{
	json_begin_object(w);
	put_sandbox(w, s);
	put_execution(w, o);
	json_put_string(w, "encoding", "base64");
	put_optional_string(w, "user", o->user ? o->user : s->user);
	put_timeout(w, s, o->timeout ? o->timeout : s->execution_timeout);
	json_key(w, "env");
	json_begin_object(w);
	put_pairs_except(w, s->env, s->env_count, o->env, o->env_count);
	put_pairs_except(w, o->env, o->env_count, NULL, 0);
	json_end_object(w);
	json_key(w, "files");
	json_begin_array(w);
	write_files(w, s->files, s->file_count);
	write_files(w, o->files, o->file_count);
	json_end_array(w);
	json_end_object(w);
}
