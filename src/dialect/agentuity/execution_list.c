#include "dialect/agentuity/execution_list.h"

#include <stdlib.h>

#define LIST_DEFAULT 50
#define LIST_MAX     100

struct list_call {
	struct http_request *req; /* NULL once the client has gone */
	execution_put_fn *put;
	struct buf body;
	struct json_writer w;
	int64_t left;
};

static void list_aborted(void *arg)
{
	((struct list_call *)arg)->req = NULL;
}

static void listed(void *arg, const struct execution_view *view)
{
	struct list_call *call = arg;
	if (view) {
		if (call->req && call->left-- > 0)
			call->put(&call->w, call->req, view);
		return;
	}
	json_end_array(&call->w);
	json_end_object(&call->w);
	if (call->req)
		agentuity_respond_data(call->req, 200, &call->w);
	buf_finish(&call->body);
	free(call);
}

static void list_running(struct list_call *call, const struct sandbox *s, enum execution_kind kind)
{
	struct execution_view view;
	for (struct execution *x = execution_first(s); x; x = execution_next(x)) {
		execution_view(x, &view);
		if (view.kind == kind && !execution_has_ended(x))
			listed(call, &view);
	}
}

void execution_list_respond(struct http_request *req, const char *sandbox_id, const char *key,
	enum execution_kind kind, execution_put_fn *put)
{
	struct error e;
	int64_t limit = LIST_DEFAULT;
	struct box *b = server_of(req)->box;
	if (query_optional_number(req, "limit", 1, LIST_MAX, &limit, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	struct list_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->put = put;
	call->left = limit;
	call->w.out = &call->body;
	agentuity_begin_data(&call->w);
	json_begin_object(&call->w);
	json_key(&call->w, key);
	json_begin_array(&call->w);
	const struct sandbox *s = sandbox_find(b, tenant_of(req), sandbox_id);
	if (s)
		list_running(call, s, kind);
	http_on_abort(req, list_aborted, call);
	const struct execution_filter filter = {.tenant = tenant_of(req),
		.sandbox_id = sandbox_id,
		.kinds = 1u << kind,
		.limit = (unsigned)limit};
	execution_list_ended(b, &filter, listed, call);
}
