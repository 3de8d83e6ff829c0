/* The core's views as E2B's objects. */
#pragma once

#include "dialect/e2b/routes.h"

enum e2b_state {
	E2B_RUNNING,
	E2B_PAUSED,
	E2B_GONE /* as far as E2B's clients are concerned */
};
enum e2b_state e2b_state_of(const struct sandbox_view *view);

/* What create, connect and fork answer: how to reach it. */
void e2b_put_sandbox(
	struct json_writer *w, const struct server *d, const struct sandbox_view *view);
/* What lists and getInfo answer: what it is. */
void e2b_put_listed(struct json_writer *w, const struct sandbox_view *view);
void e2b_put_detail(struct json_writer *w, const struct server *d, const struct sandbox_view *view);

/* For operations whose OP_DONE has a sandbox: how to reach it. */
extern const struct answer_form e2b_sandbox_form;
