/*
 * A file's bytes as an answer, whole or one range of them (RFC 9110; what is no single range of
 * bytes is passed over, as it may be). The same for every dialect but for headers and errors.
 */
#pragma once

#include "answer/answer.h"

struct byte_range {
	bool given;
	bool from_end; /* the last `offset` bytes */
	uint64_t offset;
	uint64_t length; /* RECORD_UNKNOWN: to the end */
};

/* Parses the header Range, which may be NULL. */
struct byte_range content_range(const char *header);

/* The beginning of `own`. */
struct content {
	struct byte_range range;
	bool as_root;  /* as in struct op_files */
	uint64_t size; /* of the file */
};

/* For answer_form.put. */
int content_put(struct answer *a, const struct op_event *event, struct error *e);
/* An answer_form.put: sends bytes of unknown length as they come. */
int content_put_bytes(struct answer *a, const struct op_event *event, struct error *e);
/* Begins to read, with the range in `own`, and runs; with HEAD it only looks. */
void content_run(struct answer *a, const char *user, const char *path, const char *cwd);
