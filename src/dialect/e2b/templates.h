/* Templates: what their files share. */
#pragma once

#include "dialect/e2b/routes.h"
#include "model/build.h"
#include "op/build.h"

/*
 * E2B's tag of what a name alone stands for is "default"; ours is "latest". In all that comes from
 * clients and goes to them it has their name.
 */
#define E2B_DEFAULT_TAG "default"
const char *e2b_tag_in(const char *tag);
const char *e2b_tag_out(const char *tag);
/* "name", "name:tag", "team/name:tag" as the core has it, in the scratch. */
const char *e2b_reference_in(const char *reference, struct scratch *memory);

/* The id of a build, which is a UUID to clients, in the scratch. What is none is taken for an id of
 * ours. */
const char *e2b_build_id_in(const char *id, struct scratch *memory);

/* What a build is to do, from the body of its start; texts are the message's or the scratch's. */
int e2b_build_spec(
	const cJSON *message, struct scratch *memory, struct build_spec *ret, struct error *e);

/* For answers about a build whose `own` is a buf: its tags, as clients call them, as JSON. */
void e2b_tags_put_rest(struct answer *a, struct json_writer *w, const struct op_event *event);
void e2b_tags_finish(struct answer *a);

/* For the one route that is opened by a signature. */
int e2b_admit_upload(struct http_request *req, struct error *e);

extern const struct route_table e2b_snapshot_table, e2b_template_table, e2b_tag_table,
	e2b_build_table, e2b_build_files_table, e2b_upload_table;
