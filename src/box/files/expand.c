#include "box/files/expand.h"

#include <stdlib.h>

#include "base/mem.h"

#define EXPAND_ROOM (256u * 1024)

struct expand {
	struct codec *codec;
	struct file_call *call;
	const struct expand_events *events;
	void *arg;
	struct buf waiting; /* what the codec has not taken yet */
	bool hungry;        /* the codec is */
	bool full;          /* there was no room, and that there is some again was not told */
	bool complete;      /* nothing comes behind `waiting` */
};

/* Gives the codec its next piece, if both are there. */
static void expand_feed(struct expand *x)
{
	if (!x->hungry || (x->waiting.len == 0 && !x->complete))
		return;
	x->hungry = false;
	if (x->waiting.len > 0)
		codec_push(x->codec, &x->waiting);
	else
		codec_finish(x->codec);
}

static void expand_codec_hungry(void *arg)
{
	struct expand *x = arg;
	x->hungry = true;
	expand_feed(x);
	if (!x->full || x->complete)
		return;
	x->full = false;
	x->events->room(x->arg);
}

static void expand_codec_data(void *arg, struct buf *bytes)
{
	struct expand *x = arg;
	file_put_data(x->call, bytes->data, bytes->len);
	if (file_room(x->call) == 0)
		codec_pause(x->codec);
}

static void expand_codec_ended(void *arg, const struct error *e)
{
	struct expand *x = arg;
	x->events->ended(x->arg, e);
}

struct expand *expand_new(uv_loop_t *loop, enum codec_kind kind, struct file_call *call,
	const struct expand_events *events, void *arg)
{
	static const struct codec_events codec_events = {
		expand_codec_data, expand_codec_hungry, expand_codec_ended};
	struct expand *x = mem_new(sizeof *x);
	*x = (struct expand){.call = call, .events = events, .arg = arg};
	x->codec = codec_new(loop, kind, &codec_events, x);
	return x;
}

void expand_expect(struct expand *x, const struct image_blob *expected)
{
	codec_expect(x->codec, expected);
}

size_t expand_room(const struct expand *x)
{
	return x->waiting.len < EXPAND_ROOM ? EXPAND_ROOM - x->waiting.len : 0;
}

void expand_write(struct expand *x, const char *data, size_t len)
{
	buf_append(&x->waiting, data, len);
	x->full |= expand_room(x) == 0;
	expand_feed(x);
}

void expand_end(struct expand *x)
{
	x->complete = true;
	expand_feed(x);
}

void expand_call_has_room(struct expand *x)
{
	codec_resume(x->codec);
}

void expand_close(struct expand *x)
{
	if (!x)
		return;
	codec_close(x->codec);
	buf_finish(&x->waiting);
	free(x);
}
