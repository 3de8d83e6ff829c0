/*
 * An archive on its way into a sandbox: its compression is taken away and its digests are checked
 * as it passes (box/files/expand.h), and init unpacks it. Nothing of it is kept here but a piece.
 */
#pragma once

#include "box/files/files.h"
#include "image/manifest.h"

struct archive;
struct sandbox;

struct archive_events {
	void (*room)(void *arg); /* after archive_room was 0 */
	/* Once, when it is unpacked or cannot be; never inside a call of the owner's. */
	void (*done)(void *arg, const struct error *e);
};

/*
 * request: an UNPACK. expected: what the bytes should be, or NULL; borrowed until the end. NULL
 * with *e when it cannot begin.
 */
struct archive *archive_begin(struct sandbox *s, const struct file_request *request,
	const struct image_blob *expected, const struct archive_events *events, void *arg,
	struct error *e);
/* Returns how many bytes are wanted now. More are accepted, and kept. */
size_t archive_room(const struct archive *a);
void archive_write(struct archive *a, const char *data, size_t len);
/* That was all of it. */
void archive_end(struct archive *a);
/* There will not be all of it, and why; `done` says so. */
void archive_fail(struct archive *a, const struct error *e);
/* `done` will not be called. Not after it was: then it is freed. */
void archive_cancel(struct archive *a);
