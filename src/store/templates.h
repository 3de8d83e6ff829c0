/* Rows of templates, their builds and tags, and of the layers that builds are made of. */
#pragma once

#include "store/store.h"

struct template_row {
	const char *id;
	const char *tenant;
	const char *name;
	const char *description;
	int64_t created_ms;
};

struct build_row {
	const char *id;
	const char *template_id;
	const char *status;
	const char *reason; /* "": none */
	const char *origin; /* what it began with */
	const char *digest; /* "": none */
	const char *root;   /* the layer that is its root; "": that of `base` */
	const char *layer;  /* the layer that disks begin with; "": an empty one */
	int64_t failed_step;
	int64_t created_ms, started_ms, ended_ms;
	int64_t bytes;
	struct strings config; /* as box/template/settings.c packs it */
	struct strings tags;   /* to be given when it is ready */
};

struct tag_row {
	const char *template_id;
	const char *tag;
	const char *build_id;
	int64_t created_ms;
};

struct layer_row {
	const char *id;
	const char *tenant;
	const char *key; /* what it is the result of; "": nothing that can come again */
	const char *root;
	int64_t bytes;
	int64_t created_ms, used_ms;
};

void store_put_template(
	struct store *s, const struct template_row *row, store_done_fn *done, void *arg);
/* With its builds and tags. */
void store_delete_template(struct store *s, const char *id, store_done_fn *done, void *arg);
void store_put_build(struct store *s, const struct build_row *row, store_done_fn *done, void *arg);
void store_delete_build(struct store *s, const char *id, store_done_fn *done, void *arg);
void store_put_tag(struct store *s, const struct tag_row *row, store_done_fn *done, void *arg);
void store_delete_tag(
	struct store *s, const char *template_id, const char *tag, store_done_fn *done, void *arg);
void store_put_layer(struct store *s, const struct layer_row *row, store_done_fn *done, void *arg);
void store_delete_layer(struct store *s, const char *id, store_done_fn *done, void *arg);

/* At start, before the loop runs; all but tags in the order of their creation. */
int store_each_template(struct store *s, void (*each)(void *arg, const void *row), void *arg);
int store_each_build(struct store *s, void (*each)(void *arg, const void *row), void *arg);
int store_each_tag(struct store *s, void (*each)(void *arg, const void *row), void *arg);
int store_each_layer(struct store *s, void (*each)(void *arg, const void *row), void *arg);
