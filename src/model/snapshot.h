/* Snapshots as data: spec, record and query. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/field.h"
#include "base/id.h"
#include "model/disk.h"

#define SNAPSHOTS_PER_TENANT 1000

struct snapshot_spec {
	const char *name; /* NULL or "": none; it is found by its id */
	const char *tag;  /* NULL: "latest" if there is a name */
	const char *description;
	const char *const *env; /* NAME=VALUE, for what is made of it; NULL: that of its parent */
	const char *metadata;   /* JSON; NULL: none */
	bool measure;           /* answer only when its size is known */
};

/* A snapshot as it is kept and shown. The living object owns its texts; views borrow them. */
struct snapshot_record {
	const char *tenant;
	const char *name, *tag; /* "": none */
	const char *description;
	const char *template_name;
	const char *metadata; /* JSON; "": none */
	struct strings env;   /* NAME=VALUE */
	char id[ID_SIZE];
	char parent[ID_SIZE];               /* the snapshot that its sandbox began with; "": none */
	char sandbox[ID_SIZE];              /* of which it was made; "": none */
	char build[ID_SIZE], root[ID_SIZE]; /* of the template, as in sandbox_record */
	int64_t created_ms;
	int64_t bytes, files;    /* -1: not counted yet */
	bool deleted;            /* only its place in the lineage is left */
	enum disk_status status; /* of views; not kept */
};

extern const struct field_table snapshot_model;

/* Returns when it was made, and its id: its place in lists with pages. */
int64_t snapshot_place(const void *view, const char **id);

enum snapshot_order {
	SNAPSHOT_ORDER_CREATION,
	SNAPSHOT_ORDER_NAME,
	SNAPSHOT_ORDER_BYTES,
	SNAPSHOT_ORDER_FILES
};

/* Selects snapshots of a tenant, and a page of them. */
struct snapshot_filter {
	const char *name, *tag, *sandbox; /* NULL: any */
	int64_t after_ms;                 /* made after this moment and id; 0: whenever */
	char after_id[ID_SIZE];
	enum snapshot_order order;
	bool backwards;
	int64_t offset, limit;
};
