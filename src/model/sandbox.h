/*
 * A sandbox as data: its settings, which a client gives, and its record, which the store keeps and
 * views show. The same structs are part of a request, of the living object, of a view and of a row,
 * so that copying is one assignment. Texts are borrowed except in the living object (fields_copy,
 * fields_free).
 *
 * sandbox_fields describes each member once. A member without a row, and a row that covers another
 * one's member, fail tests/unit/test_fields.c.
 */
#pragma once

#include "base/field.h"
#include "base/id.h"
#include "model/file.h"
#include "model/network.h"
#include "wire/warden.h"

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

/* The action when a time is up. */
enum sandbox_expiry {
	EXPIRY_DESTROY,
	EXPIRY_PAUSE,   /* with its memory */
	EXPIRY_SUSPEND, /* without */
	EXPIRY_COUNT
};

/* Says who, besides the tenant's keys, may see what listens on a sandbox's ports. */
enum sandbox_previews {
	PREVIEWS_PRIVATE, /* whoever holds a token of a port */
	PREVIEWS_PUBLIC,  /* everyone */
	PREVIEWS_TOKEN,   /* whoever holds the sandbox's traffic token, or one of a port */
	PREVIEWS_COUNT
};

#define PREVIEW_HOST_MAX 255

/* In a request 0 is the server's default. */
struct resources {
	int64_t memory;     /* bytes */
	int64_t cpu;        /* millicores */
	int64_t pids;       /* processes and threads */
	int64_t open_files; /* per process */
	int64_t disk;       /* bytes that it may write; 0 in a record: not limited */
};

struct sandbox_settings {
	const char *template_name; /* in a request NULL for the default */
	const char *name;          /* "": none */
	const char *description;
	const char *user;    /* in a request NULL for the template's */
	const char *workdir; /* "": the user's home */
	const char *project;
	const char *metadata; /* JSON, kept as it came */
	struct strings env;
	struct strings placeholders; /* SECRET=TEXT: what stands for it in env */
	struct resources resources;
	int64_t idle_ms;           /* without use; 0: no limit, as for the next three */
	int64_t execution_ms;      /* of one execution */
	int64_t lease_ms;          /* since its creation or the last extension */
	int64_t paused_timeout_ms; /* since it was paused */
	enum sandbox_expiry on_idle, on_lease;
	enum sandbox_previews previews;
	const char *port_grants;  /* who else may see which port: model/port.h */
	const char *preview_host; /* what Host says to its servers; "": as the client has it */
	struct network_settings network;
	bool auto_resume; /* the next call wakes it */
	bool ephemeral;   /* ends with its first execution */
};

struct sandbox_record {
	/* The settings, under their own names and as a whole. */
	union {
		struct sandbox_settings settings;
		struct sandbox_settings;
	};
	const char *tenant;
	const char *packed_volumes; /* as box/disk/volume.c packs them */
	const char *ended_by;       /* "": it has not */
	struct strings authority;   /* sealed; empty until it has rules */
	char id[ID_SIZE];
	char snapshot[ID_SIZE];   /* on which its disk began; "": none */
	char parent[ID_SIZE];     /* the sandbox it is a fork of; "": none */
	char build[ID_SIZE];      /* the version of its template; "": of a built-in one */
	char root[ID_SIZE];       /* the layer that its root is in; "": that of `base` */
	char layer[ID_SIZE];      /* on which its disk began, unless on a snapshot; "": none */
	char checkpoint[ID_SIZE]; /* that it made or was restored from last; "": none */
	char boot_id[UUID_SIZE];
	char failure[160]; /* "": none */
	enum sandbox_status status;
	int64_t created_ms;
	int64_t startup_us;
	int64_t lease_end_ms; /* 0: never */
	int64_t paused_ms;    /* since when it is paused, suspended or failed; 0: it is not */
	int64_t ended_ms;     /* 0: it has not */
	int64_t cpu_us, memory_byte_seconds; /* used by its boots that have ended */
	int64_t network_in, network_out;     /* bytes from and to the internet */
	int64_t executions; /* written when the row is new; then the store counts */
	int64_t events;     /* the number of its last event */
	/* Known while it lives. */
	int64_t last_active_ms;
	int64_t expires_ms;    /* when the next of its times is up, as things are; 0: not by time */
	int64_t terminates_ms; /* when that ends it; 0: not by time */
};

extern const char *const sandbox_status_names[], *const sandbox_expiry_names[],
							 *const sandbox_previews_names[];
extern const struct field_table sandbox_model;

/* Returns when it was made, and its id: its place in lists with pages. */
int64_t sandbox_place(const void *record, const char **id);

static inline const char *sandbox_status_name(enum sandbox_status status)
{
	return sandbox_status_names[status];
}

#define FORKS_MAX 100 /* of one request */

struct fork_origin;

struct volume_mount {
	const char *volume; /* id or name */
	const char *path;
	bool read_only;
};

struct sandbox_spec {
	union {
		struct sandbox_settings settings;
		struct sandbox_settings;
	};
	const char *tenant;
	bool has_network;     /* else it gets the server's default */
	bool network_is_wish; /* a host that cannot give it makes the sandbox without */
	const char *snapshot; /* what its disk begins with, instead of a template; NULL: none */
	const struct volume_mount *volumes;
	size_t volume_count;
	const struct file_spec *files;
	size_t file_count;
	/* Installed before it is made; NULL-terminated; may be NULL. */
	const char *const *dependencies; /* apt packages */
	const char *const *packages;     /* npm packages */
	const struct fork_origin *fork;  /* set by box alone; NULL: it is no fork */
};

/* The view of a sandbox. */
struct sandbox_view {
	union {
		struct sandbox_record record;
		struct sandbox_record;
	};
	bool ending;                                  /* it is on its way out */
	const struct warden_volume *volumes;          /* WARDEN_VOLUMES_MAX; NULL: none are known */
	const char *volume_names[WARDEN_VOLUMES_MAX]; /* of those that still exist; else NULL */
};

/* Returns whether the sandbox has not ended and is not about to. A failed one can be resumed. */
static inline bool sandbox_lives(const struct sandbox_view *view)
{
	return !view->ending &&
	       (view->status <= SANDBOX_SUSPENDED || view->status == SANDBOX_FAILED);
}

/*
 * Returns whether a resume is needed: the sandbox is paused, suspended, on its way there, or has
 * failed.
 */
static inline bool sandbox_sleeps(const struct sandbox_view *view)
{
	return view->status == SANDBOX_PAUSED || view->status == SANDBOX_STOPPING ||
	       view->status == SANDBOX_SUSPENDED || view->status == SANDBOX_FAILED;
}

/* Returns the status for callers that wait for the sandbox's one command: never idle. */
enum sandbox_status sandbox_apparent_status(const struct sandbox_view *view);

/* A change of settings: only those that are marked as given are applied. */
struct sandbox_change {
	union {
		struct sandbox_settings settings;
		struct sandbox_settings;
	};
	struct field_set given;       /* rows of sandbox_model */
	const char *const *set_env;   /* NAME=VALUE, NULL-terminated: set or replaced */
	const char *const *unset_env; /* names, NULL-terminated: taken out */
	bool lease_extends_only;      /* an end that is later already stays */
	bool lease_ends;              /* now; the next one is as long as this one was */
};

/* Marks a member of struct sandbox_settings. */
#define sandbox_change_gives(change, member)                                                       \
	field_set_add(&(change)->given,                                                            \
		(size_t)field_at(&sandbox_model, offsetof(struct sandbox_settings, member)))

enum sandbox_order {
	SANDBOX_ORDER_CREATION,
	SANDBOX_ORDER_ACTIVITY,
	SANDBOX_ORDER_NAME,
	SANDBOX_ORDER_STATUS,
	SANDBOX_ORDER_EPHEMERAL,
	SANDBOX_ORDER_EXECUTIONS
};

/* Selects ended sandboxes, and a page of them. */
struct sandbox_filter {
	const char *tenant, *status;
	const char *name, *project, *snapshot; /* NULL or "": any */
	int ephemeral;                         /* -1: either */
	int64_t after_ms;     /* made after this moment and id, or before if backwards */
	const char *after_id; /* NULL: whenever */
	enum sandbox_order order;
	bool backwards;
	bool counts; /* how many there are in all */
	int64_t offset;
	unsigned limit;
};
