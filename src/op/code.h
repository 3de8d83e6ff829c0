/* Contexts of code, and runs in them. The call's sandbox is whose they are. */
#pragma once

#include "model/code.h"
#include "op/op.h"

/* OP_NO_CONTEXT if there is none. */
struct op_context_ref {
	const char *name; /* an id */
	/* A language's name stands for its default context, which is made if need be. */
	bool or_language;
	const char *user; /* whose default context; NULL: that of the sandbox's user */
};

/* OP_DONE with the context when its interpreter answers. */
struct op *op_context_create(
	const struct op_call *call, enum code_language language, const struct code_place *place);

struct op_context_query {
	/* The default ones come first; those of Python and JavaScript are made if need be. */
	bool with_defaults;
	const char *user; /* whose default ones; NULL: those of the sandbox's user */
};
/* OP_ROW with each context, in the order of their creation. */
struct op *op_context_list(const struct op_call *call, const struct op_context_query *query);
/* OP_DONE with the context. */
struct op *op_context_get(const struct op_call *call, const struct op_context_ref *ref);
struct op *op_context_delete(const struct op_call *call, const struct op_context_ref *ref);
struct op *op_context_restart(const struct op_call *call, const struct op_context_ref *ref);
/* OP_DONE with the context; is_running: something ran, and is interrupted. */
struct op *op_context_interrupt(const struct op_call *call, const struct op_context_ref *ref);

struct op_code_run {
	struct op_context_ref context;
	struct code_run_spec spec;
	/* A variable that the run has besides: its sandbox's template. NULL: none. */
	const char *template_variable;
};
/*
 * OP_CODE with each event, the last one of type CODE_EVENT_END, then OP_DONE; OP_FAILED with
 * OP_BROKEN if the sandbox is lost meanwhile. Output comes by whole characters and is never empty.
 * A slow caller slows the code, and one that leaves interrupts it.
 */
struct op *op_code_run(const struct op_call *call, const struct op_code_run *request);
