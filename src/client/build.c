/* Builds and imports of templates, their logs, and the files they take. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/failure.h"
#include "json/json.h"

#define ARCHIVE_TYPE "application/x-tar"

static const struct answer_field build_fields[] = {
	{"id", ANSWER_STRING, offsetof(struct bunker_build, id)},
	{"template", ANSWER_STRING, offsetof(struct bunker_build, template_name)},
	{"status", ANSWER_STRING, offsetof(struct bunker_build, status)},
	{"reason", ANSWER_STRING, offsetof(struct bunker_build, reason)},
	{"failedStep", ANSWER_STRING, offsetof(struct bunker_build, failed_step)},
	{"digest", ANSWER_STRING, offsetof(struct bunker_build, digest)},
	{"size", ANSWER_INTEGER, offsetof(struct bunker_build, size)},
};

static const struct answer_field entry_fields[] = {
	{"time", ANSWER_STRING, offsetof(struct bunker_log_entry, time)},
	{"level", ANSWER_STRING, offsetof(struct bunker_log_entry, level)},
	{"step", ANSWER_STRING, offsetof(struct bunker_log_entry, step)},
	{"message", ANSWER_STRING, offsetof(struct bunker_log_entry, message)},
};

/* Takes the tree. */
static void take_build(cJSON *tree, struct bunker_build *ret)
{
	client_answer_decode(tree, build_fields, ARRAY_LEN(build_fields), ret);
	ret->json = client_answer_to_json(tree);
}

void bunker_build_finish(struct bunker_build *build)
{
	cJSON_Delete(client_answer_from_json(build->json));
	*build = (struct bunker_build){0};
}

/* ---- imports ---- */

static void append_query(struct buf *target, const char *name, const char *value)
{
	if (!value)
		return;
	buf_append_char(target, '&');
	buf_append_str(target, name);
	buf_append_char(target, '=');
	client_call_append_escaped(target, value);
}

int bunker_template_import(struct bunker *b, const struct bunker_import_options *options,
	struct bunker_build *ret, struct bunker_error *e)
{
	autobuf target = {0};
	cJSON *tree;
	buf_append_str(&target, "/v1/templates/imports?name=");
	client_call_append_escaped(&target, options->name);
	append_query(&target, "description", options->description);
	append_query(&target, "format", options->format);
	append_query(&target, "ref", options->ref);
	append_query(&target, "digest", options->digest);
	append_query(&target, "origin", options->origin);
	int r = client_call_upload(
		b, "POST", &target, ARCHIVE_TYPE, options->read, options->arg, &tree, e);
	if (r == 0)
		take_build(tree, ret);
	return r;
}

/* ---- builds ---- */

static void client_build_put_list(struct json_writer *w, const char *key, const char *const *list)
{
	if (!list)
		return;
	json_key(w, key);
	json_begin_array(w);
	for (; *list; list++)
		json_string(w, *list);
	json_end_array(w);
}

static void put_env(struct json_writer *w, const char *const *env)
{
	if (!env || !*env)
		return;
	json_key(w, "env");
	json_begin_object(w);
	for (; *env; env++) {
		autobuf name = {0};
		buf_append(&name, *env, strcspn(*env, "="));
		buf_append_char(&name, '\0');
		if (!name.failed)
			json_put_string(w, name.data, strchr(*env, '=') + 1);
	}
	json_end_object(w);
}

static void client_build_put_text(struct json_writer *w, const char *key, const char *text)
{
	if (text)
		json_put_string(w, key, text);
}

static void put_copy(struct json_writer *w, const struct bunker_build_step *step)
{
	char mode[8];
	json_key(w, "copy");
	json_begin_object(w);
	client_build_put_text(w, "context", step->context);
	client_build_put_text(w, "source", step->source);
	client_build_put_text(w, "path", step->path);
	client_build_put_text(w, "owner", step->owner);
	snprintf(mode, sizeof mode, "%04o", (unsigned)step->mode & 07777);
	if (step->mode >= 0)
		json_put_string(w, "mode", mode);
	json_end_object(w);
}

static void put_step(struct json_writer *w, const struct bunker_build_step *step)
{
	json_begin_object(w);
	if (step->kind == BUNKER_STEP_RUN) {
		client_build_put_list(w, "run", step->argv);
		client_build_put_text(w, "user", step->user);
	}
	if (step->kind == BUNKER_STEP_RUN || step->kind == BUNKER_STEP_ENV)
		put_env(w, step->env);
	if (step->kind == BUNKER_STEP_COPY)
		put_copy(w, step);
	if (step->kind == BUNKER_STEP_WORKDIR)
		client_build_put_text(w, "workdir", step->path);
	if (step->kind == BUNKER_STEP_USER)
		client_build_put_text(w, "setUser", step->user);
	json_end_object(w);
}

static void put_network(struct json_writer *w, const struct bunker_build_options *options)
{
	bool allows = options->network_allow && options->network_allow[0];
	if (!options->network && !allows && !options->network_deny)
		return;
	json_key(w, "network");
	json_begin_object(w);
	client_build_put_text(w, "mode", options->network ? options->network : "allow");
	client_build_put_list(w, "allow", options->network_allow);
	client_build_put_list(w, "deny", options->network_deny);
	json_end_object(w);
}

int bunker_build_create(struct bunker *b, const struct bunker_build_options *options,
	struct bunker_build *ret, struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	struct json_writer w = {.out = &body};
	cJSON *tree;
	buf_append_str(&target, "/v1/templates/builds");
	json_begin_object(&w);
	client_build_put_text(&w, "name", options->name);
	client_build_put_text(&w, "description", options->description);
	client_build_put_text(&w, "from", options->from);
	json_key(&w, "steps");
	json_begin_array(&w);
	for (size_t i = 0; i < options->step_count; i++)
		put_step(&w, &options->steps[i]);
	json_end_array(&w);
	client_build_put_list(&w, "start", options->start);
	client_build_put_list(&w, "entrypoint", options->entrypoint);
	client_build_put_list(&w, "command", options->command);
	client_build_put_list(&w, "ports", options->ports);
	client_build_put_text(&w, "ready", options->ready);
	client_build_put_text(&w, "timeout", options->timeout);
	put_network(&w, options);
	if (options->no_cache)
		json_put_bool(&w, "noCache", true);
	json_end_object(&w);
	int r = client_call_json(b, "POST", &target, &body, &tree, e);
	if (r == 0)
		take_build(tree, ret);
	return r;
}

static void client_build_begin_target(struct buf *target, const char *id, const char *rest)
{
	buf_append_str(target, "/v1/templates/builds/");
	client_call_append_escaped(target, id);
	buf_append_str(target, rest);
}

int bunker_build_cancel(struct bunker *b, const char *id, struct bunker_error *e)
{
	autobuf target = {0};
	autojson *tree = NULL;
	client_build_begin_target(&target, id, "");
	return client_call_json(b, "DELETE", &target, NULL, &tree, e);
}

/* ---- the log ---- */

struct following {
	bunker_log_fn *log;
	void *arg;
	cJSON *build; /* the last event's */
};

static int client_build_take_line(void *arg, const char *line, size_t len, struct bunker_error *e)
{
	struct following *f = arg;
	autojson *tree = NULL;
	struct error why;
	struct bunker_log_entry entry;
	if (json_parse(line, len, &tree, &why) < 0)
		return client_fail(e, BUNKER_INVALID_RESPONSE,
			"the server's answer is not usable: %s", why.message);
	cJSON *build = cJSON_DetachItemFromObjectCaseSensitive(tree, "build");
	if (build) {
		cJSON_Delete(f->build);
		f->build = build;
		return 0;
	}
	client_answer_decode(cJSON_GetObjectItemCaseSensitive(tree, "entry"), entry_fields,
		ARRAY_LEN(entry_fields), &entry);
	if (f->log && f->log(f->arg, &entry) != 0)
		return client_fail(e, BUNKER_STOPPED, "stopped by the caller");
	return 0;
}

int bunker_build_follow(struct bunker *b, const char *id, bunker_log_fn *log, void *arg,
	struct bunker_build *ret, struct bunker_error *e)
{
	autobuf target = {0};
	struct following f = {.log = log, .arg = arg};
	struct lines lines = {.take = client_build_take_line, .arg = &f};
	client_build_begin_target(&target, id, "/log");
	int r = client_call_lines(b, "GET", &target, NULL, &lines, e);
	client_lines_finish(&lines);
	if (r == 0 && !f.build)
		r = client_fail(e, BUNKER_CONNECTION_LOST, "the log ended before the build did");
	if (r < 0)
		cJSON_Delete(f.build);
	else
		take_build(f.build, ret);
	return r;
}

/* ---- files ---- */

static void context_target(struct buf *target, const char *hash)
{
	buf_append_str(target, "/v1/templates/contexts/");
	client_call_append_escaped(target, hash);
}

int bunker_context_exists(struct bunker *b, const char *hash, bool *ret, struct bunker_error *e)
{
	autobuf target = {0};
	autojson *tree = NULL;
	struct bunker_error why;
	context_target(&target, hash);
	int r = client_call_json(b, "GET", &target, NULL, &tree, &why);
	*ret = r == 0;
	if (r == 0 || why.http_status == 404)
		return 0;
	if (e)
		*e = why;
	return r;
}

int bunker_context_put(
	struct bunker *b, const char *hash, bunker_read_fn *read, void *arg, struct bunker_error *e)
{
	autobuf target = {0};
	autojson *tree = NULL;
	context_target(&target, hash);
	return client_call_upload(b, "PUT", &target, ARCHIVE_TYPE, read, arg, &tree, e);
}
