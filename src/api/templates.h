/* What the files about templates share. */
#pragma once

#include "api/routes.h"
#include "box/template/build.h"
#include "box/template/template.h"

/* An object. */
void encode_build(struct json_writer *w, const struct build *build);
void api_respond_build(struct http_request *req, int status, const struct build *build);
/* The build that the path names, or NULL after the request was answered with not_found. */
struct build *api_build(struct http_request *req);

/* Answers when a change of the catalogue is stored: with what `answer` makes of it, or with 204. */
struct template_call;
struct template_call *template_call_new(struct http_request *req);
template_done_fn template_call_done;
