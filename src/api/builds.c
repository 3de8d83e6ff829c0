/*
 * /v1/templates/builds: builds from steps, their logs, and the archives that COPY takes files from.
 *
 * A build is acknowledged when it is stored; it goes on by itself. Its log is asked for by the
 * number of an entry, one page at a time or as a stream that ends with the build.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/decode_build.h"
#include "api/stream.h"
#include "api/templates.h"
#include "http/sse.h"

#define LOG_LIMIT_DEFAULT 100
#define LOG_LIMIT_MAX     1000
#define CONTEXT_LIMIT     (UINT64_C(2) << 30)

struct build *api_build(struct http_request *req)
{
	struct build *build =
		build_find(server_of(req)->box, tenant_of(req), http_param(req, "build"));
	struct error e;
	if (!build) {
		error_set(&e, ERROR_NOT_FOUND, "there is no such build");
		http_respond_error(req, &e);
	}
	return build;
}

/* ---- create, get, cancel ---- */

struct create_call {
	struct http_request *req; /* NULL once the client has gone */
	cJSON *body;              /* which the spec borrows from */
	struct scratch memory;
	struct build_spec spec;
	char build_id[ID_SIZE];
};

static void create_aborted(void *arg)
{
	((struct create_call *)arg)->req = NULL;
}

static void create_free(struct create_call *call)
{
	cJSON_Delete(call->body);
	scratch_finish(&call->memory);
	free(call);
}

static void create_stored(void *arg)
{
	struct create_call *call = arg;
	struct http_request *req = call->req;
	struct build *build =
		req ? build_find(server_of(req)->box, tenant_of(req), call->build_id) : NULL;
	struct error gone;
	if (build) {
		api_respond_build(req, 202, build);
	} else if (req) {
		error_set(&gone, ERROR_NOT_FOUND, "the build was deleted");
		http_respond_error(req, &gone);
	}
	create_free(call);
}

/* What is wrong with the spec is an answer, not a build that has failed. */
static void create_made(void *arg, struct build *build, const struct error *e)
{
	struct create_call *call = arg;
	struct error wrong;
	if (build && build_start(build, &call->spec, &wrong) < 0) {
		build_discard(build);
		build = NULL;
		e = &wrong;
	}
	if (build) {
		struct build_view view;
		build_view(build, &view);
		memcpy(call->build_id, view.id, ID_SIZE);
		build_when_stored(build, create_stored, call);
		return;
	}
	if (call->req)
		http_respond_error(call->req, e);
	create_free(call);
}

static void handle_create(struct http_request *req)
{
	struct error e = {0};
	struct build_new what = {.tenant = tenant_of(req)};
	cJSON *body = api_body(req);
	if (!body)
		return;
	struct create_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->body = body;
	if (decode_build(body, &call->memory, &what, &call->spec, &e) < 0 ||
		build_create(server_of(req)->box, &what, create_made, call, &e) < 0) {
		create_free(call);
		http_respond_error(req, &e);
	} else {
		http_on_abort(req, create_aborted, call);
	}
}

static void handle_get(struct http_request *req)
{
	const struct build *build = api_build(req);
	if (build)
		api_respond_build(req, 200, build);
}

static void handle_cancel(struct http_request *req)
{
	struct build *build = api_build(req);
	struct buf nothing = {0};
	if (!build)
		return;
	build_cancel(build);
	http_respond(req, 204, NULL, &nothing);
}

/* ---- the log ---- */

struct log_writer {
	struct json_writer *w;
	uint64_t number;
};

static void put_entry(struct json_writer *w, uint64_t number, const struct build_log_entry *entry)
{
	char step[16];
	build_step_name(entry->step, step);
	json_begin_object(w);
	json_put_int(w, "number", (int64_t)number);
	json_put_time(w, "time", entry->time_ms);
	json_put_string(w, "level", entry->level);
	json_put_string(w, "step", step);
	json_put_string(w, "message", entry->message);
	json_end_object(w);
}

static void page_entry(void *arg, const struct build_log_entry *entry)
{
	struct log_writer *l = arg;
	put_entry(l->w, l->number++, entry);
}

static void respond_page(
	struct http_request *req, struct build *build, uint64_t offset, size_t limit)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct log_writer l = {&w, offset};
	struct build_view v;
	json_begin_object(&w);
	json_key(&w, "entries");
	json_begin_array(&w);
	uint64_t next = build_log_read(build, offset, limit, page_entry, &l);
	json_end_array(&w);
	build_view(build, &v);
	json_put_int(&w, "nextOffset", (int64_t)next);
	json_put_string(&w, "status", build_status_name(v.status));
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

struct log_stream {
	struct http_request *req;
	struct build *build;
	struct build_watcher watcher;
	enum stream_format format;
	uint64_t offset;
	bool hungry; /* the client can take more */
	struct buf *out;
};

static void stream_close(struct log_stream *s)
{
	build_unwatch(s->build, &s->watcher);
	free(s);
}

static void stream_stopped(void *arg)
{
	stream_close(arg);
}

static void begin_event(const struct log_stream *s, const char *name)
{
	if (s->format == STREAM_SSE)
		sse_begin(s->out, name, NULL);
}

static void end_event(const struct log_stream *s)
{
	if (s->format == STREAM_SSE)
		sse_end(s->out);
	else
		buf_append_char(s->out, '\n');
}

static void stream_entry(void *arg, const struct build_log_entry *entry)
{
	struct log_stream *s = arg;
	struct json_writer w = {.out = s->out};
	begin_event(s, "log");
	json_begin_object(&w);
	json_put_string(&w, "type", "log");
	json_key(&w, "entry");
	put_entry(&w, s->offset++, entry);
	json_end_object(&w);
	end_event(s);
}

static void stream_last(const struct log_stream *s)
{
	struct json_writer w = {.out = s->out};
	begin_event(s, "end");
	json_begin_object(&w);
	json_put_string(&w, "type", "end");
	json_key(&w, "build");
	encode_build(&w, s->build);
	json_end_object(&w);
	end_event(s);
}

static void stream_more(struct log_stream *s)
{
	struct buf out = {0};
	struct build_view v;
	struct http_request *req = s->req;
	if (!s->hungry)
		return;
	s->out = &out;
	build_log_read(s->build, s->offset, LOG_LIMIT_DEFAULT, stream_entry, s);
	build_view(s->build, &v);
	bool last = out.len == 0 && v.status >= BUILD_READY;
	if (last)
		stream_last(s);
	s->out = NULL;
	if (out.len == 0)
		return;
	s->hungry = false;
	if (last)
		stream_close(s);
	http_stream_write(req, &out);
	if (last)
		http_stream_end(req);
}

static void stream_changed(void *arg)
{
	stream_more(arg);
}

static void stream_proceed(void *arg)
{
	struct log_stream *s = arg;
	s->hungry = true;
	stream_more(s);
}

static void begin_stream(
	struct http_request *req, struct build *build, uint64_t offset, enum stream_format format)
{
	struct log_stream *s = calloc(1, sizeof *s);
	if (!s)
		abort();
	*s = (struct log_stream){.req = req, .build = build, .format = format, .offset = offset};
	s->watcher = (struct build_watcher){.changed = stream_changed, .arg = s};
	build_watch(build, &s->watcher);
	const struct http_generator generator = {stream_proceed, stream_stopped, s};
	http_add_header(req, "Cache-Control", "no-store");
	http_stream_begin(req, 200, stream_content_type(format), &generator);
	if (format == STREAM_SSE)
		sse_keep_alive(req);
}

static void handle_log(struct http_request *req)
{
	struct error e;
	int64_t offset = 0, limit = LOG_LIMIT_DEFAULT;
	struct build *build = api_build(req);
	if (!build)
		return;
	if (query_number(req, "offset", 0, INT64_MAX, &offset, &e) < 0 ||
		query_number(req, "limit", 0, LOG_LIMIT_MAX, &limit, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	enum stream_format format = stream_format_of(http_header(req, "accept"));
	if (format == STREAM_NONE)
		respond_page(req, build, (uint64_t)offset, (size_t)limit);
	else
		begin_stream(req, build, (uint64_t)offset, format);
}

/* ---- archives for COPY ---- */

static void handle_context_present(struct http_request *req)
{
	struct buf nothing = {0};
	struct error e;
	if (context_exists(server_of(req)->box, tenant_of(req), http_param(req, "hash"))) {
		http_respond(req, 204, NULL, &nothing);
		return;
	}
	error_set(&e, ERROR_NOT_FOUND, "there is no such archive");
	http_respond_error(req, &e);
}

struct upload_call {
	struct http_request *req;
	struct context_upload *upload;
};

static void upload_aborted(void *arg)
{
	struct upload_call *call = arg;
	if (call->upload)
		context_abort(call->upload);
	free(call);
}

static void upload_answer(struct upload_call *call, const struct error *e)
{
	struct buf nothing = {0};
	struct http_request *req = call->req;
	free(call);
	if (e)
		http_respond_error(req, e);
	else
		http_respond(req, 204, NULL, &nothing);
}

static void upload_data(void *arg, const char *data, size_t len)
{
	struct upload_call *call = arg;
	struct error e;
	if (context_write(call->upload, data, len, &e) == 0)
		return;
	context_abort(call->upload);
	upload_answer(call, &e);
}

static void upload_end(void *arg)
{
	struct upload_call *call = arg;
	struct error e;
	int r = context_end(call->upload, &e);
	upload_answer(call, r < 0 ? &e : NULL);
}

static void handle_context_put(struct http_request *req)
{
	struct error e;
	struct context_upload *upload;
	if (context_begin(server_of(req)->box, tenant_of(req), http_param(req, "hash"), true,
		    &upload, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	struct upload_call *call = malloc(sizeof *call);
	if (!call)
		abort();
	*call = (struct upload_call){req, upload};
	http_body_stream(
		req, &(struct http_body_sink){upload_data, upload_end, upload_aborted, call});
}

static const struct http_route build_routes[] = {
	{HTTP_POST, "/v1/templates/builds", handle_create, BODY_LIMIT},
	{HTTP_GET, "/v1/templates/builds/{build}", handle_get, 0},
	{HTTP_DELETE, "/v1/templates/builds/{build}", handle_cancel, 0},
	{HTTP_GET, "/v1/templates/builds/{build}/log", handle_log, 0},
	{HTTP_GET, "/v1/templates/contexts/{hash}", handle_context_present, 0},
	{HTTP_PUT, "/v1/templates/contexts/{hash}", handle_context_put, CONTEXT_LIMIT, true},
};

const struct route_table build_table = ROUTE_TABLE(build_routes);
