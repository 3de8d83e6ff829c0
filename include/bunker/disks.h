/* Disks: checkpoints, snapshots, forks, volumes, what was changed. Comes with bunker.h. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* ---- checkpoints: restore points of one sandbox ---- */

struct bunker_checkpoint {
	const char *id;
	const char *name;
	const char *parent; /* the id of the one before it; "": none */
	const char *status; /* ready lost */
	const char *created_at;
	double frozen_ms; /* of one just made: how long the sandbox stood still */
	struct bunker_json *json;
};
void bunker_checkpoint_finish(struct bunker_checkpoint *checkpoint);

struct bunker_checkpoint_list {
	struct bunker_checkpoint *items;
	size_t count;
};
void bunker_checkpoint_list_finish(struct bunker_checkpoint_list *list);
/* {"checkpoints":[...]}, for the caller to free. NULL: out of memory. */
char *bunker_checkpoint_list_json(const struct bunker_checkpoint_list *list);

int bunker_checkpoint_create(struct bunker *b, const char *sandbox_id, const char *name,
	struct bunker_checkpoint *ret, struct bunker_error *e);
int bunker_checkpoint_list(struct bunker *b, const char *sandbox_id,
	struct bunker_checkpoint_list *ret, struct bunker_error *e);
/* checkpoint: its id or name. The sandbox's processes end, and it is booted on the disk as it was.
 */
int bunker_checkpoint_restore(struct bunker *b, const char *sandbox_id, const char *checkpoint,
	struct bunker_sandbox *ret, struct bunker_error *e);
int bunker_checkpoint_delete(
	struct bunker *b, const char *sandbox_id, const char *checkpoint, struct bunker_error *e);
/* The same as a restore, to what the sandbox began with. */
int bunker_discard(
	struct bunker *b, const char *id, struct bunker_sandbox *ret, struct bunker_error *e);
/* count copies of its disk, all of one moment, each freshly booted. */
int bunker_fork(struct bunker *b, const char *id, int64_t count, struct bunker_sandbox_list *ret,
	struct bunker_error *e);

/* ---- snapshots: what new sandboxes can begin with ---- */

struct bunker_snapshot {
	const char *id;
	const char *name;
	const char *tag;
	const char *description;
	const char *status; /* ready lost deleted */
	const char *parent; /* the snapshot it stands on; "": none */
	const char *sandbox_id;
	const char *template_name;
	const char *created_at;
	int64_t size, files; /* -1: not counted yet */
	double frozen_ms;    /* of one just made: how long the sandbox stood still */
	struct bunker_json *json;
};
void bunker_snapshot_finish(struct bunker_snapshot *snapshot);

struct bunker_snapshot_list {
	struct bunker_snapshot *items;
	size_t count;
};
void bunker_snapshot_list_finish(struct bunker_snapshot_list *list);
/* {"snapshots":[...]}, for the caller to free. NULL: out of memory. */
char *bunker_snapshot_list_json(const struct bunker_snapshot_list *list);

struct bunker_snapshot_options {
	const char *name; /* NULL: none, it is found by its id */
	const char *tag;  /* NULL: "latest", if there is a name */
	const char *description;
};
int bunker_snapshot_create(struct bunker *b, const char *sandbox_id,
	const struct bunker_snapshot_options *options, struct bunker_snapshot *ret,
	struct bunker_error *e);
/* name NULL: all of them. */
int bunker_snapshot_list(struct bunker *b, const char *name, struct bunker_snapshot_list *ret,
	struct bunker_error *e);
/* ref: an id, "name", "name:tag", or a tag that only one has. */
int bunker_snapshot_get(
	struct bunker *b, const char *ref, struct bunker_snapshot *ret, struct bunker_error *e);
/* tag NULL: it has none any more. */
int bunker_snapshot_tag(struct bunker *b, const char *ref, const char *tag,
	struct bunker_snapshot *ret, struct bunker_error *e);
int bunker_snapshot_delete(struct bunker *b, const char *ref, struct bunker_error *e);
/* As one file, a tar.zst with a manifest; and back, on this server or another. */
int bunker_snapshot_export(
	struct bunker *b, const char *ref, bunker_data_fn *data, void *arg, struct bunker_error *e);
int bunker_snapshot_import(struct bunker *b, const struct bunker_snapshot_options *options,
	bunker_read_fn *read, void *arg, struct bunker_snapshot *ret, struct bunker_error *e);

/* ---- a sandbox as one JSON object ---- */

/*
 * What it has changed over its template, and its variables, for any place that keeps text; and a
 * sandbox made of such an object. path NULL: everything; else only what is below.
 */
int bunker_export(struct bunker *b, const char *id, const char *path, bunker_data_fn *data,
	void *arg, struct bunker_error *e);
/* Of the options: name, description, project and template_name, which goes before the object's. */
int bunker_import(struct bunker *b, const struct bunker_create_options *options,
	bunker_read_fn *read, void *arg, struct bunker_sandbox *ret, struct bunker_error *e);
/* The disk of a snapshot in the same form, without variables. */
int bunker_snapshot_export_json(
	struct bunker *b, const char *ref, bunker_data_fn *data, void *arg, struct bunker_error *e);

/* ---- what was changed ---- */

/* Compared with what the sandbox began with, unless one of these is given. */
struct bunker_diff_options {
	const char *checkpoint;
	const char *snapshot;
};

struct bunker_change {
	char *path;                  /* absolute; any bytes */
	const char *change;          /* added changed deleted */
	const char *type;            /* file directory symlink other */
	const char *old_type;        /* "": the same */
	const char *mode, *old_mode; /* "0644"; "": the same */
	int64_t size, old_size;      /* -1: not of this */
	struct bunker_json *json;
};
/* The change is valid for the time of the call. Anything but 0 ends it with BUNKER_STOPPED. */
typedef int bunker_change_fn(void *arg, const struct bunker_change *change);
/* *truncated: something was too deep to be looked at. */
int bunker_diff(struct bunker *b, const char *sandbox_id, const struct bunker_diff_options *options,
	bunker_change_fn *each, void *arg, bool *truncated, struct bunker_error *e);

enum bunker_diff_format {
	BUNKER_DIFF_JSON, /* {"changes":[...],"added","changed","deleted","truncated"} */
	BUNKER_DIFF_TEXT, /* unified, as git applies it */
	BUNKER_DIFF_TAR   /* what was deleted as empty files .wh.NAME */
};
int bunker_diff_bytes(struct bunker *b, const char *sandbox_id,
	const struct bunker_diff_options *options, enum bunker_diff_format format,
	bunker_data_fn *data, void *arg, struct bunker_error *e);

/* ---- volumes ---- */

struct bunker_volume {
	const char *id;
	const char *name;
	const char *status; /* ready lost */
	const char *size;   /* its limit; "": not limited */
	const char *created_at;
	int64_t sandboxes; /* that have it */
	struct bunker_json *json;
};
void bunker_volume_finish(struct bunker_volume *volume);

struct bunker_volume_list {
	struct bunker_volume *items;
	size_t count;
};
void bunker_volume_list_finish(struct bunker_volume_list *list);
/* {"volumes":[...]}, for the caller to free. NULL: out of memory. */
char *bunker_volume_list_json(const struct bunker_volume_list *list);

/* size NULL: the server's default; "20Gi". */
int bunker_volume_create(struct bunker *b, const char *name, const char *size,
	struct bunker_volume *ret, struct bunker_error *e);
int bunker_volume_list(struct bunker *b, struct bunker_volume_list *ret, struct bunker_error *e);
/* ref: an id or a name. */
int bunker_volume_get(
	struct bunker *b, const char *ref, struct bunker_volume *ret, struct bunker_error *e);
int bunker_volume_delete(struct bunker *b, const char *ref, struct bunker_error *e);

/* ---- what disks take ---- */

struct bunker_disk {
	const char *kind; /* sandbox checkpoint snapshot volume */
	const char *id;
	const char *name;
	const char *sandbox_id; /* of a checkpoint */
	int64_t bytes, files;
	int64_t limit; /* 0: none */
	struct bunker_json *json;
};
/* The disk is valid for the time of the call. Anything but 0 ends it with BUNKER_STOPPED. */
typedef int bunker_disk_fn(void *arg, const struct bunker_disk *disk);
/* sandbox_id NULL: of everything there is. Each is told when it was looked at. */
int bunker_disks(struct bunker *b, const char *sandbox_id, bunker_disk_fn *each, void *arg,
	struct bunker_error *e);

#ifdef __cplusplus
}
#endif
