/* What the files of this dialect share. */
#pragma once

#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/scratch.h"
#include "model/execution.h"
#include "model/sandbox.h"
#include "dialect/agentuity/agentuity.h"
#include "answer/answer.h"
#include "answer/query.h"
#include "json/json.h"

#define AGENTUITY_BODY_LIMIT (32u << 20)
#define AGENTUITY_ID_SIZE    (5 + ID_SIZE)
/* Where relative paths begin, and what $HOME is. */
#define AGENTUITY_HOME   "/home/agentuity"
#define AGENTUITY_REGION "local"

/* Older SDKs have a date in their paths. */
#define AGENTUITY_DATED "/2025-03-17"

/* The routes of each file; routes.c lists them all. */
extern const struct route_table agentuity_sandbox_table, agentuity_list_table,
	agentuity_lifecycle_table, agentuity_execution_table, agentuity_job_table,
	agentuity_file_table, agentuity_content_table, agentuity_archive_table,
	agentuity_checkpoint_table, agentuity_snapshot_table, agentuity_build_table,
	agentuity_finalize_table, agentuity_upload_table, agentuity_event_table,
	agentuity_runtime_table, agentuity_cli_table, agentuity_stream_table, agentuity_input_table;

static inline struct agentuity *agentuity_of(const struct http_request *req)
{
	return service_of(req)->own;
}

/* ---- ids ---- */

/* Behind the prefix, such as "sbx_". */
void agentuity_put_id(struct json_writer *w, const char *key, const char *prefix, const char *id);
/* With the prefix or without; false when it is no id at all. */
bool agentuity_parse_id(const char *text, const char *prefix, char id[ID_SIZE]);
/* The same as a part of the text; NULL when it is no id at all. */
const char *agentuity_bare_id(const char *text, const char *prefix);

/* ---- answers ---- */

/* {"success":true,"data": …}; between the two calls comes the value of data. */
void agentuity_begin_data(struct json_writer *w);
/* Takes the content. */
void agentuity_respond_data(struct http_request *req, int status, struct json_writer *w);
/* For answer_form.put: {"success":true}, when it is done. */
int agentuity_put_success(struct answer *a, const struct op_event *event, struct error *e);
/*
 * {"success":false,"message","code"}. What the SDK has an error class for, it finds by its code
 * behind a status 200; everything else is an HTTP error.
 */
void agentuity_put_failure(
	struct http_request *req, struct buf *out, const char *code, const char *message);

/*
 * An answer whose operation is about the sandbox that {id} names, or about none if the path has no
 * {id}. If the form's `fail` is agentuity_fail or agentuity_fail_404, one that is missing is told
 * as SANDBOX_TERMINATED if it has ended by itself, else as SANDBOX_NOT_FOUND.
 */
struct answer *agentuity_answer(struct http_request *req, const struct answer_form *form);
enum answer_failure agentuity_fail(struct answer *a, struct error *e, const struct op_event *event);
enum answer_failure agentuity_fail_404(
	struct answer *a, struct error *e, const struct op_event *event);

/* {"success":true} when it is done. */
extern const struct answer_form agentuity_success_form;

/* ---- query ---- */

/* One of the words, by its index; the first when absent. A NULL ends the list. */
int agentuity_query_word(const struct http_request *req, const char *name, const char *const *words,
	int *ret, struct error *e);
/* ?wait=5m or ?waitMs=300000, at most five minutes; 0 when absent. */
int agentuity_query_wait(const struct http_request *req, int64_t *ms, struct error *e);

/* ---- addresses ---- */

/* "http://host/agentuity", as the client has it. */
void agentuity_append_base(struct buf *out, const struct http_request *req);

/* Addresses that open the streams of one execution to whoever has them: stdoutStreamUrl and
 * stderrStreamUrl, but for those that are ignored; NULL: none is. */
void agentuity_put_stream_urls(struct json_writer *w, const struct http_request *req,
	const char *execution, const bool ignores[2]);
