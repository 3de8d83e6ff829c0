/* Reads an image's documents out of the builder: index, manifest, configuration. */
#include <stdio.h>

#include "base/cleanup.h"
#include "box/template/import_parts.h"

void import_fail(struct import *i, const struct error *e)
{
	build_job_fail(i->job, BUILD_STEP_BASE, e);
}

void import_ignore_entry(void *arg, const struct file_entry *entry)
{
	(void)arg;
	(void)entry;
}

void import_ignore_content(void *arg, uint64_t length, uint64_t offset)
{
	(void)arg;
	(void)length;
	(void)offset;
}

int import_do_call(
	struct import *i, const struct file_request *request, const struct file_events *events)
{
	struct error e;
	if (file_begin(i->job->builder, "root", request, events, i, &i->call, &e) == 0)
		return 0;
	import_fail(i, &e);
	return -1;
}

static void import_document_data(void *arg, struct buf *bytes)
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

static int import_document_check(struct import *i, struct error *e)
{
	struct digest_check check;
	if (!i->blob)
		return 0;
	digest_begin(&check);
	digest_add(&check, i->text.data, i->text.len);
	return digest_end(&check, &i->blob->digest, i->blob->size, i->path, e);
}

static void import_document_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct import *i = arg;
	struct error mismatch;
	(void)result;
	i->call = NULL;
	if (e && e->code == ERROR_NOT_FOUND && i->missing)
		i->missing(i);
	else if (e)
		import_fail(i, e);
	else if (import_document_check(i, &mismatch) < 0)
		import_fail(i, &mismatch);
	else
		i->read(i);
}

void import_read_document(struct import *i, const char *path, const struct image_blob *blob,
	void (*read)(struct import *i), void (*missing)(struct import *i))
{
	static const struct file_events events = {.entry = import_ignore_entry,
		.content = import_ignore_content,
		.data = import_document_data,
		.done = import_document_done};
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
	import_do_call(i, &request, &events);
}
