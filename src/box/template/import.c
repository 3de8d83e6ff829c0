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
#include "box/template/import_parts.h"

#define TIMEOUT_DEFAULT_MS (INT64_C(3600) * 1000)
#define INDEX_DEPTH_MAX    4
#define INPUT_WAITING      (256u * 1024)

/* ---- bytes from outside ---- */

static void import_outer_unpacked(void *arg, const struct error *e);

static void import_outer_room(void *arg)
{
	struct import *i = arg;
	if (!i->input_ended)
		i->room(i->arg);
}

static void import_begin_outer(struct build_job *job)
{
	static const struct archive_events events = {import_outer_room, import_outer_unpacked};
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

/* ---- layers ---- */

static void import_next_layer(struct import *i);

static void import_layer_room(void *arg)
{
	struct import *i = arg;
	if (i->call)
		file_resume(i->call);
}

static void import_layer_data(void *arg, struct buf *bytes)
{
	struct import *i = arg;
	archive_write(i->archive, bytes->data, bytes->len);
	if (archive_room(i->archive) == 0)
		file_pause(i->call);
}

static void import_layer_read(void *arg, const struct file_result *result, const struct error *e)
{
	struct import *i = arg;
	(void)result;
	i->call = NULL;
	if (e)
		archive_fail(i->archive, e);
	else
		archive_end(i->archive);
}

static void import_layer_unpacked(void *arg, const struct error *e)
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
	import_next_layer(i);
}

static void import_next_layer(struct import *i)
{
	static const struct archive_events unpacking = {import_layer_room, import_layer_unpacked};
	static const struct file_events reading = {.entry = import_ignore_entry,
		.content = import_ignore_content,
		.data = import_layer_data,
		.done = import_layer_read};
	static const struct file_request into = {
		.fixed = {.op = FILE_UNPACK, .flags = FILE_PARENTS | FILE_OWNERS | FILE_LAYER},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = "/image"},
	};
	char full[sizeof "/import/" + IMAGE_PATH_MAX];
	struct error e;
	if (i->layer == i->document.layer_count) {
		import_remove_source(i);
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
		import_do_call(i, &from, &reading);
}

static void import_config_read(struct import *i)
{
	struct error e;
	if (image_parse_config(
		    i->text.data, i->text.len, &i->job->memory, &i->document, &i->config, &e) < 0) {
		import_fail(i, &e);
		return;
	}
	i->has_config = true;
	import_next_layer(i);
}

/* ---- OCI ---- */

static void import_note_digest(struct import *i, const struct image_digest *digest)
{
	char text[sizeof "sha256:" + IMAGE_HEX_LEN];
	snprintf(text, sizeof text, "sha256:%s", digest->hex);
	settings_set_text(&i->job->build->digest, text);
	i->digest_seen |= i->spec.digest && strcmp(text, i->spec.digest) == 0;
}

static void import_index_read(struct import *i)
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
		import_note_digest(i, &next->digest);
		import_read_document(i, next->path, next, import_index_read, NULL);
	} else if (i->spec.digest && !i->digest_seen) {
		error_set(&e, ERROR_DIGEST_MISMATCH, "the image is %s, not %s",
			i->job->build->digest ? i->job->build->digest : "another one",
			i->spec.digest);
		import_fail(i, &e);
	} else {
		import_read_document(
			i, i->document.config.path, &i->document.config, import_config_read, NULL);
	}
}

/* ---- docker save ---- */

static void import_docker_read(struct import *i)
{
	struct error e;
	if (image_parse_docker(
		    i->text.data, i->text.len, i->spec.ref, &i->job->memory, &i->document, &e) < 0)
		import_fail(i, &e);
	else
		import_read_document(
			i, i->document.config.path, &i->document.config, import_config_read, NULL);
}

/* ---- what it is ---- */

static void import_begin_oci(struct import *i)
{
	build_log(i->job->build, "info", BUILD_STEP_BASE, "it is an OCI layout");
	import_read_document(i, "index.json", NULL, import_index_read, NULL);
}

static void import_look_for_oci(struct import *i)
{
	if (i->spec.format == IMPORT_AUTO)
		import_read_document(i, "oci-layout", NULL, import_begin_oci, import_take_root);
	else
		import_begin_oci(i);
}

static void import_begin_docker(struct import *i)
{
	build_log(i->job->build, "info", BUILD_STEP_BASE, "it is what docker save writes");
	import_docker_read(i);
}

static void import_outer_unpacked(void *arg, const struct error *e)
{
	struct import *i = arg;
	i->archive = NULL;
	i->outer_done = true;
	if (e)
		import_fail(i, e);
	else if (i->spec.format == IMPORT_ROOT)
		import_take_root(i);
	else if (i->spec.format == IMPORT_OCI || i->spec.digest)
		import_look_for_oci(i);
	else
		import_read_document(i, "manifest.json", NULL, import_begin_docker,
			i->spec.format == IMPORT_DOCKER ? NULL : import_look_for_oci);
}

/* ---- beginning and end ---- */

static void import_begin(struct build_job *job)
{
	build_log(job->build, "info", BUILD_STEP_BASE, "importing%s%s",
		job->import->spec.origin ? " " : "",
		job->import->spec.origin ? job->import->spec.origin : "");
	build_job_boot(job, import_begin_outer);
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
