/*
 * File work. A worker is a child of init with the rights of one user of the sandbox, the sandbox's
 * own view of the filesystem and one descriptor: a socket whose other end is the front's. It
 * answers one request after the other (wire/record.h) and ends when the front closes. There is no
 * path to trick, because there is nothing else to reach; it may block on what it meets, for only
 * its own request waits.
 *
 * Memory is bounded for any tree: directories are walked with a budget for names, never by
 * recursion, and a file goes through one buffer.
 */
#pragma once

#include <dirent.h>
#include <regex.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/tar.h"
#include "wire/record.h"

#define FILE_IS_LARGE (4u << 20) /* it keeps us and the front busy, both at the same time */

/* ---- serve.c: the table of operations ---- */

/* Holds the fields of END beside the error. */
struct outcome {
	bool truncated;
	uint64_t count;
	struct buf path; /* path the error is about; empty: the request's */
};

/* Answers until the front closes. `home` is where relative paths begin when a request does not say.
 */
void files_serve(int fd, const char *home);
/* Records the path an error is about; used as `return serve_fail(o, -errno, path)`. */
int serve_fail(struct outcome *o, int error, const char *path);

int file_read(const struct file_request *r, struct outcome *o);
int file_write(const struct file_request *r, struct outcome *o);
int file_stat(const struct file_request *r, struct outcome *o);
int file_list(const struct file_request *r, struct outcome *o);
int file_mkdir(const struct file_request *r, struct outcome *o);
int file_move(const struct file_request *r, struct outcome *o);
int file_copy(const struct file_request *r, struct outcome *o);
int file_remove(const struct file_request *r, struct outcome *o);
int file_chmod(const struct file_request *r, struct outcome *o);
int file_chown(const struct file_request *r, struct outcome *o);
int file_symlink(const struct file_request *r, struct outcome *o);
int file_find(const struct file_request *r, struct outcome *o);
int file_grep(const struct file_request *r, struct outcome *o);
int file_replace(const struct file_request *r, struct outcome *o);
int file_attributes(const struct file_request *r, struct outcome *o);
int file_pack(const struct file_request *r, struct outcome *o);
int file_unpack(const struct file_request *r, struct outcome *o);
int file_watch(const struct file_request *r, struct outcome *o);
int file_root(const struct file_request *r, struct outcome *o);
int file_trust(const struct file_request *r, struct outcome *o);

/* ---- io.c: records to and from the front ---- */

/* Both directions end with -ECONNRESET when the front has gone; then there is nothing left to do.
 */
void io_open(int fd);
int io_fd(void);
int io_next(struct record_header *h);
/* The payload of a record that is not DATA; valid until the next io_next. */
int io_payload(const struct record_header *h, const char **payload);
/* Some bytes of a DATA record, at most max, at least one. */
ssize_t io_data(char *bytes, size_t max);

/* Buffers output; it is sent when the buffer is full and by io_flush. */
int io_put(enum record_type type, const void *fixed, size_t size, const struct record_text *texts,
	size_t count);
int io_put_bytes(const void *bytes, size_t len);
int io_flush(void);

/* ---- entry.c: descriptions of files ---- */

struct text_pair {
	const char *owner, *group;
};

/* The path as the front will show it: absolute, without "//" and "/./"; links are not looked at. */
int path_absolute(const char *path, struct buf *out);
/* path is absolute; at dir_fd/name it is found, for the target of a link. */
int put_entry(
	const char *path, const struct stat *st, int dir_fd, const char *name, uint32_t flags);
/* Sends the entry of a path, as the answer to a change of it. */
int put_entry_of(const struct file_request *r, const char *path, bool follow);
int64_t time_ns(const struct timespec *t);

/* ---- attributes.c ---- */

/* Sends the extended attributes of the namespace "user". */
int put_attributes(const char *path);
/* Removes all extended attributes whose names begin with prefix. */
int remove_attributes(int fd, const char *prefix, size_t len);

/* ---- names.c: users and groups of the sandbox ---- */

const char *name_of_user(uid_t uid); /* "": it has none */
const char *name_of_group(gid_t gid);
/* A user's home, by name or number; -ESRCH: there is no such user. */
int home_of_user(const char *name, char home[PATH_MAX]);
/* "user", "user:group", ":group"; (uid_t)-1 and (gid_t)-1 where nothing is said. -EINVAL: unknown.
 */
int owner_parse(const char *text, size_t len, uid_t *uid, gid_t *gid);

/* ---- dirs.c: a way down a tree and up again ---- */

#define DIRS_OPEN 8

/* A stack of directories, of which only the last DIRS_OPEN are open: on the way up, ".." is opened
 * and must be the directory that we came from. Links are never followed. */
struct dirs {
	struct dir_id {
		dev_t dev;
		ino_t ino;
	} * levels;
	size_t depth, capacity;
	int fds[DIRS_OPEN];
};

/* Takes the descriptor of the topmost directory, also on failure. */
int dirs_open(struct dirs *d, int fd);
void dirs_finish(struct dirs *d);
int dirs_fd(const struct dirs *d);
int dirs_enter(struct dirs *d, const char *name);
/* Returns -ESTALE if the current directory was moved meanwhile. */
int dirs_leave(struct dirs *d);

/* ---- walk.c: everything below a directory, in the order of names ---- */

#define WALK_PATH_MAX (16u * 1024)

struct walk {
	struct dirs dirs;
	struct walk_level *levels;
	size_t depth, capacity;
	size_t names_size;  /* of all levels together */
	struct buf path;    /* relative to the top, NUL behind */
	const char *name;   /* of the entry, the end of path */
	unsigned char type; /* DT_*; never DT_UNKNOWN */
};

/* Takes fd, also on failure. `after` (or "") is a path of this walk, entered at most max_depth
 * levels deep: the entries behind it are given. */
int walk_open(struct walk *w, int fd, const char *after, size_t max_depth);
void walk_finish(struct walk *w);
/* 1: an entry; 0: the end; negative: an error. */
int walk_next(struct walk *w);
/* Into the entry, which is a directory. 0 when it is one of the kernel's own (/proc, /sys) or gone;
 * 1 when in. */
int walk_enter(struct walk *w);
int walk_fd(const struct walk *w);
/* Returns how many directories below the top the entry is; 0 if directly in it. */
size_t walk_depth(const struct walk *w);

/* ---- glob.c: patterns of paths ---- */

struct glob;

/*
 * "*", "?", "[a-z]", "[!a]", "{a,b}" within a name, "**" for any number of directories. Without a
 * slash it is about names at any depth; with one in front, about the top. -EINVAL: malformed, or
 * too long.
 */
int glob_compile(const char *pattern, bool ignore_case, struct glob **ret);
void glob_free(struct glob *g);
bool glob_match(const struct glob *g, const char *path);
/* Whether something below this directory could match. */
bool glob_may_match_below(const struct glob *g, const char *path);

/* ---- target_file.c: files that are written ---- */

/* A file being written: in place, or beside what it will replace. */
struct target_file {
	int fd;
	int dir_fd;    /* of an atomic one */
	char *name;    /* in dir_fd */
	bool nameless; /* it has no name yet */
	char temporary[32];
};

int make_parents(const char *path, uid_t uid, gid_t gid);
/* Opens path for writing what a RECORD_FILE says. Negative: nothing was changed but parents. */
int target_file_open(struct target_file *p, const char *path, const struct record_file *how,
	uid_t uid, gid_t gid);
/* The content is complete: from now on it is seen. */
int target_file_commit(struct target_file *p);
/* Closes the file; without target_file_commit it is discarded. */
void target_file_finish(struct target_file *p);
void random_name(char out[32]);

/* ---- hard_links.c: files with several names ---- */

/*
 * The files with several names that were seen, and their first paths. Bounded: a file that does not
 * fit is forgotten, and treated as a new one.
 */
struct hard_links {
	struct hard_link **buckets;
	size_t size;
};

/* The path under which it was seen before; NULL: never, and from now on it is `path`. */
const char *hard_links_seen(struct hard_links *l, const struct stat *st, const char *path);
void hard_links_finish(struct hard_links *l);

/* ---- text.c: files as lines ---- */

#define TEXT_MAX (1u << 20)

/* Blocks of whole lines; a line longer than TEXT_MAX comes in pieces. */
struct text {
	int fd;
	char *bytes; /* TEXT_MAX and room for a NUL */
	size_t start, end;
	bool at_end;
};

/* 0; -ENXIO when it is no regular file; -ENOEXEC when it is no text. */
int text_open(struct text *t, int dir_fd, const char *name);
void text_finish(struct text *t);
/* 1: *block and *len; 0: there is no more; negative: an error. */
int text_next(struct text *t, char **block, size_t *len);

/* Holds a compiled search pattern. */
struct needle {
	const char *fixed; /* NULL: by expression */
	size_t fixed_len;
	regex_t expression;
};

int needle_compile(struct needle *n, const struct file_request *r);
void needle_finish(struct needle *n);
/* Calls `each` for the request's path, or for every file below it that matches the glob. */
typedef int each_file_fn(void *arg, int dir_fd, const char *name, const char *path);
int text_each_file(const struct file_request *r, each_file_fn *each, void *arg, struct outcome *o);

/* ---- copy.c, remove.c: parts of other operations ---- */

/* user.* only: the others are not the user's to give. */
void copy_attributes(int from, int to);

int copy_tree(const char *from, const char *to, struct outcome *o);
int remove_tree(const char *path, struct outcome *o);
int remove_at(int dir_fd, const char *name, struct outcome *o);
/* A name for what is being made, in the same directory as path. Owned; NULL when there is no
 * memory. */
char *path_beside(const char *path);

/* ---- layer.c: layers of images ---- */

/* Marks everything present now as belonging to the layers below. */
void layer_begin(struct timespec *since);
bool layer_is_whiteout(const char *name);
int layer_apply_whiteout(
	int dir_fd, const char *name, const struct timespec *since, struct outcome *o);
/* Removes whatever is in a member's place, except a directory where a directory is to be. */
int layer_make_room(int dir_fd, const char *name, bool for_directory, struct outcome *o);
