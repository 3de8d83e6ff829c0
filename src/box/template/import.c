/*
 * An archive becomes a template's root. All of the work on it happens in a builder: init unpacks it
 * below /import as the builder's root. What it turns out to be decides the rest:
 *
 *     a root              /import is the root
 *     OCI, docker save    index → manifest → configuration, read from /import and checked;
 *                         then each layer is read out, checked, and unpacked below /image
 *
 * Then what every sandbox needs is put right in /image, and the builder's disk is kept: the
 * template's root is that directory in it. The builder's disk limit bounds what an archive can grow
 * to.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "box/files/archive.h"
#include "box/template/build_job.h"
#include "image/digest.h"

#define TIMEOUT_DEFAULT_MS (INT64_C(3600) * 1000)
#define INDEX_DEPTH_MAX    4
#define INPUT_WAITING      (256u * 1024)

struct import {
	struct build_job *job;
	struct import_spec spec;
	void (*room)(void *arg);
	void *arg;
	struct archive *archive; /* what is being unpacked */
	struct file_call *call;  /* what is being read, or done */
	struct buf waiting;      /* came before the builder was there */
	bool input_ended, outer_done;
	/* A document */
	struct buf text;
	const char *path;               /* below /import */
	const struct image_blob *blob;  /* NULL: nothing to check it with */
	void (*read)(struct import *i); /* i->text is complete */
	void (*missing)(struct import *i);
	bool digest_seen; /* the one that was asked for */
	unsigned depth;
	struct image_document document;
	struct image_config config;
	bool has_config;
	size_t layer;
};

static void import_fail(struct import *i, const struct error *e)
{
	build_job_fail(i->job, BUILD_STEP_BASE, e);
}

/* ---- bytes from outside ---- */

static void outer_unpacked(void *arg, const struct error *e);

static void outer_room(void *arg)
{
	struct import *i = arg;
	if (!i->input_ended)
		i->room(i->arg);
}

static void begin_outer(struct build_job *job)
{
	static const struct archive_events events = {outer_room, outer_unpacked};
	static const struct file_request request = {
		.fixed = {.op = FILE_UNPACK, .flags = FILE_PARENTS | FILE_OWNERS | FILE_LAYER},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = "/import"},
	};
	struct import *i = job->import;
	struct error e;
	i->archive = archive_begin(job->builder, &request, NULL, &events, i, &e);
	if (!i->archive) {
		import_fail(i, &e);
		return;
	}
	if (i->waiting.len > 0)
		archive_write(i->archive, i->waiting.data, i->waiting.len);
	buf_finish(&i->waiting);
	if (i->input_ended)
		archive_end(i->archive);
	else if (archive_room(i->archive) > 0)
		i->room(i->arg);
}

size_t build_import_room(const struct build *build)
{
	const struct import *i = build->job->import;
	if (i->archive)
		return archive_room(i->archive);
	return i->waiting.len < INPUT_WAITING ? INPUT_WAITING - i->waiting.len : 0;
}

void build_import_data(struct build *build, const char *data, size_t len)
{
	struct import *i = build->job->import;
	if (i->archive && !i->outer_done)
		archive_write(i->archive, data, len);
	else if (!i->outer_done)
		buf_append(&i->waiting, data, len);
}

void build_import_end(struct build *build)
{
	struct import *i = build->job->import;
	i->input_ended = true;
	if (i->archive && !i->outer_done)
		archive_end(i->archive);
}

/* ---- one operation of init's ---- */

static void import_ignore_entry(void *arg, const struct file_entry *entry)
{
	(void)arg;
	(void)entry;
}

static void ignore_content(void *arg, uint64_t length, uint64_t offset)
{
	(void)arg;
	(void)length;
	(void)offset;
}

static int do_call(
	struct import *i, const struct file_request *request, const struct file_events *events)
{
	struct error e;
	if (file_begin(i->job->builder, "root", request, events, i, &i->call, &e) == 0)
		return 0;
	import_fail(i, &e);
	return -1;
}

/* ---- documents ---- */

static void document_data(void *arg, struct buf *bytes)
{
	struct import *i = arg;
	struct error e;
	buf_append(&i->text, bytes->data, bytes->len);
	if (i->text.len <= IMAGE_JSON_MAX && !i->text.failed)
		return;
	file_cancel(take_ptr(i->call));
	error_set(&e, ERROR_INVALID_IMAGE, "%s is longer than 4 MiB", i->path);
	import_fail(i, &e);
}

static int check_document(struct import *i, struct error *e)
{
	struct digest_check check;
	if (!i->blob)
		return 0;
	digest_begin(&check);
	digest_add(&check, i->text.data, i->text.len);
	return digest_end(&check, &i->blob->digest, i->blob->size, i->path, e);
}

static void document_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct import *i = arg;
	struct error mismatch;
	(void)result;
	i->call = NULL;
	if (e && e->code == ERROR_NOT_FOUND && i->missing)
		i->missing(i);
	else if (e)
		import_fail(i, e);
	else if (check_document(i, &mismatch) < 0)
		import_fail(i, &mismatch);
	else
		i->read(i);
}

static void read_document(struct import *i, const char *path, const struct image_blob *blob,
	void (*read)(struct import *i), void (*missing)(struct import *i))
{
	static const struct file_events events = {.entry = import_ignore_entry,
		.content = ignore_content,
		.data = document_data,
		.done = document_done};
	char full[sizeof "/import/" + IMAGE_PATH_MAX];
	snprintf(full, sizeof full, "/import/%s", path);
	struct file_request request = {
		.fixed = {.op = FILE_READ, .length = RECORD_UNKNOWN},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = full},
	};
	i->path = path;
	i->blob = blob;
	i->read = read;
	i->missing = missing;
	buf_finish(&i->text);
	do_call(i, &request, &events);
}

/* ---- the end ---- */

static void take_config(struct import *i)
{
	struct build *build = i->job->build;
	struct settings *s = &build->settings;
	const struct image_config *c = &i->config;
	if (!i->has_config)
		return;
	for (const char *const *env = c->env; *env; env++)
		settings_set_env(s, *env);
	settings_set_text(&s->workdir, c->workdir);
	settings_set_list(&s->entrypoint, c->entrypoint);
	settings_set_list(&s->command, c->command);
	settings_set_list(&s->ports, c->ports);
	/* "user:group": sandboxes have the user's own groups. */
	char user[64];
	snprintf(user, sizeof user, "%.*s", (int)strcspn(c->user, ":"), c->user);
	settings_set_text(&s->user, user);
}

static void kept(struct build_job *job)
{
	struct build *build = job->build;
	memcpy(build->root, job->layer, ID_SIZE);
	struct layer *layer = layer_find(job->catalogue, build->root);
	build->bytes = layer ? layer->bytes : 0;
	take_config(job->import);
	build_job_end(job);
}

static void import_settled(void *arg, const struct file_result *result, const struct error *e)
{
	struct import *i = arg;
	(void)result;
	i->call = NULL;
	if (e)
		import_fail(i, e);
	else
		build_job_keep(i->job, "", kept);
}

/* Mount points, the user `user`, names of the network. */
static void settle_root(struct import *i)
{
	static const struct file_events events = {.done = import_settled};
	static const struct file_request request = {
		.fixed = {.op = FILE_ROOT},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = "/image"},
	};
	build_log(i->job->build, "info", BUILD_STEP_BASE, "preparing the root");
	do_call(i, &request, &events);
}

static void source_gone(void *arg, const struct file_result *result, const struct error *e)
{
	struct import *i = arg;
	(void)result;
	i->call = NULL;
	if (e)
		import_fail(i, e);
	else
		settle_root(i);
}

static void remove_source(struct import *i)
{
	static const struct file_events events = {
		.entry = import_ignore_entry, .done = source_gone};
	static const struct file_request request = {
		.fixed = {.op = FILE_REMOVE, .flags = FILE_RECURSIVE | FILE_EXIST_OK},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = "/import"},
	};
	do_call(i, &request, &events);
}

static void take_root(struct import *i)
{
	static const struct file_events events = {
		.entry = import_ignore_entry, .done = source_gone};
	static const struct file_request request = {
		.fixed = {.op = FILE_MOVE},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = "/import", [FILE_OTHER] = "/image"},
	};
	build_log(i->job->build, "info", BUILD_STEP_BASE, "it is a root");
	do_call(i, &request, &events);
}

/* ---- layers ---- */

static void next_layer(struct import *i);

static void layer_room(void *arg)
{
	struct import *i = arg;
	if (i->call)
		file_resume(i->call);
}

static void layer_data(void *arg, struct buf *bytes)
{
	struct import *i = arg;
	archive_write(i->archive, bytes->data, bytes->len);
	if (archive_room(i->archive) == 0)
		file_pause(i->call);
}

static void layer_read(void *arg, const struct file_result *result, const struct error *e)
{
	struct import *i = arg;
	(void)result;
	i->call = NULL;
	if (e)
		archive_fail(i->archive, e);
	else
		archive_end(i->archive);
}

static void layer_unpacked(void *arg, const struct error *e)
{
	struct import *i = arg;
	i->archive = NULL;
	if (i->call)
		file_cancel(take_ptr(i->call));
	if (e) {
		import_fail(i, e);
		return;
	}
	i->layer++;
	build_log(i->job->build, "info", BUILD_STEP_BASE, "layer %zu of %zu is unpacked", i->layer,
		i->document.layer_count);
	next_layer(i);
}

static void next_layer(struct import *i)
{
	static const struct archive_events unpacking = {layer_room, layer_unpacked};
	static const struct file_events reading = {.entry = import_ignore_entry,
		.content = ignore_content,
		.data = layer_data,
		.done = layer_read};
	static const struct file_request into = {
		.fixed = {.op = FILE_UNPACK, .flags = FILE_PARENTS | FILE_OWNERS | FILE_LAYER},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = "/image"},
	};
	char full[sizeof "/import/" + IMAGE_PATH_MAX];
	struct error e;
	if (i->layer == i->document.layer_count) {
		remove_source(i);
		return;
	}
	const struct image_blob *blob = &i->document.layers[i->layer];
	snprintf(full, sizeof full, "/import/%s", blob->path);
	struct file_request from = {
		.fixed = {.op = FILE_READ, .length = RECORD_UNKNOWN},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = full},
	};
	i->archive = archive_begin(i->job->builder, &into, blob, &unpacking, i, &e);
	if (!i->archive)
		import_fail(i, &e);
	else
		do_call(i, &from, &reading);
}

static void config_read(struct import *i)
{
	struct error e;
	if (image_parse_config(
		    i->text.data, i->text.len, &i->job->memory, &i->document, &i->config, &e) < 0) {
		import_fail(i, &e);
		return;
	}
	i->has_config = true;
	next_layer(i);
}

/* ---- OCI ---- */

static void note_digest(struct import *i, const struct image_digest *digest)
{
	char text[sizeof "sha256:" + IMAGE_HEX_LEN];
	snprintf(text, sizeof text, "sha256:%s", digest->hex);
	settings_set_text(&i->job->build->digest, text);
	i->digest_seen |= i->spec.digest && strcmp(text, i->spec.digest) == 0;
}

static void index_read(struct import *i)
{
	struct error e;
	const char *ref = i->depth == 0 ? i->spec.ref : NULL;
	if (image_parse_document(
		    i->text.data, i->text.len, ref, &i->job->memory, &i->document, &e) < 0) {
		import_fail(i, &e);
	} else if (i->document.kind == IMAGE_INDEX && ++i->depth > INDEX_DEPTH_MAX) {
		error_set(&e, ERROR_INVALID_IMAGE, "the image's indexes are nested too deeply");
		import_fail(i, &e);
	} else if (i->document.kind == IMAGE_INDEX) {
		struct image_blob *next = scratch_alloc(&i->job->memory, sizeof *next);
		*next = i->document.next;
		note_digest(i, &next->digest);
		read_document(i, next->path, next, index_read, NULL);
	} else if (i->spec.digest && !i->digest_seen) {
		error_set(&e, ERROR_DIGEST_MISMATCH, "the image is %s, not %s",
			i->job->build->digest ? i->job->build->digest : "another one",
			i->spec.digest);
		import_fail(i, &e);
	} else {
		read_document(i, i->document.config.path, &i->document.config, config_read, NULL);
	}
}

/* ---- docker save ---- */

static void docker_read(struct import *i)
{
	struct error e;
	if (image_parse_docker(
		    i->text.data, i->text.len, i->spec.ref, &i->job->memory, &i->document, &e) < 0)
		import_fail(i, &e);
	else
		read_document(i, i->document.config.path, &i->document.config, config_read, NULL);
}

/* ---- what it is ---- */

static void begin_oci(struct import *i)
{
	build_log(i->job->build, "info", BUILD_STEP_BASE, "it is an OCI layout");
	read_document(i, "index.json", NULL, index_read, NULL);
}

static void look_for_oci(struct import *i)
{
	if (i->spec.format == IMPORT_AUTO)
		read_document(i, "oci-layout", NULL, begin_oci, take_root);
	else
		begin_oci(i);
}

static void begin_docker(struct import *i)
{
	build_log(i->job->build, "info", BUILD_STEP_BASE, "it is what docker save writes");
	docker_read(i);
}

static void outer_unpacked(void *arg, const struct error *e)
{
	struct import *i = arg;
	i->archive = NULL;
	i->outer_done = true;
	if (e)
		import_fail(i, e);
	else if (i->spec.format == IMPORT_ROOT)
		take_root(i);
	else if (i->spec.format == IMPORT_OCI || i->spec.digest)
		look_for_oci(i);
	else
		read_document(i, "manifest.json", NULL, begin_docker,
			i->spec.format == IMPORT_DOCKER ? NULL : look_for_oci);
}

/* ---- beginning and end ---- */

static void import_begin(struct build_job *job)
{
	build_log(job->build, "info", BUILD_STEP_BASE, "importing%s%s",
		job->import->spec.origin ? " " : "",
		job->import->spec.origin ? job->import->spec.origin : "");
	build_job_boot(job, begin_outer);
}

/* Frees job->import as well. */
static void import_stop(struct build_job *job)
{
	struct import *i = take_ptr(job->import);
	if (i->archive)
		archive_cancel(i->archive);
	if (i->call)
		file_cancel(i->call);
	buf_finish(&i->waiting);
	buf_finish(&i->text);
	free(i);
}

static const struct build_work import_work = {import_begin, import_stop};

static const char *import_copy_text(struct scratch *memory, const char *text)
{
	if (!text)
		return NULL;
	size_t size = strlen(text) + 1;
	return memcpy(scratch_alloc(memory, size), text, size);
}

int build_import(struct build *build, const struct import_spec *spec, void (*room)(void *arg),
	void *arg, struct error *e)
{
	if (build->job || build->status != BUILD_WAITING)
		return error_set(e, ERROR_NOT_READY, "the build was started already");
	struct build_job *job = build_job_new(
		build, &import_work, spec->timeout_ms > 0 ? spec->timeout_ms : TIMEOUT_DEFAULT_MS);
	struct import *i = mem_new(sizeof *i);
	*i = (struct import){.job = job, .spec = *spec, .room = room, .arg = arg};
	i->spec.ref = import_copy_text(&job->memory, spec->ref);
	i->spec.digest = import_copy_text(&job->memory, spec->digest);
	i->spec.origin = import_copy_text(&job->memory, spec->origin);
	job->import = i;
	settings_set_text(&build->origin, spec->origin ? spec->origin : "archive");
	build->started_ms = clock_wall_ms();
	build_store(build, NULL, NULL);
	build_job_submit(job);
	return 0;
}
