/*
 * What happens in a directory, in E2B's words: one notice of the core's may be two events, and an
 * event may need a look at the file.
 */
#pragma once

#include "dialect/e2b/entry.h"
#include "dialect/e2b/envd.h"

/* What WatchDir and CreateWatcher are asked with. */
struct watch_message {
	const char *path;
	bool recursive, include_entry, network_mounts;
};

int watch_decode(const cJSON *message, struct watch_message *ret, struct error *e);

struct watch_event {
	enum file_event kind;
	const char *name;  /* relative to the directory */
	const char *entry; /* JSON, or NULL */
};

/* Of a notice: one event, or two for a rename. */
unsigned watch_translate(const struct file_notice *notice, struct watch_event out[2]);
/* Whether a look at the file belongs to it, when that was asked for. */
bool watch_wants_entry(const struct watch_event *event);
void watch_put_event(struct json_writer *w, const struct watch_event *event);

/* ---- looking at a file, for its event ---- */

struct watch_lookup {
	struct file_call *call; /* NULL: none is under way */
	struct buf out;
	struct json_writer json;
	struct entry_writer entry;
	void (*found)(void *arg, const char *json); /* NULL: it is gone */
	void *arg;
};

/* `name` below `directory`; calls back later. False: nothing can be asked. */
bool watch_lookup_begin(struct watch_lookup *l, struct sandbox *s, const char *cwd,
	const char *directory, const char *name);
void watch_lookup_cancel(struct watch_lookup *l);

/* ---- a watch that tells as it happens ---- */

struct watch_events {
	void (*ready)(void *arg);
	void (*event)(void *arg, const struct watch_event *event);
	void (*ended)(void *arg, const struct error *why); /* the last call */
};

struct watch {
	struct box *box;
	char sandbox_id[ID_SIZE];
	struct file_call *call; /* NULL: it has ended, or never began */
	struct watch_lookup lookup;
	struct buf pending; /* events that wait for a lookup: a kind's byte, the name, NUL */
	char *cwd, *directory;
	bool include_entry, held, paused;
	const struct watch_events *events;
	void *arg;
};

int watch_start(struct watch *w, struct http_request *req, const struct watch_message *message,
	const struct watch_events *events, void *arg, struct error *e);
/* Nothing more is called. Fine if it has not begun. */
void watch_stop(struct watch *w);
/* No more events for now; a few that are on their way still come. */
void watch_pause(struct watch *w);
void watch_resume(struct watch *w);
