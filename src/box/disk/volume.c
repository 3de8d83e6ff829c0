#include "box/disk/volume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "box/disk/disks.h"
#include "model/template.h"

static struct volume *volume_new(struct box *b, const struct volume_row *row)
{
	struct volume *v = mem_new(sizeof *v);
	v->box = b;
	memcpy(v->id, row->id, ID_SIZE);
	v->tenant = sandbox_copy_string(row->tenant);
	v->name = sandbox_copy_string(row->name);
	v->limit = row->limit;
	v->created_ms = row->created_ms;
	DL_APPEND(b->disks.volumes, v);
	return v;
}

void volume_from_row(struct box *b, const struct volume_row *row)
{
	volume_new(b, row)->ready = true;
}

void volume_free(struct volume *v)
{
	DL_DELETE(v->box->disks.volumes, v);
	free(v->tenant);
	free(v->name);
	free(v);
}

static struct volume *disk_volume_visible_from(struct volume *v, const char *tenant)
{
	while (v && (!v->ready || strcmp(v->tenant, tenant) != 0))
		v = v->next;
	return v;
}

struct volume *volume_first(struct box *b, const char *tenant)
{
	return disk_volume_visible_from(b->disks.volumes, tenant);
}

struct volume *volume_next(const struct volume *v)
{
	return disk_volume_visible_from(v->next, v->tenant);
}

struct volume *volume_find(struct box *b, const char *tenant, const char *id_or_name)
{
	struct volume *v = volume_first(b, tenant);
	for (; v; v = volume_next(v))
		if (strcmp(v->id, id_or_name) == 0 || strcmp(v->name, id_or_name) == 0)
			return v;
	return NULL;
}

struct volume *volume_find_any(struct box *b, const char *id)
{
	struct volume *v;
	DL_FOREACH (b->disks.volumes, v)
		if (v->ready && strcmp(v->id, id) == 0)
			return v;
	return NULL;
}

const char *volume_name_of(struct box *b, const char *id)
{
	const struct volume *v = id[0] ? volume_find_any(b, id) : NULL;
	return v ? v->name : NULL;
}

static bool has_volume(const struct sandbox *s, const char *id)
{
	for (size_t i = 0; i < WARDEN_VOLUMES_MAX; i++)
		if (strcmp(s->disk.volumes[i].id, id) == 0)
			return true;
	return false;
}

static unsigned count_mounts(const struct volume *v)
{
	const struct sandbox *s;
	unsigned count = 0;
	DL_FOREACH (v->box->sandboxes.order, s)
		count += has_volume(s, v->id) && !s->ending.doomed;
	return count;
}

void volume_view(const struct volume *v, struct volume_view *out)
{
	*out = (struct volume_view){.id = v->id,
		.tenant = v->tenant,
		.name = v->name,
		.limit = v->limit,
		.created_ms = v->created_ms,
		.mounts = count_mounts(v),
		.status = v->found ? DISK_READY : DISK_LOST};
}

/* ---- create ---- */

struct creating {
	struct volume *volume;
	volume_created_fn *created;
	void *arg;
};

static void disk_volume_create_failed(struct creating *c, const struct error *e)
{
	disks_forget(c->volume->box, DISK_VOLUME, c->volume->id);
	volume_free(c->volume);
	c->created(c->arg, NULL, e);
	free(c);
}

static void disk_volume_create_stored(void *arg, int error)
{
	struct creating *c = arg;
	struct error e;
	if (error) {
		store_error(&e, error, "the volume could not be stored");
		disk_volume_create_failed(c, &e);
		return;
	}
	c->volume->ready = c->volume->found = true;
	c->created(c->arg, c->volume, NULL);
	free(c);
}

static void disk_volume_create_made(void *arg, const struct keeper_reply *reply)
{
	struct creating *c = arg;
	struct volume *v = c->volume;
	struct error e;
	if (reply->error) {
		disks_error(&e, reply->error, "the volume could not be made");
		disk_volume_create_failed(c, &e);
		return;
	}
	store_put_volume(v->box->store,
		&(struct volume_row){v->id, v->tenant, v->name, v->limit, v->created_ms},
		disk_volume_create_stored, c);
}

static int disk_volume_check_name(
	struct box *b, const char *tenant, const char *name, struct error *e)
{
	const struct volume *v;
	unsigned count = 0;
	if (template_check_tag(name, "name", e) < 0)
		return -1;
	DL_FOREACH (b->disks.volumes, v) {
		if (strcmp(v->tenant, tenant) != 0)
			continue;
		count++;
		if (strcmp(v->name, name) == 0)
			return error_set_field(e, ERROR_NAME_TAKEN, "name",
				"a volume with the name '%.64s' exists already", name);
	}
	if (count >= VOLUMES_PER_TENANT)
		return error_set(e, ERROR_QUOTA_EXCEEDED, "the limit of %d volumes is reached",
			VOLUMES_PER_TENANT);
	return 0;
}

static int settle_limit(struct box *b, int64_t *limit, struct error *e)
{
	char text[UNITS_TEXT_SIZE];
	if (*limit && !b->has_quota)
		return error_set_field(e, ERROR_UNAVAILABLE, "size",
			"this server cannot limit a volume: it has no file system with quotas "
			"(see bunker doctor)");
	if (*limit > b->config.maxima.disk) {
		units_format_size(b->config.maxima.disk, text);
		return error_set_field(e, ERROR_INVALID_FIELD, "size",
			"\"size\" is above this server's maximum of %s", text);
	}
	if (b->has_quota && *limit == 0)
		*limit = b->config.defaults.disk;
	return 0;
}

int volume_create(struct box *b, const char *tenant, const char *name, int64_t limit,
	volume_created_fn *created, void *arg, struct error *e)
{
	char id[ID_SIZE];
	if (disk_volume_check_name(b, tenant, name, e) < 0 || settle_limit(b, &limit, e) < 0)
		return -1;
	id_generate(id);
	struct creating *c = mem_new(sizeof *c);
	*c = (struct creating){
		volume_new(b, &(struct volume_row){id, tenant, name, limit, clock_wall_ms()}),
		created, arg};
	struct disk_name disk = disk_named(DISK_VOLUME, id);
	b->driver->disk_make(b->driver, &disk, NULL, limit, disk_volume_create_made, c);
	return 0;
}

/* ---- delete ---- */

struct deleting {
	struct volume *volume;
	sandbox_done_fn *done;
	void *arg;
};

static void disk_volume_delete_stored(void *arg, int error)
{
	struct deleting *d = arg;
	struct error e;
	d->volume->deleting = NULL;
	if (error) {
		d->volume->ready = true;
		store_error(&e, error, "the volume could not be deleted");
	} else {
		disks_forget(d->volume->box, DISK_VOLUME, d->volume->id);
		volume_free(d->volume);
	}
	d->done(d->arg, error ? &e : NULL);
	free(d);
}

/* A disk that is mounted somewhere does not go. */
void volume_porter_gone(struct volume *v)
{
	if (v->deleting && !volume_has_porter(v))
		store_delete_volume(v->box->store, v->id, disk_volume_delete_stored, v->deleting);
}

int volume_delete(struct volume *v, sandbox_done_fn *done, void *arg, struct error *e)
{
	unsigned mounts = count_mounts(v);
	if (mounts > 0)
		return error_set(e, ERROR_IN_USE, "%u sandbox%s this volume", mounts,
			mounts == 1 ? " has" : "es have");
	struct deleting *d = mem_new(sizeof *d);
	*d = (struct deleting){v, done, arg};
	v->ready = false;
	error_set(e, ERROR_NOT_FOUND, "the volume was deleted");
	volume_send_porter_away(v, e);
	v->deleting = d;
	volume_porter_gone(v);
	return 0;
}

/* ---- of a sandbox ---- */

static int settle_mount(struct box *b, const struct sandbox_spec *spec, size_t index,
	struct warden_volume *ret, struct error *e)
{
	const struct volume_mount *m = &spec->volumes[index];
	char field[64];
	snprintf(field, sizeof field, "volumes[%zu]", index);
	const struct volume *v = volume_find(b, spec->tenant, m->volume);
	if (!v)
		return error_set_field(
			e, ERROR_NOT_FOUND, field, "there is no volume '%.64s'", m->volume);
	if (!v->found)
		return error_set_field(e, ERROR_INTERNAL, field,
			"the disk of the volume '%.64s' is gone", m->volume);
	*ret = (struct warden_volume){.read_only = m->read_only};
	memcpy(ret->id, v->id, ID_SIZE);
	if (strlen(m->path) < sizeof ret->path)
		memcpy(ret->path, m->path, strlen(m->path) + 1);
	if (!warden_mount_is_valid(ret->path))
		return error_set_field(e, ERROR_INVALID_FIELD, field,
			"the path must be absolute, of letters, digits, '.', '_' and '-', shorter than %d "
			"bytes, and not below /proc, /dev or /sys",
			WARDEN_MOUNT_SIZE);
	for (size_t i = 0; i < index; i++)
		if (strcmp(spec->volumes[i].path, m->path) == 0)
			return error_set_field(e, ERROR_INVALID_FIELD, field,
				"two volumes cannot be mounted at the same path");
	return 0;
}

int volumes_settle(struct box *b, const struct sandbox_spec *spec,
	struct warden_volume ret[WARDEN_VOLUMES_MAX], struct error *e)
{
	if (spec->volume_count > WARDEN_VOLUMES_MAX)
		return error_set_field(e, ERROR_INVALID_FIELD, "volumes",
			"a sandbox has at most %d volumes", WARDEN_VOLUMES_MAX);
	for (size_t i = 0; i < spec->volume_count; i++)
		if (settle_mount(b, spec, i, &ret[i], e) < 0)
			return -1;
	return 0;
}

/* A line each: "ID w PATH". A path has no spaces. */
