/* Files of a sandbox. Comes with bunker.h. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Whose rights and where relative paths begin; NULL, also for the struct: the sandbox's. */
struct bunker_place {
	const char *user;
	const char *cwd;
};

/* Paths are as the file system has them: any bytes. */
struct bunker_entry {
	char *path;       /* absolute */
	const char *name; /* its last part */
	char *target;     /* of a link; "" */
	const char *type; /* file directory symlink fifo socket characterDevice blockDevice */
	const char *mode; /* "0644" */
	const char *owner, *group;
	const char *modified_at; /* RFC 3339 */
	int64_t size, uid, gid, links;
	struct bunker_json *json; /* NULL of those that a callback gets */
};
void bunker_entry_finish(struct bunker_entry *entry);

int bunker_file_stat(struct bunker *b, const char *sandbox_id, const char *path, bool follow,
	const struct bunker_place *place, struct bunker_entry *ret, struct bunker_error *e);
/* depth 0: all levels. A list may be long: it comes in pages, each told as it is there. */
typedef int bunker_entry_fn(void *arg, const struct bunker_entry *entry);
int bunker_file_list(struct bunker *b, const char *sandbox_id, const char *path, unsigned depth,
	const struct bunker_place *place, bunker_entry_fn *each, void *arg, struct bunker_error *e);
int bunker_file_find(struct bunker *b, const char *sandbox_id, const char *path,
	const char *pattern, const struct bunker_place *place, bunker_entry_fn *each, void *arg,
	struct bunker_error *e);
int bunker_file_read(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_place *place, bunker_data_fn *data, void *arg, struct bunker_error *e);
/* mode NULL: 0644 for a new file. */
int bunker_file_write(struct bunker *b, const char *sandbox_id, const char *path, const char *mode,
	const struct bunker_place *place, bunker_read_fn *read, void *arg, struct bunker_error *e);
/* With the directories above it; one that is there is fine. */
int bunker_file_mkdir(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_place *place, struct bunker_error *e);
int bunker_file_remove(struct bunker *b, const char *sandbox_id, const char *path, bool recursive,
	const struct bunker_place *place, struct bunker_error *e);

struct bunker_grep_options {
	const char *pattern;
	const char *include; /* glob; NULL: all files */
	bool regex, ignore_case;
	struct bunker_place place;
};

struct bunker_match {
	const char *path;
	const char *text;
	int64_t line, column;
};
typedef int bunker_match_fn(void *arg, const struct bunker_match *match);
/* *truncated: there are more than the server tells at once. */
int bunker_file_grep(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_grep_options *options, bunker_match_fn *each, void *arg,
	bool *truncated, struct bunker_error *e);

struct bunker_file_event {
	const char *type; /* ready create write remove rename chmod overflow */
	const char *path; /* relative to what is watched */
	const char *to;   /* of a rename; "" */
	bool directory;
	const char *json;
};
typedef int bunker_file_event_fn(void *arg, const struct bunker_file_event *event);
/* Until what is watched is gone, or the callback says so. */
int bunker_file_watch(struct bunker *b, const char *sandbox_id, const char *path, bool recursive,
	const struct bunker_place *place, bunker_file_event_fn *each, void *arg,
	struct bunker_error *e);

/* A directory, or a file, as a tar archive; and one unpacked into a directory, which is made. */
int bunker_tar_get(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_place *place, bunker_data_fn *data, void *arg, struct bunker_error *e);
int bunker_tar_put(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_place *place, bunker_read_fn *read, void *arg, struct bunker_error *e);

#ifdef __cplusplus
}
#endif
