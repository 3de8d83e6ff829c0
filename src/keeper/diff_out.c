/* What a walk says, as records on a pipe. */
#include "keeper/diff.h"

#include <string.h>
#include <sys/uio.h>

#include "base/fd.h"

static int send_record(struct diff_out *o, const struct diff_record *r, const void *bytes)
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
		&(struct diff_record){
			.kind = c->kind,
			.len = (uint32_t)strlen(c->path),
			.old_mode = c->old->exists ? c->old->st.st_mode : 0,
			.new_mode = c->new->exists ? c->new->st.st_mode : 0,
			.old_size = size_of(c->old),
			.new_size = size_of(c->new),
		},
		c->path);
}

static int flush(struct diff_out *o)
{
	size_t len = o->len;
	o->len = 0;
	if (len == 0)
		return 0;
	return send_record(
		o, &(struct diff_record){.kind = DIFF_DATA, .len = (uint32_t)len}, o->data);
}

int diff_out_bytes(struct diff_out *o, const void *data, size_t len)
{
	const char *at = data;
	while (len > 0) {
		size_t n = sizeof o->data - o->len < len ? sizeof o->data - o->len : len;
		memcpy(o->data + o->len, at, n);
		o->len += n;
		at += n;
		len -= n;
		int r = o->len == sizeof o->data ? flush(o) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

int diff_out_end(struct diff_out *o, int error, bool truncated)
{
	int r = flush(o);
	if (r < 0)
		return r;
	return send_record(o,
		&(struct diff_record){.kind = DIFF_END, .error = error, .truncated = truncated},
		NULL);
}
