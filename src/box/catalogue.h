/*
 * What the files about templates and builds share. All of it is in memory, found again from the
 * store at start; nobody outside this room sees it.
 */
#pragma once

#include "box/build.h"
#include "box/core.h"
#include "box/settings.h"
#include "store/templates.h"

#define TEMPLATES_PER_TENANT 500
#define TAGS_PER_TEMPLATE    100
/* Not started, or not done. */
#define BUILDS_OPEN_PER_TENANT 20
/* Of those that are of no use any more, the newest are kept, for their logs. */
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

struct build_job; /* what is under way */

struct build {
	struct catalogue *catalogue;
	struct template *template; /* NULL once that is deleted */
	char id[ID_SIZE];
	char *tenant;
	enum build_status status;
	char *reason, *origin, *digest;
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
};

/* ---- template.c ---- */

/* From the store, and the built-in ones. */
int catalogue_open(struct box *b, struct error *e);
void catalogue_close(struct box *b);
struct template *template_new(struct catalogue *c, const char *id, const char *tenant,
	const char *name, const char *description);
void template_add(struct template *t);
void template_store(const struct template *t, store_done_fn *done, void *arg);
/* In memory; the caller stores it. */
void tag_set(struct template *t, const char *tag, struct build *build, int64_t now);

/* ---- build.c ---- */

struct build *build_from_row(struct template *t, const struct build_row *row);
void build_store(const struct build *build, store_done_fn *done, void *arg);
/* Gives it the tags it is to have. */
void build_take_tags(struct build *build);
void build_end(struct build *build, enum build_status status, int step, const char *reason);
/* It belongs to no template any more; freed as soon as nobody looks. */
void build_detach(struct build *build);
void build_changed(struct build *build);
/* Whether something stands on it. */
bool build_in_use(const struct build *build);

/* ---- build_log.c ---- */

void build_log(struct build *build, const char *level, int step, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Text as a command wrote it, without its line feed. */
void build_log_text(struct build *build, const char *level, int step, const char *text, size_t len);
void build_log_remove(const struct build *build);

/* ---- context.c ---- */

/* A descriptor, or -errno. */
int context_open(struct box *b, const char *tenant, const char *hash);
