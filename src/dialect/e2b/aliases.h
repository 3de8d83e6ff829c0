/* What E2B's objects are of ours. */
#pragma once

#include "answer/records.h"
#include "dialect/e2b/routes.h"

extern const struct json_alias_table e2b_sandbox,  /* how to reach it; also of a create's body */
	e2b_sandbox_listed,                        /* what it is */
	e2b_template, e2b_template_found, e2b_tag, /* of a template */
	e2b_build, e2b_build_state, e2b_build_tagged, e2b_build_log, e2b_snapshot, e2b_volume,
	e2b_context, e2b_gauge_told, e2b_gauge_by_envd;

/* What a sandbox uses at one moment, for the last two. */
struct e2b_gauge {
	int64_t time_ms;
	double cpu_percent; /* of what it may have */
	int64_t memory, disk;
	struct resources limits;
};

/* All of them; NULL ends. */
extern const struct json_alias_table *const e2b_aliases[];

/* The initializers of a form: see ANSWER_RECORD and ANSWER_LIST. */
#define E2B_RECORD(described)                                                                      \
	.type = E2B_JSON, .pace = ANSWER_WHOLE, .put = answer_put_record, .records = (described)
#define E2B_LIST(described)                                                                        \
	.type = E2B_JSON, .pace = ANSWER_WHOLE, .put = answer_put_list,                            \
	.own_size = sizeof(struct answer_list), .records = (described)
/* See ANSWER_PACED_LIST. */
#define E2B_PACED_LIST(described)                                                                  \
	.type = E2B_JSON, .pace = ANSWER_BULK, .put = answer_put_list,                             \
	.own_size = sizeof(struct answer_list), .records = (described)

/* What create, connect and fork answer, as an object. */
void e2b_put_sandbox(
	struct json_writer *w, const struct http_request *req, const struct sandbox_view *view);
/* For operations whose OP_DONE has a sandbox: the same. */
extern const struct answer_form e2b_sandbox_form;
/* For operations whose OP_DONE has a sandbox: what it is. */
extern const struct answer_form e2b_sandbox_detail_form;
/* For answer_records.rest of a list with pages: where the next one begins, as X-Next-Token. */
void e2b_put_next(struct answer *a, struct json_writer *w, const struct op_event *event);
