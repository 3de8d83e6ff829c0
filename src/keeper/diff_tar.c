/*
 * Differences as a tar (POSIX pax): what was added or changed with its mode, owner and time, links
 * and hard links; what was deleted as an empty file ".wh.NAME", as in the layers of images, and
 * what is called so but is none with a record of our own. Sockets and devices are left out: they
 * mean nothing elsewhere.
 */
#include "keeper/diff.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/tar.h"
#include "keeper/hard_links.h"

struct tar_writer {
	struct diff_out *out;
	struct hard_links links;
	bool plain; /* what is written now is called like a whiteout, and is none */
};

struct tar_writer *tar_writer_new(struct diff_out *out)
{
	struct tar_writer *t = calloc(1, sizeof *t);
	if (t)
		t->out = out;
	return t;
}

void tar_writer_free(struct tar_writer *t)
{
	hard_links_finish(&t->links);
	free(t);
}

/* ---- headers ---- */

static int put_padding(struct tar_writer *t, uint64_t size)
{
	static const char zero[TAR_BLOCK];
	return size % TAR_BLOCK ? diff_out_bytes(t->out, zero, TAR_BLOCK - size % TAR_BLOCK) : 0;
}

/* Sends a member's header; its content follows. */
static int put_member(struct tar_writer *t, const char *path, char type, const char *link,
	const struct stat *st, uint64_t size)
{
	autobuf head = {0};
	struct tar_member m = {.type = type,
		.size = size,
		.mode = st->st_mode & 07777,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.mtime_s = st->st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
		.plain = t->plain};
	buf_append(&m.path, path, strlen(path) + 1);
	if (link)
		buf_append(&m.target, link, strlen(link) + 1);
	bool complete = !m.path.failed && !m.target.failed;
	if (complete)
		tar_append_header(&head, &m);
	tar_member_finish(&m);
	return !complete || head.failed ? -ENOMEM : diff_out_bytes(t->out, head.data, head.len);
}

/* ---- content ---- */

/* Sends exactly `size` bytes: pads with zeros if the file shrank, cuts if it grew. */
static int diff_tar_put_content(struct tar_writer *t, int fd, uint64_t size)
{
	char chunk[65536];
	uint64_t left = size;
	while (left > 0) {
		size_t want = left < sizeof chunk ? (size_t)left : sizeof chunk;
		ssize_t n = read(fd, chunk, want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0) {
			memset(chunk, 0, want);
			n = (ssize_t)want;
		}
		int r = diff_out_bytes(t->out, chunk, (size_t)n);
		if (r < 0)
			return r;
		left -= (uint64_t)n;
	}
	return put_padding(t, size);
}

static int diff_tar_put_file(struct tar_writer *t, const struct change *c, const char *path)
{
	const struct stat *st = &c->new->st;
	const char *first = st->st_nlink > 1 ? hard_links_find(&t->links, st) : NULL;
	if (first)
		return put_member(t, path, '1', first, st, 0);
	autoclose int fd = diff_open_file(c->new, c->name);
	if (fd < 0)
		return 0; /* it is not there any more */
	/* A file that does not fit the table is sent again as a copy. */
	if (st->st_nlink > 1)
		hard_links_add(&t->links, st, "", path);
	int r = put_member(t, path, '0', NULL, st, (uint64_t)st->st_size);
	return r < 0 ? r : diff_tar_put_content(t, fd, (uint64_t)st->st_size);
}

static int diff_tar_put_link(struct tar_writer *t, const struct change *c, const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(c->new->dir_fd, c->name, target, sizeof target - 1);
	if (n < 0)
		return 0;
	target[n] = '\0';
	return put_member(t, path, '2', target, &c->new->st, 0);
}

static int diff_tar_put_directory(struct tar_writer *t, const struct change *c, const char *path)
{
	char name[PATH_MAX + 1];
	snprintf(name, sizeof name, "%s/", path);
	return put_member(t, name, '5', NULL, &c->new->st, 0);
}

static int put_whiteout(struct tar_writer *t, const struct change *c, const char *path)
{
	char name[PATH_MAX + 8];
	const struct stat st = {.st_mode = 0644};
	t->plain = false;
	snprintf(name, sizeof name, "%.*s.wh.%s", (int)(strlen(path) - strlen(c->name)), path,
		c->name);
	return put_member(t, name, '0', NULL, &st, 0);
}

int tar_write_change(void *arg, const struct change *c)
{
	struct tar_writer *t = arg;
	const char *path = c->path + 1;
	if (c->kind == DIFF_DELETED)
		return put_whiteout(t, c, path);
	/* A whiteout first, so that unpacking need not replace one file type by another. */
	if (c->old->exists && (c->old->st.st_mode & S_IFMT) != (c->new->st.st_mode &S_IFMT)) {
		int r = put_whiteout(t, c, path);
		if (r < 0)
			return r;
	}
	t->plain = strncmp(c->name, ".wh.", 4) == 0;
	switch (c->new->st.st_mode &S_IFMT) {
	case S_IFREG:
		return diff_tar_put_file(t, c, path);
	case S_IFDIR:
		return diff_tar_put_directory(t, c, path);
	case S_IFLNK:
		return diff_tar_put_link(t, c, path);
	case S_IFIFO:
		return put_member(t, path, '6', NULL, &c->new->st, 0);
	default:
		return 0;
	}
}

int tar_write_end(struct tar_writer *t)
{
	static const char zero[2 * TAR_BLOCK];
	return diff_out_bytes(t->out, zero, sizeof zero);
}
