/*
 * A sandbox as one JSON object, to be kept anywhere and resumed from:
 *
 *     {"format": "bunker-sandbox", "version": 1, "takenAt": MS, "template": "base", "root": "/",
 *      "env": {"NAME": "VALUE"}, "deleted": [{"path"}],
 *      "files": [{"path", "mode", "uid", "gid", "mtime", "size", "encoding", "contents"}],
 *      "directories": [{"path", "mode", "uid", "gid", "mtime"}],
 *      "links": [{"path", "target", …}], "hardLinks": [{"path", "target"}]}
 *
 * Paths are relative to `root`; one that is not UTF-8 has its bytes in pathBase64. Modes are octal
 * texts, times milliseconds since 1970. Everything but "path" may be left out, so that an object of
 * others with only files [{path, contents, encoding}] and env is one, too; without a root it is
 * about the working directory.
 *
 * Both directions go through a tar, piece by piece, in bounded memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/scratch.h"

#define PORTABLE_ENTRIES_MAX 500000u
#define PORTABLE_SIDE_MAX    (32u << 20) /* of directories and links, each */
#define PORTABLE_WHOLE_MAX   (16u << 20) /* of a file whose size is not told in front */
#define PORTABLE_ENV_MAX     (1u << 20)
#define PORTABLE_PATH_MAX    4095u
#define PORTABLE_ID_MAX      65535 /* of a user or group: those that a sandbox has */

/* ---- from what was changed to JSON ---- */

struct portable_head {
	const char *template_name;
	const char *root; /* absolute; only what is below is told */
	const char *env;  /* NAME=VALUE strings, each with its NUL */
	size_t env_len;
	int64_t taken_ms;
};

struct portable_writer;
/* The beginning is appended to out, as everything else will be. */
struct portable_writer *portable_writer_new(const struct portable_head *head, struct buf *out);
void portable_writer_free(struct portable_writer *w);
/* First of all, what is not there any more, or became something of another kind: "/etc/x". */
void portable_write_deleted(struct portable_writer *w, const char *path);
/* Then a tar of everything else; its whiteouts are passed over. */
int portable_write(struct portable_writer *w, const char *tar, size_t len, struct error *e);
int portable_write_end(struct portable_writer *w, struct error *e);

/* ---- and back ---- */

enum portable_step {
	PORTABLE_MORE, /* all that was added has been taken */
	PORTABLE_HEAD, /* said once: `what` is as complete as it will be before the first file */
	PORTABLE_FULL, /* out has as much as was wanted */
	PORTABLE_DONE  /* all of it is there, and the tar has its end */
};

struct portable_reader;
struct portable_reader *portable_reader_new(void);
void portable_reader_free(struct portable_reader *r);
void portable_reader_add(struct portable_reader *r, const char *bytes, size_t len);
/* That was all of it. */
void portable_reader_end(struct portable_reader *r);
/* Returns the number of bytes that were added and not taken yet. */
size_t portable_reader_waiting(const struct portable_reader *r);
/* Appends tar to out until it has `window` bytes. Negative: *e says what is wrong. */
int portable_read(struct portable_reader *r, struct buf *out, size_t window, struct error *e);

/*
 * Returns the members beside the files, or NULL if none came so far. Lives as long as the reader.
 */
const char *portable_template(const struct portable_reader *r);
const char *portable_root(const struct portable_reader *r);
const char *const *portable_env(const struct portable_reader *r); /* NAME=VALUE, closed by NULL */
