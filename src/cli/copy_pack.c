#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/tar.h"
#include "cli/copy.h"
#include "cli/report.h"

/* A file with several names, and the first of them. */
struct seen {
	struct {
		dev_t dev;
		ino_t ino;
	} id;
	char *path;
	UT_hash_handle hh;
};

struct packing {
	FTS *tree;
	const char *name; /* NULL: paths are relative to the directory */
	size_t prefix;    /* of a path, what is not sent */
	struct progress *progress;
	struct buf ready; /* [ready_at, len) is to be sent */
	size_t ready_at;
	int fd; /* the file being sent; -1 */
	uint64_t left, padding;
	struct seen *seen;
	bool ended;
};

/* ---- one member ---- */

static const char *path_of(const struct packing *p, const FTSENT *f)
{
	const char *path = f->fts_path + p->prefix;
	if (p->name)
		return p->name;
	return *path ? path + (*path == '/') : ".";
}

static void copy_pack_set_text(struct buf *out, const char *text, const char *end)
{
	buf_append_str(out, text);
	buf_append(out, end, strlen(end) + 1);
}

/* The first name of a file that was sent before; NULL: it was not. */
static const char *first_name(struct packing *p, const struct stat *st, const char *path)
{
	struct seen *found, key = {0};
	if (st->st_nlink < 2 || S_ISDIR(st->st_mode))
		return NULL;
	key.id.dev = st->st_dev;
	key.id.ino = st->st_ino;
	// NOLINTNEXTLINE: the hash reads as many bytes as the key has
	HASH_FIND(hh, p->seen, &key.id, sizeof key.id, found);
	if (found)
		return found->path;
	struct seen *s = calloc(1, sizeof *s);
	if (!s || !(s->path = strdup(path))) {
		free(s);
		return NULL; /* then it is sent twice */
	}
	s->id = key.id;
	HASH_ADD(hh, p->seen, id, sizeof s->id, s);
	return NULL;
}

static int set_link(struct tar_member *m, const char *path)
{
	char target[4096];
	ssize_t len = readlink(path, target, sizeof target - 1);
	if (len < 0)
		return cli_report("%s: %s", path, strerror(errno));
	target[len] = '\0';
	copy_pack_set_text(&m->target, target, "");
	m->type = '2';
	return 0;
}

static int set_file(struct packing *p, struct tar_member *m, const char *path)
{
	struct stat st;
	p->fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (p->fd < 0 || fstat(p->fd, &st) < 0)
		return cli_report("%s: %s", path, strerror(errno));
	m->type = '0';
	m->size = p->left = (uint64_t)st.st_size;
	p->padding = (TAR_BLOCK - m->size % TAR_BLOCK) % TAR_BLOCK;
	return 0;
}

/* Skips devices, sockets and pipes: they would not be the same there. */
static int add_member(struct packing *p, const FTSENT *f)
{
	const struct stat *st = f->fts_statp;
	const char *path = path_of(p, f);
	struct tar_member m = {
		.mode = st->st_mode & 07777,
		.mtime_s = st->st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
	};
	const char *first = first_name(p, st, path);
	int r = 0;
	if (first) {
		m.type = '1';
		copy_pack_set_text(&m.target, first, "");
	} else if (S_ISDIR(st->st_mode)) {
		m.type = '5';
	} else if (S_ISLNK(st->st_mode)) {
		r = set_link(&m, f->fts_accpath);
	} else if (S_ISREG(st->st_mode)) {
		r = set_file(p, &m, f->fts_accpath);
	}
	if (r == 0 && m.type) {
		copy_pack_set_text(&m.path, path, m.type == '5' ? "/" : "");
		tar_append_header(&p->ready, &m);
	}
	tar_member_finish(&m);
	return p->ready.failed ? cli_report("out of memory") : r;
}

/* ---- the tree ---- */

static int next_member(struct packing *p)
{
	FTSENT *f;
	errno = 0;
	while ((f = fts_read(p->tree)) != NULL) {
		if (f->fts_info == FTS_DP)
			continue;
		if (f->fts_info == FTS_DNR || f->fts_info == FTS_ERR || f->fts_info == FTS_NS)
			return cli_report("%s: %s", f->fts_path, strerror(f->fts_errno));
		return add_member(p, f);
	}
	if (errno)
		return cli_report("cannot read the directory: %s", strerror(errno));
	static const char end[2 * TAR_BLOCK];
	buf_append(&p->ready, end, sizeof end);
	p->ended = true;
	return 0;
}

/* The file that was promised; what it lacks is filled up. */
static ptrdiff_t read_file(struct packing *p, char *data, size_t size)
{
	size_t most = p->left < size ? (size_t)p->left : size;
	ssize_t n;
	do
		n = read(p->fd, data, most);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return cli_report("cannot read: %s", strerror(errno));
	if (n == 0 && most > 0) {
		memset(data, 0, most);
		n = (ssize_t)most;
	}
	p->left -= (uint64_t)n;
	if (p->left == 0) {
		static const char zeros[TAR_BLOCK];
		close(take_fd(&p->fd));
		buf_append(&p->ready, zeros, (size_t)p->padding);
	}
	return n;
}

ptrdiff_t cli_pack_read(void *packing, char *data, size_t size)
{
	struct packing *p = packing;
	size_t got = 0;
	while (got == 0) {
		if (p->ready_at < p->ready.len) {
			size_t left = p->ready.len - p->ready_at;
			got = left < size ? left : size;
			memcpy(data, p->ready.data + p->ready_at, got);
			p->ready_at += got;
			continue;
		}
		p->ready.len = p->ready_at = 0;
		if (p->fd >= 0) {
			ptrdiff_t n = read_file(p, data, size);
			if (n < 0)
				return n;
			got = (size_t)n;
			continue;
		}
		if (p->ended)
			return 0;
		if (next_member(p) < 0)
			return -1;
	}
	cli_progress_add(p->progress, got);
	return (ptrdiff_t)got;
}

/* ---- begin and end ---- */

/* How much there is; what changes until then only makes the bar wrong. */
static uint64_t copy_pack_measure(const char *path)
{
	char *const roots[] = {(char *)(uintptr_t)path, NULL};
	uint64_t total = 0;
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	for (FTSENT *f; tree && (f = fts_read(tree)) != NULL;)
		if (f->fts_info == FTS_F)
			total += (uint64_t)f->fts_statp->st_size + 2 * TAR_BLOCK;
		else if (f->fts_info != FTS_DP)
			total += 2 * TAR_BLOCK;
	if (tree)
		fts_close(tree);
	return total;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

struct packing *cli_pack_open(
	const char *path, const char *name, struct progress *progress, uint64_t *size)
{
	char *const roots[] = {(char *)(uintptr_t)path, NULL};
	/* A link that is named itself means what it leads to, as with cp. */
	int flags = FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR;
	struct packing *p = mem_new(sizeof *p);
	p->fd = -1;
	p->name = name;
	p->prefix = strlen(path);
	p->progress = progress;
	p->tree = fts_open(roots, flags, by_name);
	if (!p->tree) {
		cli_report("%s: %s", path, strerror(errno));
		free(p);
		return NULL;
	}
	*size = copy_pack_measure(path);
	return p;
}

void cli_pack_close(struct packing *p)
{
	struct seen *s, *next;
	if (!p)
		return;
	HASH_ITER (hh, p->seen, s, next) {
		HASH_DEL(p->seen, s);
		free(s->path);
		free(s);
	}
	if (p->fd >= 0)
		close(p->fd);
	fts_close(p->tree);
	buf_finish(&p->ready);
	free(p);
}
