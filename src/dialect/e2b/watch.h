/*
 * What happens in a directory, in E2B's words: one notice may be two events, and an event may have
 * the file's entry beside it.
 */
#pragma once

#include "dialect/e2b/entry.h"
#include "dialect/e2b/envd.h"

/* What WatchDir and CreateWatcher are asked with. */
struct watch_message {
	const char *path;
	bool recursive, include_entry, network_mounts;
};

/*
 * The texts of *ret are the message's and the request's. *given is the path as the client has it,
 * in the request's memory; it is left alone on failure.
 */
int watch_decode(struct http_request *req, const cJSON *message, struct watch_spec *ret,
	const char **given, struct error *e);

/* Collects the entry that is told before its notice. Zeroed at first. */
struct watch_entry {
	struct buf text;
	struct json_writer json;
	struct entry_writer writer;
};

struct watch_event {
	enum file_event kind;
	const char *name;        /* relative to the directory */
	const struct buf *entry; /* JSON, or NULL */
};

/* For OP_ENTRY and OP_ATTRIBUTE. */
void watch_keep_entry(struct watch_entry *kept, const struct op_event *event);
/*
 * For OP_NOTICE: returns how many events it is, which is two for a rename. Call watch_drop_entry
 * when they are put.
 */
unsigned watch_translate(
	struct watch_entry *kept, const struct file_notice *notice, struct watch_event out[2]);
void watch_drop_entry(struct watch_entry *kept);
void watch_put_event(struct json_writer *w, const struct watch_event *event);
