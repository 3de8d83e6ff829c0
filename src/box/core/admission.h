/* Whether a sandbox may be made as it was asked for. */
#pragma once

#include "base/error.h"
#include "model/sandbox.h"

struct box;

/* Of which template: the id of a build, or as it was asked for; NULL: the default. */
const char *admission_template(struct box *b, const struct sandbox_spec *spec);
/* Whether such a sandbox may be made; fills in the defaults of *r. */
int admission_check(
	struct box *b, const struct sandbox_spec *spec, struct resources *r, struct error *e);
