/* Lists of executions, from memory and from the store. */
#include <stdlib.h>
#include <string.h>

#include "api/encode.h"
#include "api/lookup.h"

struct list_call {
	struct http_request *req;
	struct buf body;
	struct json_writer writer;
	int64_t left;
	int64_t last_ms;
	char last_id[ID_SIZE];
	bool more;
};

static void put_process(struct list_call *call, const struct execution_view *view)
{
	json_begin_object(&call->writer);
	encode_process(&call->writer, view);
	json_end_object(&call->writer);
}

static void list_end(struct list_call *call)
{
	json_end_array(&call->writer);
	if (call->more)
		api_put_cursor(&call->writer, call->last_ms, call->last_id);
	json_end_object(&call->writer);
	api_respond_json(call->req, 200, &call->body);
	free(call);
}

static void listed(void *arg, const struct execution_view *view)
{
	struct list_call *call = arg;
	if (!view) {
		list_end(call);
		return;
	}
	if (call->left-- == 0) {
		call->more = true;
		return;
	}
	put_process(call, view);
	call->last_ms = view->started_ms;
	memcpy(call->last_id, view->id, ID_SIZE);
}

static void put_running(struct list_call *call, const struct sandbox *s, unsigned kinds)
{
	struct execution_view view;
	for (struct execution *x = execution_first(s); x; x = execution_next(x)) {
		execution_view(x, &view);
		if (!execution_has_ended(x) && (kinds == 0 || (kinds >> view.kind) & 1))
			put_process(call, &view);
	}
}

void api_list(struct http_request *req, const char *key, const char *sandbox_id, unsigned kinds,
	const struct sandbox *running, const struct api_page *page)
{
	struct list_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->left = page->limit;
	call->writer.out = &call->body;
	json_begin_object(&call->writer);
	json_key(&call->writer, key);
	json_begin_array(&call->writer);
	if (running && page->before_ms == 0)
		put_running(call, running, kinds);
	execution_list_ended(server_of(req)->box,
		&(struct execution_filter){.tenant = tenant_of(req),
			.sandbox_id = sandbox_id,
			.kinds = kinds,
			.before_ms = page->before_ms,
			.before_id = page->before_id,
			.limit = (unsigned)page->limit + 1},
		listed, call);
}
