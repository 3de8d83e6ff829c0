#pragma once

#include "api/files.h"

struct files_range {
	bool given;
	bool from_end; /* the last `offset` bytes */
	uint64_t offset;
	uint64_t length; /* RECORD_UNKNOWN: to the end */
};

/* The query's offset and length, or the header Range. */
int files_parse_range(struct http_request *req, struct files_range *ret, struct error *e);
void files_read(struct http_request *req, struct sandbox *s, const struct files_place *place,
	const char *path, const struct files_range *range);
