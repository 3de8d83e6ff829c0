/* What sandboxes start from. Comes with bunker.h. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct bunker_template {
	const char *id;
	const char *name;
	const char *description;
	const char *status; /* waiting building ready failed cancelled */
	const char *tags;   /* separated by spaces */
	bool is_default;
	bool is_built_in;
	int64_t size;
};

struct bunker_template_list {
	struct bunker_template *items;
	size_t count;
	char *memory;
	struct bunker_json *json;
};
int bunker_templates(struct bunker *b, struct bunker_template_list *ret, struct bunker_error *e);
void bunker_template_list_finish(struct bunker_template_list *list);

/* What "name", "name:tag" or an id stands for: the variables that its sandboxes have. */
struct bunker_template_info {
	const char *name;
	const char *description;
	const char *build; /* "": it is built in */
	struct bunker_pair *env;
	size_t env_count;
	struct bunker_json *json;
};
int bunker_template_resolve(struct bunker *b, const char *ref, struct bunker_template_info *ret,
	struct bunker_error *e);
void bunker_template_info_finish(struct bunker_template_info *info);
/* One template with all its builds, as JSON. */
int bunker_template_get(
	struct bunker *b, const char *name, struct bunker_json **ret, struct bunker_error *e);
/* build: an id or another tag; NULL: what the name stands for. */
int bunker_template_tag(struct bunker *b, const char *name, const char *tag, const char *build,
	struct bunker_error *e);
int bunker_template_untag(
	struct bunker *b, const char *name, const char *tag, struct bunker_error *e);
int bunker_template_delete(struct bunker *b, const char *name, struct bunker_error *e);

struct bunker_build {
	const char *id;
	const char *template_name;
	const char *status;
	const char *reason;
	const char *failed_step;
	const char *digest;
	int64_t size;
	struct bunker_json *json;
};
void bunker_build_finish(struct bunker_build *build);

struct bunker_import_options {
	const char *name; /* "name" or "name:tag" */
	const char *description;
	const char *format;   /* auto root docker oci */
	const char *ref;      /* which image of several */
	const char *digest;   /* what it must have */
	const char *origin;   /* to be shown */
	bunker_read_fn *read; /* a tar archive */
	void *arg;
};
int bunker_template_import(struct bunker *b, const struct bunker_import_options *options,
	struct bunker_build *ret, struct bunker_error *e);

enum bunker_step_kind {
	BUNKER_STEP_RUN,
	BUNKER_STEP_COPY,
	BUNKER_STEP_ENV,
	BUNKER_STEP_WORKDIR,
	BUNKER_STEP_USER
};

struct bunker_build_step {
	enum bunker_step_kind kind;
	const char *const *argv; /* run; closed by NULL */
	const char *const *env;  /* NAME=VALUE, closed by NULL; of a run: its own */
	const char *user;
	const char *path; /* copy, workdir */
	const char *context, *source, *owner;
	int mode; /* copy; -1: as in the archive */
};

struct bunker_build_options {
	const char *name; /* "name" or "name:tag" */
	const char *description;
	const char *from; /* NULL: the default template */
	const struct bunker_build_step *steps;
	size_t step_count;
	/* Closed by NULL; NULL: as `from` has it. */
	const char *const *start, *const *entrypoint, *const *command, *const *ports;
	const char *ready;
	const char *timeout;
	/* What it may reach: the mode, NULL: the server's default, or allow where there is a list;
	 * lists closed by NULL, or NULL. */
	const char *network;
	const char *const *network_allow, *const *network_deny;
	bool no_cache;
};
int bunker_build_create(struct bunker *b, const struct bunker_build_options *options,
	struct bunker_build *ret, struct bunker_error *e);
int bunker_build_cancel(struct bunker *b, const char *id, struct bunker_error *e);

struct bunker_log_entry {
	const char *time, *level, *step, *message;
};
/* Anything but 0 ends the call with BUNKER_STOPPED. */
typedef int bunker_log_fn(void *arg, const struct bunker_log_entry *entry);
/* Until the build has ended. */
int bunker_build_follow(struct bunker *b, const char *id, bunker_log_fn *log, void *arg,
	struct bunker_build *ret, struct bunker_error *e);

/* Files for copy steps, by the SHA-256 of their archive. */
int bunker_context_exists(struct bunker *b, const char *hash, bool *ret, struct bunker_error *e);
int bunker_context_put(struct bunker *b, const char *hash, bunker_read_fn *read, void *arg,
	struct bunker_error *e);

#ifdef __cplusplus
}
#endif
