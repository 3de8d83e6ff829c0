/* Templates: what their files share. */
#pragma once

#include "box/template/build.h"
#include "dialect/e2b/routes.h"

/*
 * E2B's tag of what a name alone stands for is "default"; ours is "latest". In all that comes from
 * clients and goes to them it has their name.
 */
#define E2B_DEFAULT_TAG "default"
const char *e2b_tag_in(const char *tag);
const char *e2b_tag_out(const char *tag);
/* "name", "name:tag", "team/name:tag" as the core has it, in the scratch. */
const char *e2b_reference_in(const char *reference, struct scratch *memory);

/* The template that the path's {id} names; NULL after the request was answered. */
struct template *e2b_template(struct http_request *req);
/* The build that the path's {id} and {build} name; NULL after the request was answered. */
struct build *e2b_build(struct http_request *req);
/* What a build is to do, from the body of its start; texts are the message's or the scratch's. */
int e2b_build_spec(
	const cJSON *message, struct scratch *memory, struct build_spec *ret, struct error *e);
/* Of one operation that is answered with nothing but its status. */
template_done_fn *e2b_template_done(struct http_request *req, int status, void **arg);

/* For the one route that is opened by a signature. */
int e2b_admit_upload(struct http_request *req, struct error *e);

extern const struct route_table e2b_snapshot_table, e2b_template_table, e2b_tag_table,
	e2b_build_table, e2b_build_files_table, e2b_upload_table;
