/*
 * What the front and a file worker of init say to each other, over a stream socket of their own.
 *
 * A record is a header of 16 bytes, little-endian, then `size` bytes of payload:
 *
 *     u32 type   u32 zero   u64 size
 *
 * DATA carries bytes of files and archives, as many as its size says, and is passed on in pieces.
 * Every other record has at most RECORD_MAX bytes: a fixed struct, then strings whose lengths are
 * in it.
 *
 * The front sends REQUEST and, for some operations, input that ends with END. The worker answers
 * with records and always with one END, whose error is an errno; then it waits for the next
 * REQUEST. A worker that ends before its END did not finish what it was asked.
 *
 *     operation     input                            answer
 *     READ                                           ENTRY, CONTENT, DATA …, END
 *     WRITE         (FILE, ATTRIBUTE …, DATA …,
 *                    DONE) …, END                    ENTRY per file, END
 *     STAT                                           ENTRY, END
 *     LIST, FIND                                     ENTRY …, END
 *     GREP                                           MATCH …, END
 *     REPLACE                                        CHANGE …, END
 *     MKDIR, MOVE, COPY, CHMOD, CHOWN, SYMLINK       ENTRY, END
 *     REMOVE                                         END
 *     ATTRIBUTES    ATTRIBUTE …, END                 ATTRIBUTE …, END
 *     PACK                                           CONTENT, DATA …, END
 *     UNPACK        DATA …, END                      ENTRY …, END
 *     WATCH         SYNC, one at a time              READY, (EVENT or SYNCED) …, END
 *     ROOT, TRUST                                    END
 *
 * Where an ENTRY is answered, FILE_WITH_ATTRIBUTES adds ATTRIBUTE … behind each.
 *
 * Each side treats the other's records as hostile: one that does not decode ends the connection,
 * and one of a worker that the table does not have, or not there, ends the sandbox.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define RECORD_HEADER_SIZE 16u
#define RECORD_MAX         (64u * 1024)
#define RECORD_UNKNOWN     UINT64_MAX

enum record_type {
	RECORD_DATA = 1,
	RECORD_END,       /* struct record_end; path */
	RECORD_REQUEST,   /* struct record_request; its strings, each with its NUL */
	RECORD_FILE,      /* struct record_file; path, owner */
	RECORD_DONE,      /* the file is complete */
	RECORD_ATTRIBUTE, /* struct record_attribute; name, value */
	RECORD_SYNC,      /* tell what has happened until now, then SYNCED */

	RECORD_ENTRY = 64, /* struct record_entry; path, target, owner, group */
	RECORD_CONTENT,    /* struct record_content: describes the DATA that follows */
	RECORD_MATCH,      /* struct record_match; path, text */
	RECORD_CHANGE,     /* struct record_change; path */
	RECORD_READY,      /* events are being collected from now on */
	RECORD_EVENT,      /* struct record_event; path, destination */
	RECORD_SYNCED      /* every event from before the SYNC has been told */
};

struct record_header {
	uint32_t type;
	uint32_t zero;
	uint64_t size;
};

enum file_op {
	FILE_READ = 1,
	FILE_WRITE,
	FILE_STAT,
	FILE_LIST,
	FILE_MKDIR,
	FILE_MOVE,
	FILE_COPY,
	FILE_REMOVE,
	FILE_CHMOD,
	FILE_CHOWN,
	FILE_SYMLINK,
	FILE_FIND,
	FILE_GREP,
	FILE_REPLACE,
	FILE_ATTRIBUTES,
	FILE_PACK,
	FILE_UNPACK,
	FILE_WATCH,
	FILE_ROOT,  /* makes the unpacked tree usable as a sandbox's root */
	FILE_TRUST, /* puts certificates into the tree's stores of those it trusts */
	FILE_OP_END
};

enum file_flags {
	FILE_FOLLOW = 1 << 0,    /* the last link of the path is followed */
	FILE_RECURSIVE = 1 << 1, /* with everything below */
	FILE_PARENTS = 1 << 2,   /* missing directories above are made */
	FILE_OVERWRITE = 1 << 3, /* existing files may be replaced */
	FILE_EXIST_OK =
		1 << 4, /* that it is there already is no error; nor, for REMOVE, that it is not */
	FILE_REGEX = 1 << 5, /* the pattern is an extended regular expression, not text */
	FILE_IGNORE_CASE = 1 << 6,
	FILE_DRY_RUN = 1 << 7,  /* count, but change nothing */
	FILE_HAS_MODE = 1 << 8, /* CHOWN: the mode is set, too */
	FILE_APPEND = 1 << 9,
	FILE_AT_OFFSET = 1 << 10,  /* written at an offset, the rest stays */
	FILE_ATOMIC = 1 << 11,     /* seen as it was or complete, never in between */
	FILE_EXCLUSIVE = 1 << 12,  /* it must not exist */
	FILE_OWNERS = 1 << 13,     /* of an archive: owners are restored, as far as the user may */
	FILE_WITH_NAMES = 1 << 14, /* entries carry the names of owner and group */
	FILE_FROM_END = 1 << 15,   /* READ: the offset counts from the end */
	FILE_LAYER = 1 << 16,      /* UNPACK: of an image: whiteouts remove, devices are left out */
	/*
	 * Entries of links have the type and permissions of their targets, and the real path in
	 * `target`; dangling links are reported as links.
	 */
	FILE_RESOLVED = 1 << 17,
	FILE_WITH_ATTRIBUTES = 1 << 18, /* each entry is followed by its attributes */
	FILE_ZIP =
		1
		<< 19, /* UNPACK: a zip archive; PACK: one that becomes such, with no hard links */
	FILE_FLAGS = (1 << 20) - 1
};

/* The texts of a REQUEST; those that an operation does not use are empty. */
enum file_text {
	FILE_CWD, /* where relative paths begin; "": the user's home; "~name": another user's */
	FILE_PATH,
	FILE_OTHER, /* MOVE, COPY: where to; SYMLINK: what the link says; GREP, REPLACE: glob of
		       paths */
	FILE_OWNER, /* "user", "user:group", ":group"; names or numbers. MOVE, COPY: of directories
		       that are made above */
	FILE_PATTERN, /* FIND: glob; GREP, REPLACE: what to look for */
	/* LIST, FIND: the path after which to begin; REPLACE: the new text; UNPACK: what of the
	   archive is wanted, to be merged into the path as Docker's COPY does; TRUST: the section
	   (base/trust_store.h), or nothing */
	FILE_EXTRA,
	FILE_TEXTS
};

struct record_request {
	uint32_t op;
	uint32_t flags;
	uint32_t mode;  /* LIST, FIND: only files of this type (S_IFMT); 0: all */
	uint32_t depth; /* LIST, FIND: levels; 0: all */
	uint64_t offset;
	uint64_t length; /* READ: at most; RECORD_UNKNOWN: to the end */
	uint64_t limit;  /* of answers */
	uint64_t near;   /* 1 + the processor that the front will wait on; 0: it may be any */
};

struct file_request {
	struct record_request fixed;
	const char *text[FILE_TEXTS];
};

struct record_file {
	uint32_t flags;
	uint32_t mode;
	uint64_t offset;
	uint32_t path_len, owner_len;
};

struct record_attribute {
	uint32_t name_len;
	uint32_t value_len; /* RECORD_REMOVED: it goes; a name that ends with '.', all below it */
};
#define RECORD_REMOVED UINT32_MAX

struct record_entry {
	uint64_t size;
	int64_t mtime_ns, atime_ns, ctime_ns;
	uint64_t inode;
	uint32_t mode, uid, gid, links;
	uint32_t path_len, target_len, owner_len, group_len;
};

struct record_content {
	uint64_t length; /* RECORD_UNKNOWN: until END */
	uint64_t offset; /* READ: in the file */
};

struct record_match {
	uint64_t line;
	uint32_t column; /* of the match's first byte in the line, from 1 */
	uint32_t cut;    /* the line is longer than the text given */
	uint32_t path_len, text_len;
};

struct record_change {
	uint64_t count;
	uint32_t path_len, unused;
};

enum file_event {
	FILE_EVENT_CREATE,
	FILE_EVENT_WRITE,
	FILE_EVENT_REMOVE,
	FILE_EVENT_RENAME, /* path is where it was, destination where it is */
	FILE_EVENT_CHMOD,
	FILE_EVENT_OVERFLOW, /* events were lost: look again */
	FILE_EVENT_KINDS
};

struct record_event {
	uint32_t kind;
	uint32_t directory; /* 1: it is one */
	uint32_t path_len, destination_len;
};

struct record_end {
	int32_t error;
	uint32_t truncated; /* 1: there would have been more answers than asked for */
	uint64_t count;
	uint32_t path_len, unused;
};

struct record_text {
	const char *data;
	size_t len;
};

void record_append_header(struct buf *out, enum record_type type, uint64_t size);
/* A record of a fixed struct and the texts behind it, whose lengths the struct has already. */
void record_append(struct buf *out, enum record_type type, const void *fixed, size_t size,
	const struct record_text *texts, size_t count);
/* -E2BIG when the texts are too long together. */
int record_append_request(struct buf *out, const struct file_request *request);

/*
 * The header at the start of data; -EPROTO when no valid record starts like this.
 * RECORD_HEADER_SIZE bytes must be there.
 */
int record_decode_header(const char *data, struct record_header *ret);
/*
 * A payload taken apart: the fixed struct is copied out, and each text's length is the struct's
 * uint32_t at the given offset. Texts are not empty by accident: they fill the payload exactly, and
 * hold no NUL when they are names. -EPROTO otherwise.
 */
int record_decode_request(const char *payload, size_t size, struct file_request *ret);
int record_decode_file(
	const char *payload, size_t size, struct record_file *ret, struct record_text texts[2]);
int record_decode_attribute(const char *payload, size_t size, struct record_attribute *ret,
	struct record_text texts[2]);
int record_decode_entry(
	const char *payload, size_t size, struct record_entry *ret, struct record_text texts[4]);
int record_decode_content(const char *payload, size_t size, struct record_content *ret);
int record_decode_match(
	const char *payload, size_t size, struct record_match *ret, struct record_text texts[2]);
int record_decode_change(
	const char *payload, size_t size, struct record_change *ret, struct record_text texts[1]);
int record_decode_event(
	const char *payload, size_t size, struct record_event *ret, struct record_text texts[2]);
int record_decode_end(
	const char *payload, size_t size, struct record_end *ret, struct record_text texts[1]);
