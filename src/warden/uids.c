/*
 * Which uids are ours. The host's are dealt out in chunks of 255 blocks; a sandbox has a block, and
 * so has the front. A server takes a chunk when it has no free block left, and keeps it until it
 * ends.
 *
 * A running server's chunks are its own by locks: a byte of /run/bunker/uids for each. Those of a
 * server that is down are told by what lives on: the owner of a sandbox's cgroup is the first uid
 * of its block. Nothing else records them.
 */
#include "warden/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define LOCK_DIR      "/run/bunker"
#define LOCK_TRIES    100
#define LOCK_PAUSE_US 10000

/* Below are the uids of the host and its containers; in the last chunk is the uid -1. */
#define CHUNK_FIRST 16u
#define CHUNK_END   255u

/* The kernel looks for a uid in a table of 128 rows, by (uid >> 7) + uid. With the first uids of
 * all blocks in one row, each exec would walk through those of all sandboxes. */
#define BLOCK_STRIDE (UID_BLOCK + 128u)
#define CHUNK_UIDS   (1u << 24)
#define CHUNK_BLOCKS (CHUNK_UIDS / BLOCK_STRIDE)

/* ---- blocks ---- */

static void mark_block(uint8_t used[UID_CHUNKS][32], uid_t uid, bool is_used)
{
	unsigned block = uid % CHUNK_UIDS / BLOCK_STRIDE;
	uint8_t *bits = &used[uid / CHUNK_UIDS][block / 8], bit = (uint8_t)(1u << (block % 8));
	*bits = (uint8_t)(is_used ? *bits | bit : *bits & ~bit);
}

static bool chunk_is_used(uint8_t used[UID_CHUNKS][32], unsigned chunk)
{
	static const uint8_t none[32];
	return memcmp(used[chunk], none, sizeof none) != 0;
}

/* Marks the blocks of the sandboxes below a server's cgroup; one booted by version 0.2 is in two of
 * them. */
static void mark_living(int server_fd, uint8_t used[UID_CHUNKS][32])
{
	autodir DIR *dir = fd_open_dir_at(server_fd, ".");
	struct dirent *entry;
	struct stat st;
	while (dir && (entry = readdir(dir)) != NULL) {
		if (!id_is_valid(entry->d_name) ||
			fstatat(server_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		mark_block(used, st.st_uid, true);
		mark_block(used, st.st_uid + UID_BLOCK - 1, true);
	}
}

/*
 * Returns whether sandboxes of other servers live in a chunk. A server's cgroup without a process
 * is that of one which was killed and whose data is gone: nobody will ever remove it.
 */
static bool others_live_in(const struct warden *w, unsigned chunk)
{
	uint8_t used[UID_CHUNKS][32] = {0};
	char own[CGROUP_NAME_SIZE];
	autodir DIR *dir = fd_open_dir_at(w->cgroup_v2_fd, "..");
	struct dirent *entry;
	cgroup_own_name(w, own);
	while (dir && (entry = readdir(dir)) != NULL) {
		if (strncmp(entry->d_name, "bunker-", 7) != 0 || strcmp(entry->d_name, own) == 0)
			continue;
		autoclose int fd =
			openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && fd_read_number_at(fd, "cgroup.events", "populated"))
			mark_living(fd, used);
	}
	return !dir || chunk_is_used(used, chunk);
}

/* ---- chunks ---- */

/* Servers of version 0.2 lock sixteen chunks at once, by a file for each of their ranges. */
static int share_old_range(struct uids *u, unsigned chunk)
{
	char path[64];
	unsigned sixteen = chunk / 16;
	if (u->old_fd[sixteen] > 0)
		return 0;
	snprintf(path, sizeof path, LOCK_DIR "/range-%u.lock", sixteen - 1);
	autoclose int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0)
		return -errno;
	u->old_fd[sixteen] = take_fd(&fd);
	return 0;
}

static int chunk_set_lock(const struct uids *u, unsigned chunk, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = chunk, .l_len = 1};
	return fcntl(u->lock_fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

static int chunk_lock(struct uids *u, unsigned chunk)
{
	int r = share_old_range(u, chunk);
	return r < 0 ? r : chunk_set_lock(u, chunk, F_WRLCK);
}

/* Returns -EAGAIN for a chunk that is another server's. */
static int chunk_take(struct warden *w, unsigned chunk)
{
	int r = chunk_lock(&w->uids, chunk);
	if (r < 0)
		return r;
	/* Not before: a server that runs may begin to use what it has, and end. */
	if (others_live_in(w, chunk)) {
		chunk_set_lock(&w->uids, chunk, F_UNLCK);
		return -EAGAIN;
	}
	w->uids.ours[chunk] = true;
	return 0;
}

static int chunk_take_any(struct warden *w)
{
	int r = -EAGAIN;
	for (unsigned chunk = CHUNK_FIRST; chunk < CHUNK_END && r == -EAGAIN; chunk++)
		if (!w->uids.ours[chunk])
			r = chunk_take(w, chunk);
	return r == -EAGAIN ? -EUSERS : r;
}

/* Takes the chunks in which our sandboxes live. Somebody may be trying one of them this moment. */
static int chunk_take_own(struct warden *w, struct error *e)
{
	mark_living(w->cgroup_v2_fd, w->uids.used);
	for (unsigned chunk = CHUNK_FIRST; chunk < CHUNK_END; chunk++) {
		int r = chunk_is_used(w->uids.used, chunk) ? chunk_take(w, chunk) : 0;
		for (int i = 0; i < LOCK_TRIES && r == -EAGAIN; i++) {
			usleep(LOCK_PAUSE_US);
			r = chunk_take(w, chunk);
		}
		if (r == -EAGAIN)
			return error_set(e, ERROR_UNAVAILABLE,
				"another bunker server uses the uids of this one's sandboxes");
		if (r < 0)
			return error_set_errno(e, r, "cannot lock uids in " LOCK_DIR);
	}
	return 0;
}

/* ---- for others ---- */

/* Round and round, so that a block rests as long as possible before it is used again. */
static bool take_free_block(struct uids *u, uid_t *ret)
{
	const unsigned count = UID_CHUNKS * CHUNK_BLOCKS;
	for (unsigned i = 0; i < count; i++) {
		unsigned at = (u->next + i) % count;
		unsigned chunk = at / CHUNK_BLOCKS, block = at % CHUNK_BLOCKS;
		if (!u->ours[chunk] || (u->used[chunk][block / 8] & 1u << block % 8))
			continue;
		*ret = chunk * CHUNK_UIDS + block * BLOCK_STRIDE;
		mark_block(u->used, *ret, true);
		u->next = at + 1;
		return true;
	}
	return false;
}

int uids_take(struct warden *w, uid_t *ret)
{
	if (take_free_block(&w->uids, ret))
		return 0;
	int r = chunk_take_any(w);
	return r < 0 ? r : take_free_block(&w->uids, ret) ? 0 : -EUSERS;
}

void uids_release(struct warden *w, uid_t first)
{
	/* The two blocks that one of version 0.2 is in may be another's as well: they stay marked.
	 */
	if (first % CHUNK_UIDS % BLOCK_STRIDE == 0)
		mark_block(w->uids.used, first, false);
}

unsigned uids_count(const struct warden *w)
{
	unsigned count = 0;
	for (unsigned chunk = CHUNK_FIRST; chunk < CHUNK_END; chunk++)
		for (size_t i = 0; w->uids.ours[chunk] && i < sizeof w->uids.used[chunk]; i++)
			count += (unsigned)__builtin_popcount(w->uids.used[chunk][i]);
	return count;
}

int uids_open(struct warden *w, struct error *e)
{
	uid_t first;
	mkdir(LOCK_DIR, 0755);
	w->uids.lock_fd = open(LOCK_DIR "/uids", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (w->uids.lock_fd < 0)
		return error_set_errno(e, errno, "cannot open " LOCK_DIR "/uids");
	if (chunk_take_own(w, e) < 0)
		return -1;
	int r = uids_take(w, &first);
	if (r == -EUSERS)
		return error_set(e, ERROR_UNAVAILABLE,
			"all %u chunks of %u blocks of uids are taken by other bunker servers on this host",
			CHUNK_END - CHUNK_FIRST, CHUNK_BLOCKS);
	if (r < 0)
		return error_set_errno(e, r, "cannot lock uids in " LOCK_DIR);
	w->front_uid = first | FRONT_UID;
	return 0;
}
