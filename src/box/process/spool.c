#include "box/process/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"

#define RESERVE_MAX (INT64_C(256) << 20)
#define CHECK_BYTES (UINT64_C(8) << 20)
#define CHECK_MS    1000
#define SHARE_OF    10
#define RESERVE_OF  20

void spool_file_init(
	struct spool_file *f, struct spool *spool, const char *execution, unsigned stream)
{
	*f = (struct spool_file){.spool = spool, .fd = -1};
	snprintf(f->name, sizeof f->name, "%s.%u", execution, stream % 10);
}

static void spool_file_path(const struct spool_file *f, char out[256])
{
	snprintf(out, 256, "%s/%s", f->spool->dir, f->name);
}

void spool_file_finish(struct spool_file *f)
{
	if (f->fd < 0)
		return;
	close(f->fd);
	f->fd = -1;
	DL_DELETE(f->spool->open, f);
	f->spool->open_count--;
}

static int spool_file_open(struct spool_file *f, int flags)
{
	char path[256];
	struct spool *s = f->spool;
	if (s->open && s->open_count >= SPOOL_OPEN_MAX)
		spool_file_finish(s->open);
	spool_file_path(f, path);
	f->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	if (f->fd < 0)
		return -errno;
	DL_APPEND(s->open, f);
	s->open_count++;
	return 0;
}

/* Open, and the last of those that would be closed for another one. */
static int spool_file_use(struct spool_file *f)
{
	if (!f->spool)
		return -ENOENT;
	if (f->fd < 0)
		return spool_file_open(f, 0);
	DL_DELETE(f->spool->open, f);
	DL_APPEND(f->spool->open, f);
	return 0;
}

int spool_file_create(struct spool_file *f)
{
	spool_file_finish(f);
	return f->spool ? spool_file_open(f, O_CREAT | O_TRUNC) : -ENOENT;
}

int spool_file_write(struct spool_file *f, const char *data, size_t len, uint64_t offset)
{
	int r = spool_file_use(f);
	while (r == 0 && len > 0) {
		ssize_t n = pwrite(f->fd, data, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		len -= (size_t)n;
		offset += (size_t)n;
		f->spool->unchecked += (size_t)n;
	}
	return r;
}

ssize_t spool_file_read(struct spool_file *f, char *data, size_t len, uint64_t offset)
{
	int r = spool_file_use(f);
	if (r < 0)
		return r;
	ssize_t n = pread(f->fd, data, len, (off_t)offset);
	if (n <= 0)
		return n < 0 ? -errno : -EIO;
	return n;
}

int64_t spool_file_size(struct spool_file *f)
{
	struct stat st;
	int r = spool_file_use(f);
	if (r < 0)
		return r;
	return fstat(f->fd, &st) < 0 ? -errno : st.st_size;
}

void spool_file_remove(struct spool_file *f)
{
	char path[256];
	spool_file_finish(f);
	if (!f->spool)
		return;
	spool_file_path(f, path);
	unlink(path);
}

bool spool_has_room(struct spool *s)
{
	struct statvfs st;
	int64_t now = clock_monotonic_us() / 1000;
	if (s->unchecked < CHECK_BYTES && s->checked_ms && now - s->checked_ms < CHECK_MS)
		return !s->is_short;
	s->unchecked = 0;
	s->checked_ms = now;
	if (statvfs(s->dir, &st) < 0)
		return !s->is_short;
	int64_t all = (int64_t)st.f_blocks * (int64_t)st.f_frsize;
	int64_t reserve = all / RESERVE_OF < RESERVE_MAX ? all / RESERVE_OF : RESERVE_MAX;
	s->is_short = (int64_t)st.f_bavail * (int64_t)st.f_frsize <= reserve;
	return !s->is_short;
}

int64_t spool_share(const struct spool *s)
{
	struct statvfs st;
	if (statvfs(s->dir, &st) < 0)
		return INT64_MAX / 8;
	return (int64_t)st.f_blocks * (int64_t)st.f_frsize / SHARE_OF;
}
