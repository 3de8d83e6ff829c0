/* Shared by the files of an import. */
#pragma once

#include "base/buf.h"
#include "box/files/archive.h"
#include "box/template/build_job.h"
#include "image/digest.h"

struct import {
	struct build_job *job;
	struct import_spec spec;
	void (*room)(void *arg);
	void *arg;
	struct archive *archive; /* what is being unpacked */
	struct file_call *call;  /* what is being read, or done */
	struct buf waiting;      /* came before the builder was there */
	bool input_ended, outer_done;
	/* the document that is being read: */
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

/* ---- import_read.c ---- */

void import_fail(struct import *i, const struct error *e);
/* Begins one file operation of the builder's init. Fails the import and returns -1 if it cannot. */
int import_do_call(
	struct import *i, const struct file_request *request, const struct file_events *events);
/* For operations whose entries and contents do not matter. */
void import_ignore_entry(void *arg, const struct file_entry *entry);
void import_ignore_content(void *arg, uint64_t length, uint64_t offset);
/*
 * Reads a file below /import into i->text, checks it against `blob` if there is one, and calls
 * `read`, or `missing` if there is no such file. Without `missing` that fails the import.
 */
void import_read_document(struct import *i, const char *path, const struct image_blob *blob,
	void (*read)(struct import *i), void (*missing)(struct import *i));

/* ---- import_root.c ---- */

/* Makes /import the template's root. */
void import_take_root(struct import *i);
/* Removes /import when all layers are unpacked below /image, which becomes the template's root. */
void import_remove_source(struct import *i);
