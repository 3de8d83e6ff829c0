#include "store/reserve.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

#define PIECES          16
#define PIECE_BYTES     (512 << 10)
#define FILL_EVERY_US   60000000
#define ROOM_FOR_OTHERS 4 /* so many times the reserve must be free before it takes its part */

struct piece_name {
	char text[16];
};

static struct piece_name piece_name(unsigned piece)
{
	struct piece_name name;
	snprintf(name.text, sizeof name.text, "%u", piece);
	return name;
}

static bool has_room(const struct reserve *r)
{
	struct statvfs st;
	return fstatvfs(r->dir_fd, &st) == 0 &&
	       (uint64_t)st.f_bavail * st.f_frsize >
		       (uint64_t)ROOM_FOR_OTHERS * PIECES * PIECE_BYTES;
}

/* Written, not only made longer: a hole keeps no block. */
static bool piece_make(const struct reserve *r, unsigned piece)
{
	static const char zeros[PIECE_BYTES];
	autoclose int fd = openat(r->dir_fd, piece_name(piece).text,
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd >= 0 && write(fd, zeros, sizeof zeros) == sizeof zeros;
}

void reserve_fill(struct reserve *r)
{
	int64_t now = clock_monotonic_us();
	if (r->dir_fd < 0 || r->pieces == PIECES ||
		(r->filled_us && now - r->filled_us < FILL_EVERY_US))
		return;
	r->filled_us = now;
	while (r->pieces < PIECES && has_room(r) && piece_make(r, r->pieces))
		r->pieces++;
}

void reserve_open(struct reserve *r, const char *database)
{
	char path[4096];
	*r = (struct reserve){.dir_fd = -1};
	if (snprintf(path, sizeof path, "%s-reserve", database) >= (int)sizeof path)
		return;
	mkdir(path, 0700); /* fine if it is there */
	r->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	while (r->dir_fd >= 0 && r->pieces < PIECES &&
		faccessat(r->dir_fd, piece_name(r->pieces).text, F_OK, 0) == 0)
		r->pieces++;
	reserve_fill(r);
}

bool reserve_give(struct reserve *r)
{
	if (r->pieces == 0 || unlinkat(r->dir_fd, piece_name(r->pieces - 1).text, 0) < 0)
		return false;
	r->pieces--;
	r->filled_us = clock_monotonic_us();
	log_warn("the data directory is full: a part of the reserve is used", "left",
		log_num(r->pieces));
	return true;
}

void reserve_close(struct reserve *r)
{
	if (r->dir_fd >= 0)
		close(r->dir_fd);
	r->dir_fd = -1;
}
