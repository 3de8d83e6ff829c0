/*
 * Snapshots made of files (image/bundle.h) that another server has exported. A file is unpacked in
 * a builder, by its init: nothing that has privilege reads it. Nothing is kept unless the file was
 * complete.
 */
#pragma once

#include "box/disk/snapshot.h"

struct bundle_import;

struct bundle_import_events {
	void (*room)(void *arg); /* after bundle_import_room was 0 */
	/* Once, unless it was cancelled; never inside a call of the owner's. s: NULL if it failed.
	 */
	void (*done)(void *arg, struct snapshot *s, const struct error *e);
};

/* spec: what is given there counts more than what the file says. Its strings are copied. */
int bundle_import_begin(struct box *b, const char *tenant, const struct snapshot_spec *spec,
	const struct bundle_import_events *events, void *arg, struct bundle_import **ret,
	struct error *e);
size_t bundle_import_room(const struct bundle_import *i);
void bundle_import_write(struct bundle_import *i, const char *data, size_t len);
void bundle_import_end(struct bundle_import *i);
void bundle_import_cancel(struct bundle_import *i);
