/* What Agentuity's objects are of ours. */
#pragma once

#include "answer/records.h"
#include "dialect/agentuity/routes.h"

extern const struct json_alias_table agentuity_sandbox, /* also of a create's body */
	agentuity_sandbox_state,                        /* which one it is, and its status */
	agentuity_sandbox_summary,                      /* of its command line */
	agentuity_execution, agentuity_job,
	agentuity_sandbox_command, /* of a sandbox that was made for it */
	agentuity_snapshot, agentuity_ancestor, agentuity_checkpoint, agentuity_event;

/* All of them; NULL ends. */
extern const struct json_alias_table *const agentuity_aliases[];

/* An execution or a job, with the addresses of its streams but for those that are ignored. */
void agentuity_put_execution(struct json_writer *w, const struct json_alias_table *t,
	const struct http_request *req, const struct execution_view *view, const bool ignores[2]);

/* For answer_records.rest of a list: how many there are. */
void agentuity_put_total(struct answer *a, struct json_writer *w, const struct op_event *event);
