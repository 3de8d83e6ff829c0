/*
 *     manifest read → builder booted → tar unpacked by its init → end checked → disk kept → row
 *
 * The last BUNDLE_END_SIZE bytes that came are held back: they are the end, if nothing follows.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "box/core/bundle.h"
#include "box/disk/disks.h"
#include "box/files/archive.h"
#include "box/sandbox/halt.h"
#include "box/sandbox/hidden.h"
#include "box/sandbox/later.h"
#include "box/sandbox/status.h"
#include "box/template/catalogue.h"
#include "image/bundle.h"

#define WAITING_MAX (256u * 1024)
#define IMPORTS_MAX 16 /* at once: each has a builder, which is on no tenant's quota */

struct bundle_import {
	struct box *box;
	char *tenant, *name, *tag, *description; /* NULL: as the file says */
	struct scratch memory;
	struct bundle_manifest manifest;
	bool has_manifest;
	struct buf in;           /* not looked at yet; at least the end stays in it */
	struct sandbox *builder; /* NULL: there is none yet, or no more */
	bool is_booted, is_unpacked;
	bool input_ended;
	bool over;        /* nothing more is told; it goes when nothing will call back */
	unsigned pending; /* callbacks that will come, whatever happens */
	struct archive *archive;
	struct bundle_sum sum;
	const struct bundle_import_events *events;
	void *arg;
};

static void bundle_import_go_on(struct bundle_import *i);

/* ---- the end of it ---- */

static void bundle_import_dismiss_builder(struct bundle_import *i);

static void bundle_import_free_if_done(struct bundle_import *i)
{
	struct box *b = i->box;
	if (!i->over || i->pending > 0)
		return;
	if (i->builder) {
		bundle_import_dismiss_builder(i);
		return;
	}
	scratch_finish(&i->memory);
	buf_finish(&i->in);
	free(i->tenant);
	free(i->name);
	free(i->tag);
	free(i->description);
	free(i);
	b->core.bundle_imports--;
	box_check_closed(b);
}

static void bundle_import_builder_gone(void *arg)
{
	struct bundle_import *i = arg;
	i->builder = NULL;
	i->pending--;
	bundle_import_free_if_done(i);
}

static void bundle_import_dismiss_builder(struct bundle_import *i)
{
	i->pending++;
	hidden_dismiss(i->builder, bundle_import_builder_gone, i);
}

static void bundle_import_stop(struct bundle_import *i)
{
	i->over = true;
	if (i->archive)
		archive_cancel(i->archive);
	i->archive = NULL;
	bundle_import_free_if_done(i);
}

static void bundle_import_failure_told(void *arg, const struct error *e)
{
	struct bundle_import *i = arg;
	i->pending--;
	if (!i->over)
		i->events->done(i->arg, NULL, e);
	bundle_import_stop(i);
}

static void bundle_import_fail(struct bundle_import *i, const struct error *e)
{
	i->pending++;
	i->input_ended = true;
	box_answer_later(i->box, bundle_import_failure_told, i, e);
}

/* ---- keeping it ---- */

static void bundle_import_made(
	void *arg, struct snapshot *s, int64_t frozen_us, const struct error *e)
{
	struct bundle_import *i = arg;
	(void)frozen_us;
	i->pending--;
	if (i->over && s)
		log_info("an import was given up when it was done", "tenant", i->tenant);
	if (!i->over)
		i->events->done(i->arg, s, e);
	bundle_import_stop(i);
}

static const char *bundle_import_chosen(const char *given, const char *in_file)
{
	const char *text = given ? given : in_file;
	return text[0] ? text : NULL;
}

static void bundle_import_keep(struct bundle_import *i)
{
	struct error e;
	const struct snapshot_spec spec = {
		.name = bundle_import_chosen(i->name, i->manifest.name),
		.tag = bundle_import_chosen(i->tag, i->manifest.tag),
		.description = bundle_import_chosen(i->description, i->manifest.description),
		.env = i->manifest.env_list,
		.metadata = i->manifest.metadata,
	};
	i->pending++;
	if (snapshot_create(i->builder, &spec, bundle_import_made, i, &e) < 0) {
		i->pending--;
		bundle_import_fail(i, &e);
	}
}

/* ---- unpacking ---- */

static void bundle_import_unpacked(void *arg, const struct error *e)
{
	struct bundle_import *i = arg;
	struct error bad;
	i->archive = NULL;
	if (!e) {
		bundle_import_keep(i);
		return;
	}
	bad = *e;
	if (e->code == ERROR_NOT_FOUND || e->code == ERROR_PERMISSION_DENIED)
		bad.code = ERROR_INVALID_ARCHIVE; /* what is not there is the archive's fault */
	bundle_import_fail(i, &bad);
}

static void archive_has_room(void *arg)
{
	bundle_import_go_on(arg);
}

static void begin_archive(struct bundle_import *i)
{
	static const struct archive_events events = {archive_has_room, bundle_import_unpacked};
	static const struct file_request request = {
		.fixed = {.op = FILE_UNPACK, .flags = FILE_OWNERS | FILE_LAYER | FILE_OVERWRITE},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = "/"},
	};
	struct error e;
	i->archive = archive_begin(i->builder, &request, NULL, &events, i, &e);
	if (!i->archive)
		bundle_import_fail(i, &e);
	else
		bundle_import_go_on(i);
}

/* Everything but what may be the end. */
static void bundle_import_pass_on(struct bundle_import *i)
{
	struct error e;
	size_t room = archive_room(i->archive);
	size_t len = i->in.len > BUNDLE_END_SIZE ? i->in.len - BUNDLE_END_SIZE : 0;
	len = len < room ? len : room;
	if (len > 0) {
		bundle_sum_add(&i->sum, i->in.data, len);
		archive_write(i->archive, i->in.data, len);
		buf_consume(&i->in, len);
	}
	if (!i->input_ended || i->in.len > BUNDLE_END_SIZE || i->is_unpacked)
		return;
	i->is_unpacked = true;
	if (i->in.len < BUNDLE_END_SIZE) {
		error_set(&e, ERROR_INVALID_ARCHIVE, "the file is not complete: it has no end");
		archive_fail(i->archive, &e);
	} else if (bundle_check_end(i->in.data, &i->sum, &e) < 0) {
		archive_fail(i->archive, &e);
	} else {
		archive_end(i->archive);
	}
}

/* ---- the builder ---- */

static void bundle_import_builder_booted(void *arg, const struct error *e)
{
	struct bundle_import *i = arg;
	i->pending--;
	if (e) {
		sandbox_free(i->builder);
		i->builder = NULL;
	}
	if (i->over) {
		bundle_import_free_if_done(i);
	} else if (e) {
		bundle_import_fail(i, e);
	} else {
		sandbox_set_awake(i->builder);
		i->is_booted = true;
		begin_archive(i);
	}
}

static int begin_builder(struct bundle_import *i, struct error *e)
{
	struct box *b = i->box;
	struct template *t;
	struct build *build;
	if (template_resolve(b, i->tenant, i->manifest.template_name, &t, &build, e) < 0)
		return -1;
	struct sandbox *s = hidden_new(b, i->tenant);
	s->template_name = sandbox_copy_string(i->manifest.template_name);
	if (build) {
		memcpy(s->build, build->id, ID_SIZE);
		memcpy(s->root, build->root, ID_SIZE);
	}
	i->builder = s;
	i->pending++;
	sandbox_boot(s, false, bundle_import_builder_booted, i);
	return 0;
}

/* ---- bytes ---- */

/* 0: more is needed. */
static int take_manifest(struct bundle_import *i, struct error *e)
{
	size_t size;
	if (i->in.len < BUNDLE_HEAD_SIZE)
		return 0;
	if (bundle_manifest_size(i->in.data, &size, e) < 0)
		return -1;
	size_t all = BUNDLE_HEAD_SIZE + size;
	if (i->in.len < all)
		return 0;
	if (bundle_parse_manifest(
		    i->in.data + BUNDLE_HEAD_SIZE, size, &i->memory, &i->manifest, e) < 0)
		return -1;
	bundle_sum_add(&i->sum, i->in.data, all);
	buf_consume(&i->in, all);
	i->has_manifest = true;
	return 1;
}

static void bundle_import_go_on(struct bundle_import *i)
{
	struct error e;
	if (i->over)
		return;
	if (!i->has_manifest) {
		int r = take_manifest(i, &e);
		if (r == 0 && i->input_ended)
			r = error_set(&e, ERROR_INVALID_ARCHIVE,
				"this is no exported snapshot: it is too short");
		if (r < 0 || (r > 0 && begin_builder(i, &e) < 0)) {
			bundle_import_fail(i, &e);
			return;
		}
	}
	if (i->archive && !i->is_unpacked)
		bundle_import_pass_on(i);
	if (!i->input_ended && bundle_import_room(i) > 0)
		i->events->room(i->arg);
}

size_t bundle_import_room(const struct bundle_import *i)
{
	return i->in.len < WAITING_MAX ? WAITING_MAX - i->in.len : 0;
}

void bundle_import_write(struct bundle_import *i, const char *data, size_t len)
{
	if (i->input_ended)
		return; /* it failed already, and that is being told */
	buf_append(&i->in, data, len);
	bundle_import_go_on(i);
}

void bundle_import_end(struct bundle_import *i)
{
	if (i->input_ended)
		return;
	i->input_ended = true;
	bundle_import_go_on(i);
}

void bundle_import_cancel(struct bundle_import *i)
{
	bundle_import_stop(i);
}

static char *copy_or_null(const char *text)
{
	return text ? sandbox_copy_string(text) : NULL;
}

int bundle_import_begin(struct box *b, const char *tenant, const struct snapshot_spec *spec,
	const struct bundle_import_events *events, void *arg, struct bundle_import **ret,
	struct error *e)
{
	if (snapshot_check(b, tenant, spec, e) < 0)
		return -1;
	if (b->core.bundle_imports >= IMPORTS_MAX)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED,
			"%d snapshots are being imported already, the most that is allowed",
			IMPORTS_MAX);
	struct bundle_import *i = mem_new(sizeof *i);
	i->box = b;
	i->tenant = sandbox_copy_string(tenant);
	i->name = copy_or_null(spec->name);
	i->tag = copy_or_null(spec->tag);
	i->description = copy_or_null(spec->description);
	i->events = events;
	i->arg = arg;
	bundle_sum_begin(&i->sum);
	b->core.bundle_imports++;
	*ret = i;
	return 0;
}
