#include "api/call.h"

#include <stdlib.h>
#include <string.h>

#include "api/encode.h"

static void aborted(void *arg)
{
	((struct api_call *)arg)->req = NULL;
}

struct api_call *api_call_new(struct http_request *req, const char *id)
{
	struct api_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	if (id)
		memcpy(call->id, id, ID_SIZE);
	http_on_abort(req, aborted, call);
	return call;
}

void api_respond_sandbox(struct http_request *req, int status, const struct sandbox *s)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct sandbox_view view;
	sandbox_view(s, &view);
	encode_sandbox(&w, &view);
	api_respond_json(req, status, &body);
}

void api_call_done(void *arg, const struct error *e)
{
	struct api_call *call = arg;
	struct buf nothing = {0};
	if (call->req && e)
		http_respond_error(call->req, e);
	else if (call->req)
		http_respond(call->req, 204, NULL, &nothing);
	free(call);
}

void api_call_sandbox(void *arg, const struct error *e)
{
	struct api_call *call = arg;
	struct http_request *req = call->req;
	struct error gone;
	struct sandbox *s =
		req ? sandbox_find(server_of(req)->box, tenant_of(req), call->id) : NULL;
	if (req && e) {
		http_respond_error(req, e);
	} else if (s) {
		api_respond_sandbox(req, 200, s);
	} else if (req) {
		error_set(&gone, ERROR_NOT_FOUND, "the sandbox was deleted");
		http_respond_error(req, &gone);
	}
	free(call);
}
