/* One entry of a portable sandbox: its fields, as they come, into a member of a tar. */
#pragma once

#include "base/tar.h"
#include "image/portable.h"
#include "image/portable_paths.h"

enum entry_kind {
	ENTRY_FILE,
	ENTRY_DIRECTORY,
	ENTRY_LINK,
	ENTRY_HARD_LINK,
	ENTRY_DELETED,
	ENTRY_KIND_COUNT
};

enum entry_field {
	FIELD_PATH,
	FIELD_PATH_BYTES,
	FIELD_TARGET,
	FIELD_TARGET_BYTES,
	FIELD_MODE,
	FIELD_UID,
	FIELD_GID,
	FIELD_MTIME,
	FIELD_SIZE,
	FIELD_ENCODING,
	FIELD_CONTENTS,
	ENTRY_FIELD_COUNT
};

struct portable_entry {
	enum entry_kind kind;
	size_t index; /* in its list, for errors */
	unsigned seen;
	struct tar_member member;
	struct buf path_bytes, target_bytes;
	int64_t size;
	bool base64;
	/* The content: streamed when its size is known before it begins, else kept. */
	bool streams, begun;
	struct buf content;
	struct buf rest; /* base64 that is no group of four yet */
	bool padded;     /* its end has been seen */
	uint64_t written;
};

void portable_entry_begin(struct portable_entry *n, enum entry_kind kind, size_t index);
void portable_entry_finish(struct portable_entry *n);
/* Returns which field a key names, or a negative number and *e. A field may be given once. */
int portable_entry_field_of(struct portable_entry *n, const char *key, struct error *e);
bool portable_entry_field_is_number(enum entry_field field);
int portable_entry_put_text(
	struct portable_entry *n, enum entry_field field, const struct buf *text, struct error *e);
int portable_entry_put_number(
	struct portable_entry *n, enum entry_field field, int64_t number, struct error *e);
/* Takes a piece of the contents, in the entry's encoding. */
int portable_entry_put_contents(struct portable_entry *n, struct portable_paths *used,
	const char *text, size_t len, struct buf *out, struct error *e);
/* Ends an entry: all its fields have come. */
int portable_entry_end(
	struct portable_entry *n, struct portable_paths *used, struct buf *out, struct error *e);
