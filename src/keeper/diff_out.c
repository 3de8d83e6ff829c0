/* Sends the results of a walk as records on a pipe. */
#include "keeper/diff.h"

#include <errno.h>
#include <string.h>
#include <zstd.h>

#include "base/fd.h"

static int send_record(struct diff_out *o, const struct diff_header *r, const void *bytes)
{
	int sent = fd_write_all(o->fd, r, sizeof *r);
	return sent < 0 || r->len == 0 ? sent : fd_write_all(o->fd, bytes, r->len);
}

static uint64_t size_of(const struct view_entry *e)
{
	return e->exists && !S_ISDIR(e->st.st_mode) ? (uint64_t)e->st.st_size : 0;
}

int diff_out_change(struct diff_out *o, const struct change *c)
{
	return send_record(o,
		&(struct diff_header){
			.kind = c->kind,
			.len = (uint32_t)strlen(c->path),
			.old_mode = c->old->exists ? c->old->st.st_mode : 0,
			.new_mode = c->new->exists ? c->new->st.st_mode : 0,
			.old_size = size_of(c->old),
			.new_size = size_of(c->new),
		},
		c->path);
}

static int diff_out_flush(struct diff_out *o)
{
	size_t len = o->len;
	o->len = 0;
	if (len == 0)
		return 0;
	return send_record(
		o, &(struct diff_header){.kind = DIFF_DATA, .len = (uint32_t)len}, o->data);
}

static int diff_out_send_bytes(struct diff_out *o, const char *at, size_t len)
{
	while (len > 0) {
		size_t n = sizeof o->data - o->len < len ? sizeof o->data - o->len : len;
		memcpy(o->data + o->len, at, n);
		o->len += n;
		at += n;
		len -= n;
		int r = o->len == sizeof o->data ? diff_out_flush(o) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* Compresses bytes and sends the output; with `end` it finishes the frame. */
static int diff_out_compress_bytes(
	struct diff_out *o, const void *data, size_t len, ZSTD_EndDirective end)
{
	char chunk[16384];
	ZSTD_inBuffer in = {data, len, 0};
	for (;;) {
		ZSTD_outBuffer out = {chunk, sizeof chunk, 0};
		size_t left = ZSTD_compressStream2(o->compressor, &out, &in, end);
		if (ZSTD_isError(left))
			return -EIO;
		int r = diff_out_send_bytes(o, chunk, out.pos);
		if (r < 0)
			return r;
		if (end == ZSTD_e_end ? left == 0 : in.pos == in.size)
			return 0;
	}
}

int diff_out_compress(struct diff_out *o)
{
	o->compressor = ZSTD_createCCtx();
	return o->compressor ? 0 : -ENOMEM;
}

int diff_out_bytes(struct diff_out *o, const void *data, size_t len)
{
	return o->compressor ? diff_out_compress_bytes(o, data, len, ZSTD_e_continue)
			     : diff_out_send_bytes(o, data, len);
}

int diff_out_end(struct diff_out *o, int error, bool truncated)
{
	int r = o->compressor && !error ? diff_out_compress_bytes(o, NULL, 0, ZSTD_e_end) : 0;
	if (r == 0)
		r = diff_out_flush(o);
	if (r < 0)
		return r;
	return send_record(o,
		&(struct diff_header){.kind = DIFF_END, .error = error, .truncated = truncated},
		NULL);
}
