/*
 * /v1/templates/builds: builds from steps, their logs, and the archives that COPY takes files from.
 *
 * A build is acknowledged when it is stored; it goes on by itself. Its log is asked for by the
 * number of an entry, one page at a time or as a stream that ends with the build.
 */
#include "answer/json_body.h"
#include "answer/query.h"
#include "api/decode_build.h"
#include "api/stream.h"
#include "api/templates.h"
#include "http/sse.h"
#include "op/build.h"

#define LOG_LIMIT_DEFAULT 100
#define LOG_LIMIT_MAX     1000
#define BUILD_FILES_LIMIT (UINT64_C(2) << 30)

/* ---- create, get, cancel ---- */

static const struct answer_form build_changed_form = {.pace = ANSWER_WHOLE};

static struct op_build_ref api_builds_build_ref(const struct http_request *req)
{
	return (struct op_build_ref){.build = http_param(req, "build")};
}

static void api_builds_handle_build_create(struct http_request *req)
{
	struct error e = {0};
	struct build_new what = {0};
	struct answer *a = api_answer(req, &build_form);
	struct scratch *memory = &a->call.memory;
	struct build_spec *spec = scratch_alloc(memory, sizeof *spec);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body || decode_build(body, memory, &what, spec, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 202;
	a->op = op_build_create(&a->call, &what, spec);
	answer_run(a);
}

static void handle_build_get(struct http_request *req)
{
	struct answer *a = api_answer(req, &build_form);
	const struct op_build_ref ref = api_builds_build_ref(req);
	a->op = op_build_get(&a->call, &ref);
	answer_run(a);
}

static void handle_build_cancel(struct http_request *req)
{
	struct answer *a = api_answer(req, &build_changed_form);
	const struct op_build_ref ref = api_builds_build_ref(req);
	a->status = 204;
	a->op = op_build_cancel(&a->call, &ref);
	answer_run(a);
}

/* ---- the log ---- */

/* The `own` of both forms. */
struct build_log {
	struct json_writer w; /* of a page */
	enum stream_format format;
	uint64_t number; /* the next entry's */
};

static void log_put_entry(
	struct json_writer *w, uint64_t number, const struct build_log_entry *entry)
{
	json_begin_object(w);
	json_put_int(w, "number", (int64_t)number);
	json_encode(w, &build_log_model, entry, NULL);
	json_end_object(w);
}

static int log_page_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct build_log *log = a->own;
	struct json_writer *w = &log->w;
	(void)e;
	if (event->kind == OP_ROW) {
		log_put_entry(w, log->number++, event->log);
		return 0;
	}
	json_end_array(w);
	json_put_int(w, "nextOffset", (int64_t)log->number);
	json_put_string(w, "status", build_status_name(event->build->status));
	json_end_object(w);
	return 0;
}

static struct json_writer log_event_begin(struct answer *a, const char *type)
{
	struct json_writer w = {.out = &a->out};
	if (((struct build_log *)a->own)->format == STREAM_SSE)
		sse_begin(&a->out, type, NULL);
	json_begin_object(&w);
	json_put_string(&w, "type", type);
	return w;
}

static void log_event_end(struct answer *a, struct json_writer *w)
{
	json_end_object(w);
	if (((struct build_log *)a->own)->format == STREAM_SSE)
		sse_end(&a->out);
	else
		buf_append_char(&a->out, '\n');
}

static int log_stream_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct build_log *log = a->own;
	bool is_entry = event->kind == OP_ROW;
	struct json_writer w = log_event_begin(a, is_entry ? "log" : "end");
	(void)e;
	json_key(&w, is_entry ? "entry" : "build");
	if (is_entry)
		log_put_entry(&w, log->number++, event->log);
	else
		encode_build(&w, event->build);
	log_event_end(a, &w);
	return 0;
}

static void log_stream_head(struct answer *a)
{
	http_add_header(a->req, "Cache-Control", "no-store");
}

static const struct answer_form log_page_form = {.type = "application/json",
	.pace = ANSWER_WHOLE,
	.own_size = sizeof(struct build_log),
	.put = log_page_put};
static const struct answer_form log_stream_form = {.pace = ANSWER_LIVE,
	.own_size = sizeof(struct build_log),
	.put = log_stream_put,
	.head = log_stream_head};

static struct answer *log_answer(struct http_request *req, enum stream_format format)
{
	bool page = format == STREAM_NONE;
	struct answer *a = api_answer(req, page ? &log_page_form : &log_stream_form);
	struct build_log *log = a->own;
	log->format = format;
	if (page) {
		log->w.out = &a->out;
		json_begin_object(&log->w);
		json_key(&log->w, "entries");
		json_begin_array(&log->w);
	} else {
		a->type = stream_content_type(format);
	}
	if (format == STREAM_SSE)
		answer_keep_alive(a, SSE_KEEPALIVE, sizeof SSE_KEEPALIVE - 1, SSE_KEEPALIVE_MS);
	return a;
}

static void handle_build_log(struct http_request *req)
{
	struct error e;
	int64_t offset = 0, limit = LOG_LIMIT_DEFAULT;
	enum stream_format format = stream_format_of(http_header(req, "accept"));
	struct answer *a = log_answer(req, format);
	if (query_number(req, "offset", 0, INT64_MAX, &offset, &e) < 0 ||
		query_number(req, "limit", 0, LOG_LIMIT_MAX, &limit, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	((struct build_log *)a->own)->number = (uint64_t)offset;
	a->op = op_build_log(&a->call, &(struct op_build_log){.ref = api_builds_build_ref(req),
					       .from = (uint64_t)offset,
					       .limit = (size_t)limit,
					       .follow = format != STREAM_NONE});
	answer_run(a);
}

/* ---- archives for COPY ---- */

static struct answer *build_files_answer(struct http_request *req, struct op_build_files *ret)
{
	struct answer *a = api_answer(req, &build_changed_form);
	a->status = 204;
	*ret = (struct op_build_files){.hash = http_param(req, "hash"),
		.verify = true,
		.announced = http_content_length(req)};
	return a;
}

static void handle_build_files_find(struct http_request *req)
{
	struct op_build_files request;
	struct answer *a = build_files_answer(req, &request);
	a->op = op_build_files_find(&a->call, &request);
	answer_run(a);
}

static void handle_build_files_put(struct http_request *req)
{
	struct op_build_files request;
	struct answer *a = build_files_answer(req, &request);
	a->op = op_build_files_store(&a->call, &request);
	answer_run_with_body(a, &answer_body_file);
}

static const struct http_route build_routes[] = {
	{HTTP_POST, "/v1/templates/builds", api_builds_handle_build_create, BODY_LIMIT},
	{HTTP_GET, "/v1/templates/builds/{build}", handle_build_get, 0},
	{HTTP_DELETE, "/v1/templates/builds/{build}", handle_build_cancel, 0},
	{HTTP_GET, "/v1/templates/builds/{build}/log", handle_build_log, 0},
	{HTTP_GET, "/v1/templates/contexts/{hash}", handle_build_files_find, 0},
	{HTTP_PUT, "/v1/templates/contexts/{hash}", handle_build_files_put, BUILD_FILES_LIMIT,
		true},
};

const struct route_table build_table = ROUTE_TABLE(build_routes);
