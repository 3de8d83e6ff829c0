/* What the files of this room share. */
#pragma once

#include "api/api.h"
#include "http/json.h"

#define BODY_LIMIT (32u << 20)

/* The handlers, one file per resource. */
void handle_create_sandbox(struct http_request *req);
void handle_list_sandboxes(struct http_request *req);
void handle_get_sandbox(struct http_request *req);
void handle_delete_sandbox(struct http_request *req);
void handle_exec(struct http_request *req);
void handle_run(struct http_request *req);
void handle_get_execution(struct http_request *req);
void handle_list_templates(struct http_request *req);
void handle_health(struct http_request *req);
void handle_metrics(struct http_request *req);

static inline struct box *api_box(const struct http_request *req)
{
	return ((struct api *)http_ctx(req))->box;
}

static inline const char *api_tenant(const struct http_request *req)
{
	return http_principal(req);
}

/* The sandbox that the path names, or NULL after the request was answered with not_found. */
struct sandbox *api_sandbox(struct http_request *req);
/* A JSON object from the body, to be deleted by the caller, or NULL after the request was answered.
 */
cJSON *api_body(struct http_request *req);
void api_respond_json(struct http_request *req, int status, struct buf *body);
