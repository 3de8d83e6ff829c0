/*
 * The result of comparing two disks, sent by the keeper to the front over a pipe: records, each a
 * fixed struct followed by its bytes. The last one is END; a stream without it was cut short.
 */
#pragma once

#include <stdint.h>

#define DIFF_BYTES_MAX (64u * 1024)

enum diff_kind {
	DIFF_ADDED = 1,
	DIFF_CHANGED,
	DIFF_DELETED, /* a directory with everything below */
	DIFF_DATA,    /* of a tar, or of a text: bytes */
	DIFF_END
};

/* The form of the result. */
enum diff_form {
	DIFF_RECORDS,
	DIFF_TAR,     /* added and changed files; deleted ones as whiteouts (.wh.NAME) */
	DIFF_TEXT,    /* unified */
	DIFF_ARCHIVE, /* the tar, compressed by zstd */
	DIFF_FORM_END
};

struct diff_header {
	uint32_t kind;
	uint32_t len;                /* of the path, or of the data */
	uint32_t old_mode, new_mode; /* with the type; 0: there is none */
	uint64_t old_size, new_size; /* of files */
	int32_t error;               /* of END: an errno */
	uint32_t truncated;          /* of END: something was too deep or too much */
};
