#define ZLIB_CONST
#include "box/files/codec.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "image/digest.h"
#include "image/inflate.h"
#include "image/zip.h"

#define STEP_OUT   (256u * 1024)
#define GZIP_LEVEL 4
#define ZSTD_LEVEL 3

struct codec {
	enum codec_kind kind;
	struct codec_events events;
	void *arg;
	uv_work_t work;
	uv_timer_t later; /* events that are due without a step */
	bool working, paused, closed, timer_closed;
	bool hungry;   /* it has asked, and nothing has come */
	bool finished; /* no more will come */
	bool done;     /* all of it is out */
	bool ended;    /* and that was told */
	bool full;     /* the last step had no room for all that it could have given */
	struct buf in;
	size_t in_at;
	struct buf out;
	uint64_t taken, given;
	struct error error;
	bool failed;
	z_stream gzip;
	ZSTD_CStream *zstd;
	struct inflate *inflate;
	struct zip_writer *zip;
	const struct image_blob *expected; /* NULL: any bytes will do */
	struct digest_check stored, plain;
};

static void codec_advance(struct codec *c);

/* ---- in a thread ---- */

static void codec_fail(struct codec *c, const char *what)
{
	c->failed = true;
	error_set(&c->error, ERROR_INTERNAL, "%s", what);
}

static void step_gzip(struct codec *c)
{
	c->gzip.next_in = (const unsigned char *)c->in.data + c->in_at;
	c->gzip.avail_in = (unsigned)(c->in.len - c->in_at);
	c->gzip.next_out = (unsigned char *)c->out.data;
	c->gzip.avail_out = STEP_OUT;
	int r = deflate(&c->gzip, c->finished ? Z_FINISH : Z_NO_FLUSH);
	if (r == Z_STREAM_ERROR)
		codec_fail(c, "gzip failed");
	c->in_at = c->in.len - c->gzip.avail_in;
	c->out.len = STEP_OUT - c->gzip.avail_out;
	c->done = r == Z_STREAM_END;
}

static void step_zstd(struct codec *c)
{
	ZSTD_inBuffer from = {c->in.data, c->in.len, c->in_at};
	ZSTD_outBuffer to = {c->out.data, STEP_OUT, 0};
	size_t r = ZSTD_compressStream2(
		c->zstd, &to, &from, c->finished ? ZSTD_e_end : ZSTD_e_continue);
	if (ZSTD_isError(r))
		codec_fail(c, "zstd failed");
	c->in_at = from.pos;
	c->out.len = to.pos;
	c->done = c->finished && r == 0;
}

static void step_zip(struct codec *c)
{
	const char *at = c->in.data + c->in_at;
	size_t left = c->in.len - c->in_at;
	c->failed = zip_writer_step(c->zip, &at, &left, STEP_OUT, &c->out, &c->error) < 0;
	c->in_at = c->in.len - left;
	if (c->failed || left > 0 || c->out.len > 0 || !c->finished)
		return;
	int r = zip_writer_finish(c->zip, STEP_OUT, &c->out, &c->error);
	c->failed = r < 0;
	c->done = r > 0;
}

static void check_gzip(struct codec *c)
{
	if (inflate_is_gzip(c->inflate))
		return;
	c->failed = true;
	c->out.len = 0;
	error_set(&c->error, ERROR_INVALID_ARCHIVE, "it is not compressed by gzip");
}

static void step_expand(struct codec *c)
{
	const char *at = c->in.data + c->in_at;
	size_t left = c->in.len - c->in_at;
	c->failed = inflate_step(c->inflate, &at, &left, STEP_OUT, &c->out, &c->error) < 0;
	if (c->expected) {
		digest_add(&c->stored, c->in.data + c->in_at, c->in.len - left - c->in_at);
		digest_add(&c->plain, c->out.data, c->out.len);
	}
	c->in_at = c->in.len - left;
	if (c->kind == CODEC_GUNZIP && !c->failed && (c->out.len > 0 || c->finished))
		check_gzip(c);
	if (c->failed || left > 0 || c->out.len > 0 || !c->finished)
		return;
	c->failed = inflate_end(c->inflate, &c->error) < 0;
	c->done = true;
}

static void do_work(uv_work_t *work)
{
	struct codec *c = work->data;
	if (!buf_reserve(&c->out, STEP_OUT)) {
		codec_fail(c, "out of memory");
		return;
	}
	if (c->kind == CODEC_GZIP)
		step_gzip(c);
	else if (c->kind == CODEC_ZSTD)
		step_zstd(c);
	else if (c->kind == CODEC_ZIP)
		step_zip(c);
	else
		step_expand(c);
}

/* ---- on the loop ---- */

static void codec_free(struct codec *c)
{
	if (c->working || !c->timer_closed)
		return;
	if (c->kind == CODEC_GZIP)
		deflateEnd(&c->gzip);
	ZSTD_freeCStream(c->zstd);
	inflate_free(c->inflate);
	zip_writer_free(c->zip);
	buf_finish(&c->in);
	buf_finish(&c->out);
	free(c);
}

static void timer_closed(uv_handle_t *handle)
{
	struct codec *c = handle->data;
	c->timer_closed = true;
	codec_free(c);
}

void codec_close(struct codec *c)
{
	if (c->closed)
		return;
	c->closed = true;
	uv_close((uv_handle_t *)&c->later, timer_closed);
}

/* A bomb is small until it is looked at. */
static void check_ratio(struct codec *c)
{
	if (c->inflate && c->given > (uint64_t)CODEC_FREE_SIZE &&
		c->given / CODEC_RATIO_MAX > c->taken) {
		c->failed = true;
		error_set(&c->error, ERROR_INVALID_ARCHIVE,
			"the archive expands to more than %d times its size", CODEC_RATIO_MAX);
	}
}

static void check_digests(struct codec *c)
{
	const struct image_blob *wanted = c->expected;
	if (!wanted || !c->done || c->failed)
		return;
	c->failed = digest_end(&c->stored, &wanted->digest, wanted->size, wanted->path, &c->error) <
			    0 ||
		    digest_end(&c->plain, &wanted->plain, -1, wanted->path, &c->error) < 0;
}

static void work_done(uv_work_t *work, int status)
{
	struct codec *c = work->data;
	c->working = false;
	if (c->closed) {
		codec_free(c);
		return;
	}
	if (status < 0)
		codec_fail(c, "the work was cancelled");
	c->given += c->out.len;
	check_ratio(c);
	check_digests(c);
	if (c->in_at == c->in.len) {
		buf_finish(&c->in);
		c->in_at = 0;
	}
	codec_advance(c);
}

static bool has_work(const struct codec *c)
{
	/* Expanding may have more to give without new bytes: the last step then filled its room. */
	return c->in.len > 0 || c->finished || c->full;
}

static void codec_give(struct codec *c)
{
	struct buf bytes = c->out;
	c->full = bytes.len >= STEP_OUT;
	c->out = (struct buf){0};
	c->events.data(c->arg, &bytes);
	buf_finish(&bytes);
}

/* Reports the results so far, then begins the next step if there is input. */
static void codec_advance(struct codec *c)
{
	if (c->working || c->closed || c->ended || (c->paused && c->out.len > 0))
		return;
	if (c->out.len > 0)
		codec_give(c);
	if (c->closed || c->paused)
		return;
	if (c->failed || c->done) {
		c->ended = true;
		c->events.ended(c->arg, c->failed ? &c->error : NULL);
	} else if (has_work(c)) {
		c->full = false;
		c->working = true;
		uv_queue_work(c->later.loop, &c->work, do_work, work_done);
	} else if (!c->hungry) {
		c->hungry = true;
		c->events.hungry(c->arg);
	}
}

static void advance_later(uv_timer_t *timer)
{
	codec_advance(timer->data);
}

static int open_coder(struct codec *c)
{
	switch (c->kind) {
	case CODEC_GZIP:
		return deflateInit2(&c->gzip, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8,
			       Z_DEFAULT_STRATEGY) == Z_OK
			       ? 0
			       : -1;
	case CODEC_ZSTD:
		c->zstd = ZSTD_createCStream();
		if (!c->zstd)
			return -1;
		ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
		return 0;
	case CODEC_ZIP:
		c->zip = zip_writer_new();
		return 0;
	default:
		c->inflate = inflate_new();
		return 0;
	}
}

struct codec *codec_new(
	uv_loop_t *loop, enum codec_kind kind, const struct codec_events *events, void *arg)
{
	struct codec *c = mem_new(sizeof *c);
	c->kind = kind;
	c->events = *events;
	c->arg = arg;
	c->work.data = c;
	if (open_coder(c) < 0)
		mem_exhausted(sizeof *c);
	uv_timer_init(loop, &c->later);
	c->later.data = c;
	uv_timer_start(&c->later, advance_later, 0, 0);
	return c;
}

void codec_expect(struct codec *c, const struct image_blob *expected)
{
	c->expected = expected;
	digest_begin(&c->stored);
	digest_begin(&c->plain);
}

void codec_push(struct codec *c, struct buf *bytes)
{
	c->hungry = false;
	c->taken += bytes->len;
	buf_finish(&c->in);
	c->in = *bytes;
	*bytes = (struct buf){0};
	uv_timer_start(&c->later, advance_later, 0, 0);
}

void codec_finish(struct codec *c)
{
	c->hungry = false;
	c->finished = true;
	uv_timer_start(&c->later, advance_later, 0, 0);
}

void codec_pause(struct codec *c)
{
	c->paused = true;
}

void codec_resume(struct codec *c)
{
	c->paused = false;
	uv_timer_start(&c->later, advance_later, 0, 0);
}
