#include "client/encode.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "model/sandbox.h"

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

static void client_encode_write_file(struct json_writer *w, const struct bunker_file *file)
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

static void client_encode_write_files(
	struct json_writer *w, const struct bunker_file *files, size_t count)
{
	for (size_t i = 0; i < count; i++)
		client_encode_write_file(w, &files[i]);
}

static void client_encode_put_files(
	struct json_writer *w, const struct bunker_file *files, size_t count)
{
	if (count == 0)
		return;
	json_key(w, "files");
	json_begin_array(w);
	client_encode_write_files(w, files, count);
	json_end_array(w);
}

/* The members of the options that are settings; others are given by name. */
#define MEMBER(name, member)                                                                       \
	{                                                                                          \
		name, offsetof(struct bunker_create_options, member)                               \
	}

static const struct {
	const char *name;
	size_t offset; /* of an int64_t, a bool or a const char *, by the field's kind */
} members[] = {
	MEMBER("template", template_name),
	MEMBER("name", name),
	MEMBER("description", description),
	MEMBER("user", user),
	MEMBER("workdir", workdir),
	MEMBER("project", project),
	MEMBER("resources.memory", memory),
	MEMBER("resources.cpu", cpu),
	MEMBER("resources.disk", disk),
	MEMBER("resources.pids", pids),
	MEMBER("resources.openFiles", open_files),
	MEMBER("timeout.idle", idle_timeout),
	MEMBER("timeout.execution", execution_timeout),
	MEMBER("timeout.lease", lease),
	MEMBER("timeout.paused", paused_timeout),
	MEMBER("onIdle", on_idle),
	MEMBER("onLease", on_lease),
	MEMBER("autoResume", auto_resume),
};

/* A setting as text, which is borrowed from the options or printed to number; NULL: not given. */
static const char *setting_of(
	const struct bunker_create_options *o, const struct field *f, char number[24])
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		const char *at = (const char *)o + members[i].offset;
		if (strcmp(members[i].name, f->name) != 0)
			continue;
		int64_t value = f->kind == FIELD_INTEGER ? *(const int64_t *)(const void *)at
				: f->kind == FIELD_BOOL  ? *(const bool *)(const void *)at
							 : 0;
		snprintf(number, 24, "%lld", (long long)value);
		const char *text = f->kind == FIELD_INTEGER || f->kind == FIELD_BOOL
					   ? (value ? number : NULL)
					   : *(const char *const *)(const void *)at;
		if (text)
			return text;
	}
	for (size_t i = 0; i < o->setting_count; i++)
		if (strcmp(o->settings[i].name, f->name) == 0)
			return o->settings[i].value;
	return NULL;
}

/* Amounts go as they were written: the server knows their units. */
static void put_setting(struct json_writer *w, const struct field *f, const char *text)
{
	const char *dot = strchr(f->name, '.');
	json_key(w, dot ? dot + 1 : f->name);
	if (f->kind == FIELD_INTEGER)
		json_int(w, strtoll(text, NULL, 10));
	else if (f->kind == FIELD_BOOL)
		json_bool(w, strcmp(text, "0") != 0);
	else
		json_string(w, text);
}

/* Every value of this setting, and what stands between their commas. */
static void put_list(
	struct json_writer *w, const struct field *f, const struct bunker_create_options *o)
{
	json_key(w, strchr(f->name, '.') ? strchr(f->name, '.') + 1 : f->name);
	json_begin_array(w);
	/* Entries of the setting that was given last come first. */
	for (size_t i = o->setting_count; i-- > 0;) {
		if (strcmp(o->settings[i].name, f->name) != 0)
			continue;
		for (const char *at = o->settings[i].value; *at; at += strspn(at, ",")) {
			size_t len = strcspn(at, ",");
			autofree char *entry = mem_copy_text_n(at, len);
			if (len > 0)
				json_string(w, entry);
			at += len;
		}
	}
	json_end_array(w);
}

/* Returns whether a rule given before this one is for the same host. */
static bool host_was_given(
	const struct bunker_create_options *o, const char *name, size_t i, size_t len)
{
	for (size_t j = o->setting_count; j-- > i + 1;)
		if (strcmp(o->settings[j].name, name) == 0 &&
			strcspn(o->settings[j].value, " ") == len &&
			strncmp(o->settings[j].value, o->settings[i].value, len) == 0)
			return true;
	return false;
}

/* Those of one host together, where its first one stands. */
static void put_rules(
	struct json_writer *w, const struct field *f, const struct bunker_create_options *o)
{
	autobuf all = {0};
	for (size_t i = o->setting_count; i-- > 0;) {
		const char *first = o->settings[i].value;
		size_t len = strcspn(first, " ");
		if (strcmp(o->settings[i].name, f->name) != 0 || host_was_given(o, f->name, i, len))
			continue;
		for (size_t j = i + 1; j-- > 0;) {
			const char *text = o->settings[j].value;
			if (strcmp(o->settings[j].name, f->name) == 0 &&
				strcspn(text, " ") == len && strncmp(text, first, len) == 0)
				buf_append(&all, text, strlen(text) + 1);
		}
	}
	buf_require(&all);
	json_key(w, strchr(f->name, '.') ? strchr(f->name, '.') + 1 : f->name);
	json_headers(w, &(const struct strings){all.data, all.len});
}

/* Rows of one object stand together in the table. */
static void put_settings(struct json_writer *w, const struct bunker_create_options *o)
{
	char number[24];
	size_t open = 0;
	const char *group = "";
	for (size_t i = 0; i < sandbox_model.count; i++) {
		const struct field *f = &sandbox_model.fields[i];
		const char *text =
			f->flags & FIELD_CREATE && f->kind != FIELD_ENV && f->kind != FIELD_JSON
				? setting_of(o, f, number)
				: NULL;
		if (!text)
			continue;
		const char *dot = strchr(f->name, '.');
		size_t len = dot ? (size_t)(dot - f->name) : 0;
		if (open && (open != len || strncmp(group, f->name, open) != 0)) {
			json_end_object(w);
			open = 0;
		}
		if (len && !open) {
			json_key_n(w, f->name, len);
			json_begin_object(w);
			group = f->name;
			open = len;
		}
		if (f->kind == FIELD_LIST)
			put_list(w, f, o);
		else if (f->kind == FIELD_HEADERS)
			put_rules(w, f, o);
		else
			put_setting(w, f, text);
	}
	if (open)
		json_end_object(w);
}

/* Fields that a create and a run have in common. */
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

static void client_encode_put_volumes(
	struct json_writer *w, const struct bunker_mount *volumes, size_t count)
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
	put_optional_string(w, "snapshot", o->snapshot);
	client_encode_put_volumes(w, o->volumes, o->volume_count);
	put_strings(w, "dependencies", o->dependencies, o->dependency_count);
	put_strings(w, "packages", o->packages, o->package_count);
	put_settings(w, o);
	put_pairs(w, "metadata", o->metadata, o->metadata_count);
}

static void client_encode_put_command(struct json_writer *w, const struct bunker_exec_options *o)
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
	client_encode_put_command(w, o);
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
	put_pairs(w, "env", o->env, o->env_count);
	client_encode_put_files(w, o->files, o->file_count);
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
	client_encode_put_files(w, o->files, o->file_count);
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
	struct bunker_create_options merged = *s;
	if (o->user)
		merged.user = o->user;
	if (o->timeout)
		merged.execution_timeout = o->timeout;
	json_begin_object(w);
	put_sandbox(w, &merged);
	put_execution(w, o);
	json_put_string(w, "encoding", "base64");
	json_key(w, "env");
	json_begin_object(w);
	put_pairs_except(w, s->env, s->env_count, o->env, o->env_count);
	put_pairs_except(w, o->env, o->env_count, NULL, 0);
	json_end_object(w);
	json_key(w, "files");
	json_begin_array(w);
	client_encode_write_files(w, s->files, s->file_count);
	client_encode_write_files(w, o->files, o->file_count);
	json_end_array(w);
	json_end_object(w);
}
