/*
 * Compressed bytes on their way into a file call. Threads expand them and check their digests
 * (box/files/codec.h), and the call's own room sets the pace: at most one piece waits on each side,
 * and the loop only passes pieces on, however much a few bytes stand for.
 *
 * Events come from the loop, never inside a call of the owner's.
 */
#pragma once

#include "box/files/codec.h"
#include "box/files/files.h"

struct expand;

struct expand_events {
	void (*room)(void *arg); /* after expand_room was 0 */
	/* Once, as the last: the call has all of it, or *e. */
	void (*ended)(void *arg, const struct error *e);
};

/* kind: CODEC_EXPAND or CODEC_GUNZIP. The call is borrowed until expand_close. */
struct expand *expand_new(uv_loop_t *loop, enum codec_kind kind, struct file_call *call,
	const struct expand_events *events, void *arg);
/* Fails at the end unless the bytes are these; before the first write. Borrowed. */
void expand_expect(struct expand *x, const struct image_blob *expected);
/* Returns how many bytes are wanted now. More are accepted, and kept. */
size_t expand_room(const struct expand *x);
void expand_write(struct expand *x, const char *data, size_t len);
/* That was all of it. */
void expand_end(struct expand *x);
/* The call's `room` is passed on by its owner. */
void expand_call_has_room(struct expand *x);
/* Frees it; nothing more is called. Takes NULL. */
void expand_close(struct expand *x);
