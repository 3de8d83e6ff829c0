/*
 * Compressing and expanding a stream. The work is done by threads of the loop's, one bounded step
 * at a time, so that the loop never waits for it; bytes go in when it is hungry and come out as
 * fast as they are taken.
 *
 * All events come from the loop, never inside a call of the user's; `ended` is the last, and comes
 * once.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "image/manifest.h"

/*
 * Content that has expanded beyond this size may be at most CODEC_RATIO_MAX times as large as its
 * compressed form.
 */
#define CODEC_FREE_SIZE (INT64_C(1) << 30)
#define CODEC_RATIO_MAX 1000

enum codec_kind {
	CODEC_GZIP,   /* compress */
	CODEC_ZSTD,   /* compress */
	CODEC_ZIP,    /* a tar archive becomes a zip archive */
	CODEC_EXPAND, /* gzip, zstd or neither, by its first bytes */
	CODEC_GUNZIP  /* gzip only */
};

struct codec_events {
	void (*data)(void *arg, struct buf *bytes); /* to be taken, or left */
	void (*hungry)(void *arg);                  /* once per push, and at the begin */
	void (*ended)(void *arg, const struct error *e);
};

struct codec;

struct codec *codec_new(
	uv_loop_t *loop, enum codec_kind kind, const struct codec_events *events, void *arg);
/*
 * Sets the digests that the bytes must have, as they came and expanded; otherwise it fails at the
 * end. Before the first push of a codec that expands. Borrowed; the threads do not look at it.
 */
void codec_expect(struct codec *c, const struct image_blob *expected);
/* Takes the content. Only when it is hungry. */
void codec_push(struct codec *c, struct buf *bytes);
/* There is no more to push. Only when it is hungry. */
void codec_finish(struct codec *c);
/* No data comes before resume. */
void codec_pause(struct codec *c);
void codec_resume(struct codec *c);
/* Closes the codec: no callback comes any more. */
void codec_close(struct codec *c);
