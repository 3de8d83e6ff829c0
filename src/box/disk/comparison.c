#include "box/disk/comparison.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "box/disk/disks.h"
#include "box/sandbox/later.h"

#define CHUNK (64u * 1024)

struct comparison {
	struct box *box;
	struct tenant *tenant;
	uv_pipe_t pipe;
	bool is_open, paused, cancelled, over, taking;
	struct buf in; /* not taken apart yet */
	char *chunk;
	const struct comparison_events *events;
	void *arg;
};

static void comparison_free(struct comparison *c)
{
	struct box *b = c->box;
	tenant_end_comparison(c->tenant);
	buf_finish(&c->in);
	free(c->chunk);
	free(c);
	b->disks.comparisons--;
	box_check_closed(b);
}

static void pipe_closed(uv_handle_t *handle)
{
	comparison_free(handle->data);
}

static void close_pipe(struct comparison *c)
{
	if (c->is_open && !uv_is_closing((uv_handle_t *)&c->pipe))
		uv_close((uv_handle_t *)&c->pipe, pipe_closed);
}

static void comparison_end(struct comparison *c, bool truncated, const struct error *e)
{
	if (c->over || c->cancelled)
		return;
	c->over = true;
	c->events->done(c->arg, truncated, e);
	close_pipe(c);
}

static void comparison_fail(struct comparison *c, int error)
{
	struct error e;
	disks_error(&e, error, "the disks could not be compared");
	comparison_end(c, false, &e);
}

/* ---- records ---- */

static void comparison_take_change(
	struct comparison *c, const struct diff_header *r, const char *path)
{
	char name[4096];
	if (r->len >= sizeof name) {
		comparison_fail(c, EPROTO);
		return;
	}
	memcpy(name, path, r->len);
	name[r->len] = '\0';
	c->events->change(c->arg, &(struct disk_change){(enum diff_kind)r->kind, name, r->old_mode,
					  r->new_mode, r->old_size, r->new_size});
}

static void comparison_take_record(
	struct comparison *c, const struct diff_header *r, const char *bytes)
{
	if (r->kind == DIFF_END && r->error)
		comparison_fail(c, r->error);
	else if (r->kind == DIFF_END)
		comparison_end(c, r->truncated, NULL);
	else if (r->kind == DIFF_DATA)
		c->events->data(c->arg, bytes, r->len);
	else if (r->kind >= DIFF_ADDED && r->kind <= DIFF_DELETED)
		comparison_take_change(c, r, bytes);
	else
		comparison_fail(c, EPROTO);
}

static void take_records(struct comparison *c)
{
	struct diff_header r;
	size_t at = 0;
	if (c->taking) /* who is told something may resume: the loop goes on by itself */
		return;
	c->taking = true;
	while (!c->paused && !c->over && !c->cancelled && c->in.len - at >= sizeof r) {
		memcpy(&r, c->in.data + at, sizeof r);
		if (r.len > DIFF_BYTES_MAX) {
			comparison_fail(c, EPROTO);
			break;
		}
		if (c->in.len - at < sizeof r + r.len)
			break;
		at += sizeof r + r.len;
		comparison_take_record(c, &r, c->in.data + at - r.len);
	}
	buf_consume(&c->in, at);
	c->taking = false;
}

/* ---- the pipe ---- */

static void comparison_give_buffer(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
	struct comparison *c = handle->data;
	(void)size;
	*ret = uv_buf_init(c->chunk, CHUNK);
}

static void bytes_came(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
	struct comparison *c = stream->data;
	if (n < 0) {
		take_records(c);
		comparison_fail(c, EPIPE); /* it ended without its last record */
		return;
	}
	buf_append(&c->in, bytes->base, (size_t)n);
	if (c->in.failed)
		comparison_fail(c, ENOMEM);
	else
		take_records(c);
}

void comparison_pause(struct comparison *c)
{
	c->paused = true;
	if (c->is_open)
		uv_read_stop((uv_stream_t *)&c->pipe);
}

void comparison_resume(struct comparison *c)
{
	c->paused = false;
	take_records(c);
	if (c->is_open && !c->paused && !c->over && !c->cancelled)
		uv_read_start((uv_stream_t *)&c->pipe, comparison_give_buffer, bytes_came);
}

static void comparison_begun(void *arg, const struct keeper_reply *reply)
{
	struct comparison *c = arg;
	if (c->cancelled || reply->error) {
		if (reply->pipe_fd >= 0)
			close(reply->pipe_fd);
		if (!c->cancelled)
			comparison_fail(c, reply->error);
		comparison_free(c);
		return;
	}
	uv_pipe_init(c->box->loop, &c->pipe, 0);
	c->pipe.data = c;
	c->is_open = true;
	int r = uv_pipe_open(&c->pipe, reply->pipe_fd);
	if (r < 0)
		comparison_fail(c, -r);
	else if (!c->paused)
		comparison_resume(c);
}

void comparison_cancel(struct comparison *c)
{
	c->cancelled = true;
	close_pipe(c);
}

/* ---- what with what ---- */

static struct comparison *comparison_new(struct box *b, const char *tenant,
	const struct comparison_events *events, void *arg, struct error *e)
{
	struct tenant *t = tenant_begin_comparison(b, tenant, e);
	if (!t)
		return NULL;
	struct comparison *c = mem_new(sizeof *c);
	c->chunk = mem_new(CHUNK);
	c->box = b;
	c->tenant = t;
	c->events = events;
	c->arg = arg;
	b->disks.comparisons++;
	return c;
}

struct comparison *comparison_begin(struct sandbox *s, const struct checkpoint *checkpoint,
	const struct snapshot *snapshot, enum diff_form form,
	const struct comparison_events *events, void *arg, struct error *e)
{
	struct comparison *c = comparison_new(s->box, s->tenant, events, arg, e);
	if (!c)
		return NULL;
	struct disk_name disk = disk_of(s), from = disk_to_begin_with(s);
	if (checkpoint)
		from = disk_named(DISK_CHECKPOINT, checkpoint->id);
	else if (snapshot)
		from = disk_named(DISK_SNAPSHOT, snapshot->id);
	s->box->driver->disk_diff(s->box->driver, &disk, &from, s->root, form, comparison_begun, c);
	return c;
}

struct comparison *comparison_begin_whole(struct sandbox *s, enum diff_form form,
	const struct comparison_events *events, void *arg, struct error *e)
{
	struct comparison *c = comparison_new(s->box, s->tenant, events, arg, e);
	if (!c)
		return NULL;
	struct disk_name disk = disk_of(s);
	s->box->driver->disk_diff(s->box->driver, &disk, NULL, s->root, form, comparison_begun, c);
	return c;
}

struct comparison *comparison_begin_snapshot(const struct snapshot *s, enum diff_form form,
	const struct comparison_events *events, void *arg, struct error *e)
{
	struct comparison *c = comparison_new(s->box, s->tenant, events, arg, e);
	if (!c)
		return NULL;
	struct disk_name disk = disk_named(DISK_SNAPSHOT, s->id);
	s->box->driver->disk_diff(s->box->driver, &disk, NULL, s->root, form, comparison_begun, c);
	return c;
}
