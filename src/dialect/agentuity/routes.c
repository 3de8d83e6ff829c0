/* The list of tables, who may use them, and what handlers share. */
#include "dialect/agentuity/routes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/own_url.h"
#include "base/units.h"
#include "dialect/agentuity/aliases.h"
#include "dialect/agentuity/input.h"

#define WAIT_MAX_MS (5 * 60 * 1000)

static const struct route_table *const sandbox_tables[] = {
	&agentuity_sandbox_table,
	&agentuity_list_table,
	&agentuity_lifecycle_table,
	&agentuity_execution_table,
	&agentuity_job_table,
	&agentuity_checkpoint_table,
	&agentuity_snapshot_table,
	&agentuity_build_table,
	&agentuity_finalize_table,
	&agentuity_event_table,
	&agentuity_runtime_table,
	NULL,
};

static const struct route_table *const file_tables[] = {
	&agentuity_file_table,
	&agentuity_content_table,
	&agentuity_archive_table,
	NULL,
};

static const struct route_table *const other_tables[] = {
	&agentuity_cli_table,
	&agentuity_input_table,
	NULL,
};

/* A stream's address is the right to read it, and that of an upload to send it. */
static const struct route_table *const open_tables[] = {
	&agentuity_stream_table,
	&agentuity_upload_table,
	NULL,
};

static const char *const sandbox_prefixes[] = {
	AGENTUITY_PREFIX "/sandbox", AGENTUITY_PREFIX "/sandbox" AGENTUITY_DATED, NULL};
static const char *const file_prefixes[] = {
	AGENTUITY_PREFIX "/fs", AGENTUITY_PREFIX "/fs" AGENTUITY_DATED, NULL};
static const char *const other_prefixes[] = {AGENTUITY_PREFIX, NULL};

static void agentuity_encode_error(
	struct http_request *req, const struct error *e, struct http_error_answer *answer)
{
	struct json_writer w = {.out = &answer->body};
	/* A 503 is tried again for half a minute, which is for a server that starts. */
	if (answer->status == 503)
		answer->status = e->code == ERROR_UNAVAILABLE ? 409 : 429;
	http_add_header(req, "x-session-id", http_request_id(req));
	json_begin_object(&w);
	json_put_bool(&w, "success", false);
	json_put_string(&w, "message", e->message);
	json_put_string(&w, "code", error_name(e->code));
	json_end_object(&w);
}

static const struct dialect_area areas[] = {
	{.prefixes = sandbox_prefixes,
		.tables = sandbox_tables,
		.admit = dialect_admit_key,
		.encode_error = agentuity_encode_error},
	{.prefixes = file_prefixes,
		.tables = file_tables,
		.admit = dialect_admit_key,
		.encode_error = agentuity_encode_error},
	{.prefixes = other_prefixes,
		.tables = other_tables,
		.admit = dialect_admit_key,
		.encode_error = agentuity_encode_error},
	{.prefixes = other_prefixes, .tables = open_tables, .encode_error = agentuity_encode_error},
};

static void agentuity_start(void *own, struct server *server)
{
	struct agentuity *d = own;
	d->server = server;
}

static void agentuity_stop(void *own)
{
	input_stop(own);
}

const struct dialect agentuity_dialect = {.name = "agentuity",
	.areas = areas,
	.area_count = ARRAY_LEN(areas),
	.aliases = agentuity_aliases,
	.own_size = sizeof(struct agentuity),
	.start = agentuity_start,
	.stop = agentuity_stop};

/* ---- addresses ---- */

void agentuity_append_base(struct buf *out, const struct http_request *req)
{
	own_url_append(out, req);
	buf_append_str(out, AGENTUITY_PREFIX);
}

/* ---- ids ---- */

void agentuity_put_id(struct json_writer *w, const char *key, const char *prefix, const char *id)
{
	char text[AGENTUITY_ID_SIZE + 8];
	snprintf(text, sizeof text, "%s%s", prefix, id);
	json_put_string(w, key, text);
}

bool agentuity_parse_id(const char *text, const char *prefix, char id[ID_SIZE])
{
	size_t len = strlen(prefix);
	if (strncmp(text, prefix, len) == 0)
		text += len;
	if (!id_is_valid(text))
		return false;
	memcpy(id, text, ID_SIZE);
	return true;
}

const char *agentuity_bare_id(const char *text, const char *prefix)
{
	char id[ID_SIZE];
	if (!agentuity_parse_id(text, prefix, id))
		return NULL;
	return strncmp(text, prefix, strlen(prefix)) == 0 ? text + strlen(prefix) : text;
}

/* ---- answers ---- */

void agentuity_begin_data(struct json_writer *w)
{
	json_begin_object(w);
	json_put_bool(w, "success", true);
	json_key(w, "data");
}

void agentuity_respond_data(struct http_request *req, int status, struct json_writer *w)
{
	json_end_object(w);
	http_respond(req, status, "application/json", w->out);
}

int agentuity_put_success(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind != OP_DONE)
		return 0;
	json_begin_object(&w);
	json_put_bool(&w, "success", true);
	json_end_object(&w);
	return 0;
}

void agentuity_put_failure(
	struct http_request *req, struct buf *out, const char *code, const char *message)
{
	struct json_writer w = {.out = out};
	json_begin_object(&w);
	json_put_bool(&w, "success", false);
	json_put_string(&w, "message", message);
	json_put_string(&w, "code", code);
	json_end_object(&w);
	http_add_header(req, "x-session-id", http_request_id(req));
}

/* ---- operations ---- */

struct answer *agentuity_answer(struct http_request *req, const struct answer_form *form)
{
	struct answer *a = answer_new(req, form);
	const char *id = http_param(req, "id");
	answer_name_sandbox(a, id && strncmp(id, "sbx_", 4) == 0 ? id + 4 : id);
	a->call.asks_for_ended = id != NULL;
	return a;
}

static enum answer_failure agentuity_fail_with(
	struct answer *a, const struct op_event *event, int status_if_missing)
{
	bool ended = event && event->reason == OP_SANDBOX_ENDED;
	if (!ended && !(event && event->reason == OP_NO_SANDBOX))
		return ANSWER_ERROR;
	a->status = ended && status_if_missing != 200 ? 410 : status_if_missing;
	a->type = "application/json";
	agentuity_put_failure(a->req, &a->out, ended ? "SANDBOX_TERMINATED" : "SANDBOX_NOT_FOUND",
		ended ? "the sandbox has terminated" : "there is no such sandbox");
	return ANSWER_PUT;
}

enum answer_failure agentuity_fail(struct answer *a, struct error *e, const struct op_event *event)
{
	(void)e;
	return agentuity_fail_with(a, event, 200);
}

enum answer_failure agentuity_fail_404(
	struct answer *a, struct error *e, const struct op_event *event)
{
	(void)e;
	return agentuity_fail_with(a, event, 404);
}

const struct answer_form agentuity_success_form = {.type = "application/json",
	.pace = ANSWER_WHOLE,
	.put = agentuity_put_success,
	.fail = agentuity_fail};

/* ---- query ---- */

int agentuity_query_word(const struct http_request *req, const char *name, const char *const *words,
	int *ret, struct error *e)
{
	const char *text = http_query(req, name);
	*ret = 0;
	if (!text || !text[0])
		return 0;
	for (int i = 0; words[i]; i++) {
		*ret = i;
		if (strcmp(words[i], text) == 0)
			return 0;
	}
	return error_set_field(
		e, ERROR_INVALID_FIELD, name, "\"%s\" cannot be \"%.64s\"", name, text);
}

int agentuity_query_wait(const struct http_request *req, int64_t *ms, struct error *e)
{
	const char *text = http_query(req, "wait");
	*ms = 0;
	if (text && (units_parse_duration_ms(text, ms) < 0 || *ms < 0))
		return error_set_field(e, ERROR_INVALID_FIELD, "wait",
			"\"wait\" must be a duration such as \"60s\"");
	if (!text && query_optional_number(req, "waitMs", 0, INT32_MAX, ms, e) < 0)
		return -1;
	if (*ms > WAIT_MAX_MS)
		*ms = WAIT_MAX_MS;
	return 0;
}
