/* Templates, and the names of their versions. */
#pragma once

#include "model/build.h"
#include "op/op.h"

/* OP_ROW with each template: the built-in ones, then the tenant's by their names. */
struct op *op_template_list(const struct op_call *call);
/* OP_DONE with the template of this id or name. */
struct op *op_template_get(const struct op_call *call, const char *name);
/*
 * OP_ROW with the template that a sandbox which says `ref` begins with, then OP_DONE with the
 * build; that is NULL if the template is built in.
 */
struct op *op_template_resolve(const struct op_call *call, const char *ref);

struct op_template_delete {
	const char *name;
	bool or_snapshot; /* deletes the snapshot of this name if there is no such template */
};
struct op *op_template_delete(const struct op_call *call, const struct op_template_delete *request);

/* Several changes of tags, all of them tried; OP_FAILED has the first thing that went wrong. */
struct op_template_tags {
	const char *name; /* of the template; NULL for op_template_tag: `target` says it */
	/*
	 * The request of op_template_tag. With a name: a build's id, one of its tags, or NULL for
	 * the build that the name stands for. Without: a reference as op_template_resolve takes it.
	 */
	const char *target;
	const char *const *tags; /* NULL ends */
};
/* OP_DONE with the build that has the tags now. */
struct op *op_template_tag(const struct op_call *call, const struct op_template_tags *request);
struct op *op_template_untag(const struct op_call *call, const struct op_template_tags *request);
