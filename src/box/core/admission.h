/* Whether a sandbox may be made as it was asked for. */
#pragma once

#include "base/error.h"
#include "model/sandbox.h"

struct box;

/*
 * Returns the template to use: the id of a build, or the reference as it was given; NULL is the
 * default.
 */
const char *admission_template(struct box *b, const struct sandbox_spec *spec);
/* Whether such a sandbox may be made; fills in the defaults of *r. */
int admission_check(
	struct box *b, const struct sandbox_spec *spec, struct resources *r, struct error *e);
/* Returns the network mode of the request, or the server's default. */
enum network_mode admission_network(const struct box *b, const struct sandbox_spec *spec);
