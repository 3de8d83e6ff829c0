#include "base/tar_push.h"

#include <errno.h>
#include <string.h>

static int read_added(void *arg, char *bytes, size_t len)
{
	struct tar_push *p = arg;
	if (p->in.len - p->at < len)
		return -EAGAIN;
	memcpy(bytes, p->in.data + p->at, len);
	p->at += len;
	return 0;
}

void tar_push_add(struct tar_push *p, const void *bytes, size_t len)
{
	buf_consume(&p->in, p->at);
	p->at = 0;
	if (!p->ended)
		buf_append(&p->in, bytes, len);
}

/* Extended headers belong to their member: all of it is there, or it is read again later. */
static int tar_push_next_member(struct tar_push *p)
{
	size_t began = p->at;
	p->reader.read = read_added;
	p->reader.arg = p;
	int r = tar_next(&p->reader);
	if (r == -EAGAIN) {
		p->at = began;
		return TAR_MORE;
	}
	if (r < 0)
		return r;
	p->ended = r == 0;
	if (r == 0)
		return TAR_END;
	p->left = p->reader.member.size;
	p->padding = (TAR_BLOCK - p->left % TAR_BLOCK) % TAR_BLOCK;
	return TAR_MEMBER;
}

static uint64_t tar_push_take(struct tar_push *p, uint64_t want)
{
	uint64_t have = p->in.len - p->at, n = want < have ? want : have;
	p->at += (size_t)n;
	return n;
}

int tar_push_step(struct tar_push *p)
{
	if (p->in.failed)
		return -ENOMEM;
	if (p->ended)
		return TAR_END;
	if (p->left > 0) {
		p->piece = p->in.data + p->at;
		p->piece_len = (size_t)tar_push_take(p, p->left);
		p->left -= p->piece_len;
		return p->piece_len > 0 ? TAR_CONTENT : TAR_MORE;
	}
	p->padding -= tar_push_take(p, p->padding);
	return p->padding > 0 ? TAR_MORE : tar_push_next_member(p);
}

void tar_push_finish(struct tar_push *p)
{
	tar_reader_finish(&p->reader);
	buf_finish(&p->in);
}
