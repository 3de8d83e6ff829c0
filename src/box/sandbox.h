/* Sandboxes: made, found, listed, destroyed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "box/box.h"
#include "box/files.h"
#include "wire/keeper.h"

enum sandbox_status {
	SANDBOX_CREATING,
	SANDBOX_IDLE,
	SANDBOX_RUNNING,
	SANDBOX_PAUSED,     /* every process stands where it was */
	SANDBOX_STOPPING,   /* its processes are being ended */
	SANDBOX_SUSPENDED,  /* nothing runs; its disk is kept */
	SANDBOX_TERMINATED, /* ended by time, or with its work done */
	SANDBOX_FAILED,     /* its processes were lost; its disk is kept */
	SANDBOX_DELETED,    /* ended by request */
	SANDBOX_STATUS_COUNT
};

const char *sandbox_status_name(enum sandbox_status status);
/* FAILED for what is no name. */
enum sandbox_status sandbox_status_of(const char *name);

/* What happens when a time is up. */
enum sandbox_expiry {
	EXPIRY_DESTROY,
	EXPIRY_PAUSE,   /* with its memory */
	EXPIRY_SUSPEND, /* without */
	EXPIRY_COUNT
};

const char *sandbox_expiry_name(enum sandbox_expiry expiry);
bool sandbox_expiry_of(const char *name, enum sandbox_expiry *ret);

struct volume_mount {
	const char *volume; /* id or name */
	const char *path;
	bool read_only;
};

struct sandbox_spec {
	const char *tenant;
	const char *template_name; /* NULL: the default */
	const char *snapshot; /* what its disk begins with, instead of a template; NULL: none */
	const char *name;     /* NULL or "": none */
	const char *description;
	const char *user;    /* NULL: "user" */
	const char *workdir; /* NULL: the user's home */
	const char *project;
	const char *metadata;
	const char *const *env;     /* NAME=VALUE, NULL-terminated; may be NULL */
	struct resources resources; /* 0 in a field: the default */
	int64_t idle_ms, execution_ms;
	int64_t lease_ms;          /* ends so long after its creation, whatever it does; 0: never */
	int64_t paused_timeout_ms; /* ends when it was paused for so long; 0: never */
	enum sandbox_expiry on_idle, on_lease;
	bool ephemeral;   /* ends with its first execution */
	bool auto_resume; /* the next call wakes it */
	const struct volume_mount *volumes;
	size_t volume_count;
	const struct file_spec *files;
	size_t file_count;
	/* Installed before it is made; NULL-terminated; may be NULL. */
	const char *const *dependencies; /* apt packages */
	const char *const *packages;     /* npm packages */
	/* Of a fork: whose, and the copy of its disk. */
	struct {
		const struct sandbox *source;
		const struct disk_name *disk;
	} fork;
};

/* A sandbox as everybody may read it. */
struct sandbox_view {
	const char *id, *tenant, *name, *description, *template_name, *user, *workdir, *project;
	const char *metadata;
	const char *env; /* NAME=VALUE strings, each with its NUL */
	size_t env_len;
	enum sandbox_status status;
	const char *failure; /* "": none */
	struct resources resources;
	int64_t idle_ms, execution_ms;
	int64_t created_ms, last_active_ms;
	int64_t expires_ms;    /* when the next of its times is up, as things are; 0: not by time */
	int64_t terminates_ms; /* when that ends it; 0: not by time */
	int64_t lease_ms, lease_end_ms, paused_timeout_ms;
	enum sandbox_expiry on_idle, on_lease;
	bool ending;                         /* it is on its way out */
	int64_t ended_ms;                    /* 0: it has not */
	const char *ended_by;                /* "": it has not */
	int64_t cpu_us, memory_byte_seconds; /* of one that has ended: all it has used */
	int64_t startup_us;
	uint64_t executions;
	bool auto_resume;
	bool ephemeral; /* it ends with its first execution */
	const char *boot_id;
	const char *snapshot;                /* on which its disk began; "": none */
	const char *parent;                  /* the sandbox it is a fork of; "": none */
	const struct warden_volume *volumes; /* WARDEN_VOLUMES_MAX; NULL: none are known */
	int64_t paused_ms; /* since when it is paused or suspended; 0: it is not */
};

/* On failure sandbox is NULL, and nothing is left of it. */
typedef void sandbox_created_fn(void *arg, struct sandbox *sandbox, const struct error *e);
int sandbox_create(struct box *b, const struct sandbox_spec *spec, sandbox_created_fn *created,
	void *arg, struct error *e);

/* NULL both for what does not exist and for what is somebody else's. */
struct sandbox *sandbox_find(struct box *b, const char *tenant, const char *id);
/* In the order of creation, those of one tenant: the first, or the first behind a place in that
 * order. */
struct sandbox *sandbox_first(
	struct box *b, const char *tenant, int64_t after_ms, const char *after_id);
struct sandbox *sandbox_next(const struct sandbox *s);
/* The same backwards: the last, or the last before a place. */
struct sandbox *sandbox_last(
	struct box *b, const char *tenant, int64_t before_ms, const char *before_id);
struct sandbox *sandbox_previous(const struct sandbox *s);
/* Of whichever tenant, for callers that have shown a token of the sandbox itself. */
struct sandbox *sandbox_find_any(struct box *b, const char *id);
/* The first of whichever tenant that matches. */
struct sandbox *sandbox_search(
	struct box *b, bool (*matches)(void *arg, const char *id), void *arg);
void sandbox_view(const struct sandbox *s, struct sandbox_view *out);

/*
 * Whoever wants to know that a sandbox has another status: while it is told, the sandbox can be
 * found and viewed. It may unwatch itself, and nothing else of the sandbox's may be done.
 */
struct sandbox_watcher {
	char id[ID_SIZE];
	void (*changed)(void *arg, const struct sandbox *s);
	void *arg;
	struct sandbox_watcher *prev, *next;
};

void sandbox_watch(struct box *b, struct sandbox_watcher *w);
void sandbox_unwatch(struct box *b, struct sandbox_watcher *w);

/* e: NULL when it is done. */
typedef void sandbox_done_fn(void *arg, const struct error *e);

/*
 * With its memory every process stops where it is, and goes on there later; without, the processes
 * end and only the disk stays. Pausing what is paused works, and without memory ends what was kept.
 */
void sandbox_pause(struct sandbox *s, bool keep_memory, sandbox_done_fn *done, void *arg);
/* Without memory it is booted anew, on its disk. What is awake stays so. */
void sandbox_resume(struct sandbox *s, bool keep_memory, sandbox_done_fn *done, void *arg);

/* What stays as it is: NULL, SANDBOX_UNCHANGED. */
#define SANDBOX_UNCHANGED (-1)

struct sandbox_change {
	const char *name, *description, *metadata;
	const char *const *env;   /* NAME=VALUE, NULL-terminated: set or replaced */
	const char *const *unset; /* names, NULL-terminated: taken out */
	int64_t idle_ms, execution_ms, paused_timeout_ms;
	int64_t lease_ms;        /* from now on; 0: for ever */
	bool lease_extends_only; /* an end that is later already stays */
	int on_idle, on_lease;   /* enum sandbox_expiry */
	int auto_resume;         /* 0, 1 */
};

extern const struct sandbox_change sandbox_no_change;
/* 0 and a call when it is stored; or a refusal, and nothing has changed. */
int sandbox_update(struct sandbox *s, const struct sandbox_change *change, sandbox_done_fn *done,
	void *arg, struct error *e);

/* One that has ended, for as long as its row is kept; view is NULL when there is none. */
typedef void sandbox_loaded_fn(void *arg, const struct sandbox_view *view);
void sandbox_load_ended(
	struct box *b, const char *tenant, const char *id, sandbox_loaded_fn *loaded, void *arg);

enum sandbox_order {
	SANDBOX_ORDER_CREATION,
	SANDBOX_ORDER_ACTIVITY,
	SANDBOX_ORDER_NAME,
	SANDBOX_ORDER_STATUS,
	SANDBOX_ORDER_EPHEMERAL,
	SANDBOX_ORDER_EXECUTIONS
};

/* Which of those that have ended, and which part of the list. */
struct sandbox_filter {
	const char *tenant;
	const char *status, *name, *project, *snapshot; /* NULL or "": any */
	int ephemeral;                                  /* -1: either */
	int64_t after_ms;                               /* made after this moment and id */
	const char *after_id;                           /* NULL: whenever */
	enum sandbox_order order;
	bool backwards;
	int64_t offset;
	unsigned limit;
};

/* For each, and at the end with NULL and how many there are without offset and limit. */
typedef void sandbox_listed_fn(void *arg, const struct sandbox_view *view, int64_t total);
void sandbox_list_ended(
	struct box *b, const struct sandbox_filter *filter, sandbox_listed_fn *listed, void *arg);

/* done may be NULL. A second call while the first is under way waits for the same end. */
void sandbox_destroy(struct sandbox *s, void (*done)(void *arg), void *arg);
