/* Sandboxes: made, listed, paused, destroyed; their events, usage and environment. Comes with
 * bunker.h. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* A file to put in the sandbox before anything runs. */
struct bunker_file {
	const char *path;
	const void *data;
	size_t size;
	unsigned mode; /* 0: the server's default */
};

/* A volume in a new sandbox. */
struct bunker_mount {
	const char *volume; /* id or name */
	const char *path;
	bool read_only;
};

struct bunker_create_options {
	const char *template_name;
	const char *snapshot; /* instead: an id, "name" or "name:tag" */
	const char *name;
	const char *description;
	const char *memory; /* "512Mi" */
	const char *cpu;    /* "500m", "2" */
	const char *disk;   /* "2Gi" */
	int64_t pids;
	int64_t open_files;
	const char *idle_timeout;       /* "10m" */
	const char *execution_timeout;  /* for each execution; "30s" */
	const char *lease;              /* ends so long after its creation or last resume; "1h" */
	const char *paused_timeout;     /* ends when it was paused for so long */
	const char *on_idle, *on_lease; /* "destroy", "pause", "suspend" */
	bool auto_resume;               /* the next call wakes it */
	const char *user;
	const char *workdir;
	const char *project;
	const struct bunker_pair *env;
	size_t env_count;
	const struct bunker_pair *metadata;
	size_t metadata_count;
	const struct bunker_file *files;
	size_t file_count;
	const struct bunker_mount *volumes;
	size_t volume_count;
	const char *const *dependencies; /* apt packages to install first */
	size_t dependency_count;
	const char *const *packages; /* npm packages, in the same way */
	size_t package_count;
	/* Any other setting by its name in the API: {"timeout.idle", "10m"}. Members win. */
	const struct bunker_pair *settings;
	size_t setting_count;
};

struct bunker_sandbox {
	const char *id;
	const char *name;
	const char *description;
	const char *status; /* creating idle running paused stopping suspended terminated failed
			       deleted */
	const char *status_reason;
	const char *template_name;
	const char *snapshot; /* the id of what its disk began with; "": its template */
	const char *parent;   /* the sandbox it is a fork of; "" */
	const char *user;
	const char *workdir;
	const char *project;
	const char *isolation;
	const char *created_at; /* the times are RFC 3339 */
	const char *last_active_at;
	const char *expires_at;    /* when the next of its times is up */
	const char *terminates_at; /* when that ends it */
	const char *lease_ends_at;
	const char *paused_at;
	const char *ended_at;
	const char *ended_by;
	const char *boot_id;
	const char *on_idle, *on_lease;
	const char *memory;
	const char *cpu;
	const char *disk; /* "": not limited */
	const char *idle_timeout;
	const char *execution_timeout;
	const char *paused_timeout;
	const char *lease;
	bool auto_resume;
	int64_t pids;
	int64_t open_files;
	int64_t executions;
	double startup_ms;
	struct bunker_pair *env;
	size_t env_count;
	struct bunker_pair *metadata;
	size_t metadata_count;
	struct bunker_json *json;
};
void bunker_sandbox_finish(struct bunker_sandbox *sandbox);

int bunker_create(struct bunker *b, const struct bunker_create_options *options,
	struct bunker_sandbox *ret, struct bunker_error *e);
int bunker_get(
	struct bunker *b, const char *id, struct bunker_sandbox *ret, struct bunker_error *e);
int bunker_destroy(struct bunker *b, const char *id, struct bunker_error *e);

/*
 * With its memory every process stops where it is; without, processes end and the disk stays, and a
 * resume boots it anew.
 */
int bunker_pause(struct bunker *b, const char *id, bool keep_memory, struct bunker_sandbox *ret,
	struct bunker_error *e);
int bunker_resume(struct bunker *b, const char *id, bool keep_memory, struct bunker_sandbox *ret,
	struct bunker_error *e);
/* From now on, longer or shorter than before; "0s": no end. */
int bunker_set_lease(struct bunker *b, const char *id, const char *duration,
	struct bunker_sandbox *ret, struct bunker_error *e);

/*
 * Adds rules to what it may reach, or takes them from it. *ret: its network, for
 * bunker_json_text and bunker_json_free.
 */
int bunker_change_network(struct bunker *b, const char *id, bool allows, const char *const *rules,
	size_t count, struct bunker_json **ret, struct bunker_error *e);

struct bunker_event {
	int64_t number; /* counted from 1 */
	const char *type;
	const char *cause;
	const char *created_at;
	struct bunker_pair *details;
	size_t detail_count;
	struct bunker_json *json;
};

/* The event is valid for the time of the call. Anything but 0 ends it with BUNKER_STOPPED. */
typedef int bunker_event_fn(void *arg, const struct bunker_event *event);
/* Those behind `after`, oldest first; with `follow` also those to come, until the sandbox's end. */
int bunker_events(struct bunker *b, const char *id, int64_t after, bool follow,
	bunker_event_fn *each, void *arg, struct bunker_error *e);

struct bunker_usage {
	int64_t cpu_ms; /* since its creation, as the next */
	int64_t memory_byte_seconds;
	int64_t network_in, network_out;
	int64_t memory, disk, pids; /* now */
	const char *ended_at;
	struct bunker_json *json;
};
/* Also of one that has ended. */
int bunker_usage(
	struct bunker *b, const char *id, struct bunker_usage *ret, struct bunker_error *e);
void bunker_usage_finish(struct bunker_usage *usage);

struct bunker_list_options {
	const char *status;
	const char *project;
	const char *name;
	const struct bunker_pair *metadata;
	size_t metadata_count;
	size_t limit; /* 0: all of them, however many pages that takes */
};

struct bunker_sandbox_list {
	struct bunker_sandbox *items;
	size_t count;
};
int bunker_list(struct bunker *b, const struct bunker_list_options *options,
	struct bunker_sandbox_list *ret, struct bunker_error *e);
void bunker_sandbox_list_finish(struct bunker_sandbox_list *list);
/* {"sandboxes":[...]}, for the caller to free. NULL: out of memory. */
char *bunker_sandbox_list_json(const struct bunker_sandbox_list *list);

struct bunker_env {
	struct bunker_pair *items;
	size_t count;
	struct bunker_json *json;
};
void bunker_env_finish(struct bunker_env *env);
int bunker_env_get(
	struct bunker *b, const char *sandbox_id, struct bunker_env *ret, struct bunker_error *e);
/* A value of NULL takes the variable out. */
int bunker_env_change(struct bunker *b, const char *sandbox_id, const struct bunker_pair *changes,
	size_t count, struct bunker_env *ret, struct bunker_error *e);

#ifdef __cplusplus
}
#endif
