/* Parameters of the headers that forms have: boundaries, names, file names. */
#pragma once

#include "base/error.h"
#include "http/multipart.h"

struct disposition {
	const char *name;
	const char *filename;
};

/* Parses "form-data; name=…". The text is split and decoded in place; *ret points into it. */
int disposition_parse(char *text, struct disposition *ret, struct error *e);
/* Extracts the boundary of "multipart/form-data; boundary=…". */
int multipart_find_boundary(
	const char *type, char boundary[MULTIPART_BOUNDARY_MAX + 1], struct error *e);
