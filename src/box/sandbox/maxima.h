#pragma once

#include "base/error.h"
#include "model/sandbox.h"

struct box;

/* Whether none of it is above what this server gives. */
int maxima_check(const struct box *b, const struct resources *r, struct error *e);
