/*
 * Shared by the files about templates and builds; private to this room. All of it is in memory and
 * loaded from the store at start.
 */
#pragma once

#include "box/sandbox/object.h"
#include "box/template/build.h"
#include "box/template/settings.h"
#include "store/templates.h"

#define TEMPLATES_PER_TENANT 500
#define TAGS_PER_TEMPLATE    100
#define INSTALL_MAX          200 /* packages of one sandbox, of a kind */
/* Builds that are not started or not done. */
#define BUILDS_OPEN_PER_TENANT 20
/* The number of superseded builds that are kept for their logs, the newest first. */
#define BUILDS_REMEMBERED 10

struct tag {
	char name[TEMPLATE_TAG_MAX + 1];
	struct build *build;
	int64_t created_ms;
	struct tag *prev, *next; /* by name */
};

struct template
{
	struct catalogue *catalogue;
	char *id, *tenant, *name, *description;
	bool built_in, is_default;
	int64_t created_ms;
	struct build *builds; /* oldest first */
	struct tag *tags;
	struct template *prev, *next; /* by name, built-in ones first */
	UT_hash_handle by_id;
};

#define LAYER_KEY_LEN 64

struct layer {
	char id[ID_SIZE];
	char *tenant;
	char key[LAYER_KEY_LEN + 1]; /* of the steps that it is the result of; "": none */
	char root[ID_SIZE];
	int64_t bytes, created_ms, used_ms;
	bool being_made, needed;
	UT_hash_handle by_id;
};

struct build_job; /* what is under way */

struct build {
	struct catalogue *catalogue;
	struct template *template; /* NULL once that is deleted */
	char id[ID_SIZE];
	char *tenant;
	enum build_status status;
	char *reason, *origin, *digest;
	enum error_code code; /* of the reason */
	int failed_step;
	char root[ID_SIZE];  /* the layer that is its root; "": that of `base` */
	char layer[ID_SIZE]; /* the layer that disks begin with; "": none */
	int64_t created_ms, started_ms, ended_ms, bytes;
	struct settings settings;
	struct buf tags; /* to be given when it is ready, each with its NUL */
	struct build_job *job;
	struct build_watcher *watchers;
	struct {
		uint64_t entries, bytes;        /* bytes: of the file */
		uint64_t charged;               /* to its tenant */
		uint64_t near_entry, near_byte; /* where the last reader stopped */
		bool known, full;
	} log;
	struct build *prev, *next; /* of the template */
	UT_hash_handle by_id;
};

struct catalogue {
	struct box *box;
	struct template *templates; /* by id */
	struct template *order;
	struct build *builds; /* by id */
	struct layer *layers; /* by id */
	struct build_job *jobs;
};

/* ---- template.c ---- */

/* From the store, and the built-in ones. */
int catalogue_open(struct box *b, struct error *e);
void catalogue_close(struct box *b);
struct template *template_new(struct catalogue *c, const char *id, const char *tenant,
	const char *name, const char *description);
void template_add(struct template *t);
/* Out of the tables, and freed. */
void template_forget(struct template *t);
void template_store(const struct template *t, store_done_fn *done, void *arg);
/* Newest first; NULL ends. */
struct build *template_build_at(const struct template *t, size_t index);
/* In memory; the caller stores it. */
void tag_set(struct template *t, const char *tag, struct build *build, int64_t now);

/* ---- build_watch.c ---- */

/* Keeps the build until build_unwatch, without callbacks. */
void build_hold(struct build *build, struct build_watcher *w);
void build_changed(struct build *build);

/* ---- build.c ---- */

/* Makes a build that belongs to no template and is freed when its last watcher leaves. */
struct build *build_unnamed(struct catalogue *c, const char *tenant);
struct build *build_from_row(struct template *t, const struct build_row *row);
void build_store(const struct build *build, store_done_fn *done, void *arg);
/* Called when no work is left for the build. */
void build_job_gone(struct build *build);
/* At start: what the last server did not survive has failed. */
void build_settle_loaded(struct build *build);
/* Gives it the tags it is to have. */
void build_take_tags(struct build *build);
void build_end(struct build *build, enum build_status status, int step, const char *reason);
/* Detaches a build from its template; it is freed when its last watcher leaves. */
void build_detach(struct build *build);
/* Versions that are of no use any more go. */
void builds_prune(struct catalogue *c);
/* Whether something stands on it. */
bool build_in_use(const struct build *build);

/* ---- build_log.c ---- */

void build_log(struct build *build, const char *level, int step, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* One line as a command wrote it, without its line feed. */
void build_log_text(struct build *build, const char *level, int step, const char *text, size_t len);
/* All lines of it that are complete; returns how much of the text they were. */
size_t build_log_lines(
	struct build *build, const char *level, int step, const char *text, size_t len);
void build_log_remove(struct build *build);
/* At start: charges its tenant for the log that is there. */
void build_log_found(struct build *build);

/* ---- build_archive.c ---- */

/* A descriptor, or -errno. */
int build_archive_open(struct box *b, const char *tenant, const char *hash);

/* ---- image_layer.c ---- */

void layer_from_row(struct catalogue *c, const struct layer_row *row);
struct layer *layer_find(struct catalogue *c, const char *id);
/* The result of the same steps, if it is still there. */
struct layer *layer_cached(struct catalogue *c, const char *tenant, const char *key);
typedef void layer_kept_fn(void *arg, struct layer *layer, const struct error *e);
/* A copy of a sandbox's disk as it is now; key may be "". */
void layer_keep(
	struct catalogue *c, struct sandbox *from, const char *key, layer_kept_fn *kept, void *arg);
/* Removes a layer's row, then its disk. */
void layer_remove(struct catalogue *c, struct layer *l);
void layers_close(struct catalogue *c);

/* ---- collect.c ---- */

/* Removes unreferenced layers, except cached ones within their lifetime. */
void layers_collect(struct catalogue *c);
/* At start: removes what is on disk without a row. */
void layers_reconcile(struct catalogue *c);

/* ---- build_job.c ---- */

/* Tells the layers that builds under way stand on. */
void build_jobs_need(struct catalogue *c, void (*need)(struct catalogue *c, const char *id));
/* Fails all jobs. */
void build_jobs_stop(struct catalogue *c);
void build_job_cancel(struct build_job *job);
