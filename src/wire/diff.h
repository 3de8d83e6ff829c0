/*
 * What a walk over two disks says, over a pipe from the keeper to the front: records, each a fixed
 * struct and then its bytes. The last one is END; without it the walk was cut short.
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

/* What is wanted. */
enum diff_form {
	DIFF_RECORDS,
	DIFF_TAR,     /* what was added and changed; what was deleted as whiteouts (.wh.NAME) */
	DIFF_TEXT,    /* unified */
	DIFF_ARCHIVE, /* the tar, compressed by zstd */
	DIFF_FORM_END
};

struct diff_record {
	uint32_t kind;
	uint32_t len;                /* of the path, or of the data */
	uint32_t old_mode, new_mode; /* with the type; 0: there is none */
	uint64_t old_size, new_size; /* of files */
	int32_t error;               /* of END: an errno */
	uint32_t truncated;          /* of END: something was too deep or too much */
};
