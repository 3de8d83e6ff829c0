/*
 * Output that survives crashes. The first OUTPUT_IN_MEMORY bytes stay unacknowledged, so init keeps
 * them, too; from then on bytes are in the spool file before init may forget them. Bytes beyond the
 * limit or without room on disk are dropped, unless a pacing watcher reads: then they wait in
 * `tail` and init waits, too. The last bytes of a terminal stay there and in init.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "box/process/execution_core.h"
#include "box/sandbox/object.h"

void output_init(struct output *o, struct spool *spool, struct kept_account *account,
	const char *execution, unsigned stream)
{
	*o = (struct output){.account = account};
	spool_file_init(&o->file, spool, execution, stream);
}

void output_finish(struct output *o)
{
	buf_finish(&o->memory);
	buf_finish(&o->tail);
	spool_file_finish(&o->file);
}

void output_restore(struct output *o)
{
	int64_t size = spool_file_size(&o->file);
	if (size < 0)
		return;
	o->spooled = true;
	o->stored = o->end = (uint64_t)size;
}

void output_charge_restored(struct output *o)
{
	if (!o->spooled || !o->account)
		return;
	o->charged = o->stored;
	kept_force_charge(o->account, o->charged);
}

static int output_charge(struct output *o, size_t len)
{
	if (o->account && !kept_charge(o->account, len))
		return -EDQUOT;
	o->charged += o->account ? len : 0;
	return 0;
}

/* From memory to a file: from now on every byte is on disk before it is acknowledged. */
static int output_spill(struct output *o)
{
	if (!o->file.spool)
		return -EDQUOT;
	int r = output_charge(o, o->memory.len);
	if (r == 0)
		r = spool_file_create(&o->file);
	if (r == 0)
		r = spool_file_write(&o->file, o->memory.data, o->memory.len, 0);
	if (r < 0) {
		spool_file_remove(&o->file);
		return r;
	}
	o->spooled = true;
	buf_finish(&o->memory);
	return 0;
}

static int output_keep(struct output *o, const char *data, size_t len)
{
	if (!o->spooled && o->stored + len <= OUTPUT_IN_MEMORY) {
		buf_append(&o->memory, data, len);
		if (o->memory.failed)
			return -ENOMEM;
		o->stored += len;
		return 0;
	}
	int r = o->spooled ? 0 : output_spill(o);
	if (r == 0)
		r = output_charge(o, len);
	if (r == 0)
		r = spool_file_write(&o->file, data, len, o->stored);
	if (r == 0)
		o->stored += len;
	return r;
}

/* Keeps as much as the limits and the disk allow; returns how much that was. */
static size_t output_keep_some(struct output *o, uint64_t limit, const char *data, size_t len)
{
	/* Keeps the beginning of the stream, without a gap. */
	if (output_is_settled(o, limit, UINT64_MAX))
		return 0;
	size_t part = limit - o->stored < len ? (size_t)(limit - o->stored) : len;
	uint64_t before = o->stored;
	int r = output_keep(o, data, part);
	o->full |= r < 0;
	if (r < 0 && r != -EDQUOT)
		log_warn("cannot spool output", "file", o->file.name, "error", strerror(-r));
	return (size_t)(o->stored - before);
}

int output_append(struct output *o, uint64_t limit, bool keep_tail, uint64_t offset,
	const char *data, size_t len)
{
	if (offset > o->end)
		return -EPROTO;
	if (offset + len <= o->end)
		return 0;
	data += o->end - offset;
	len -= (size_t)(o->end - offset);
	size_t kept = output_keep_some(o, limit, data, len);
	o->end += len;
	if (kept == len)
		return 0;
	/* Init will be told to forget more than we keep: then what we keep must be on disk. */
	if (!o->spooled && !o->full && output_spill(o) < 0)
		o->full = true;
	if (!keep_tail) {
		buf_finish(&o->tail);
		o->tail_start = o->end;
		return 0;
	}
	if (o->tail.len == 0)
		o->tail_start = o->end - (len - kept);
	buf_append(&o->tail, data + kept, len - kept);
	return o->tail.failed ? -ENOMEM : 0;
}

bool output_is_settled(const struct output *o, uint64_t limit, uint64_t end)
{
	return o->end >= end || o->full || o->stored >= limit || o->stored != o->end;
}

uint64_t output_release(struct output *o, uint64_t slowest)
{
	if (!o->spooled && o->stored == o->end)
		return 0;
	uint64_t held = o->end < o->recent ? o->end : o->recent;
	if (slowest > o->end - held)
		slowest = o->end - held;
	if (slowest < o->stored)
		slowest = o->stored;
	if (o->tail.len > 0 && slowest > o->tail_start) {
		buf_consume(&o->tail, (size_t)(slowest - o->tail_start));
		o->tail_start = slowest;
	}
	return slowest;
}

void output_copy(const struct output *o, struct output_copy *ret)
{
	*ret = (struct output_copy){.length = o->stored, .spooled = o->spooled};
	ret->file = o->file;
	ret->file.fd = -1;
	if (!o->spooled)
		buf_append(&ret->memory, o->memory.data, o->memory.len);
}

void output_copy_finish(struct output_copy *c)
{
	buf_finish(&c->memory);
	spool_file_finish(&c->file);
}

static int read_part(
	struct buf *memory, struct spool_file *file, uint64_t position, size_t len, struct buf *out)
{
	if (!file) {
		buf_append(out, memory->data + position, len);
		return (int)len;
	}
	if (!buf_reserve(out, len))
		return -ENOMEM;
	ssize_t n = spool_file_read(file, out->data + out->len, len, position);
	if (n > 0)
		out->len += (size_t)n;
	return (int)n;
}

int output_copy_read(struct output_copy *c, uint64_t *position, size_t max, struct buf *out)
{
	size_t len = c->length - *position < max ? (size_t)(c->length - *position) : max;
	int n = len > 0 ? read_part(&c->memory, c->spooled ? &c->file : NULL, *position, len, out)
			: 0;
	if (n > 0)
		*position += (uint64_t)n;
	return n < 0 ? n : 0;
}

int output_read(struct output *o, uint64_t *position, size_t max, struct buf *out)
{
	if (*position < o->stored) {
		size_t stored = (size_t)(o->stored - *position);
		int n = read_part(&o->memory, o->spooled ? &o->file : NULL, *position,
			stored < max ? stored : max, out);
		if (n > 0)
			*position += (uint64_t)n;
		return n < 0 ? n : 0;
	}
	if (*position >= o->end)
		return 0;
	uint64_t tail_start = o->tail.len ? o->tail_start : o->end;
	if (*position < tail_start)
		*position = tail_start; /* what was here is gone */
	size_t left = (size_t)(o->end - *position);
	size_t len = left < max ? left : max;
	if (o->tail.len)
		buf_append(out, o->tail.data + (*position - tail_start), len);
	*position += len;
	return 0;
}
