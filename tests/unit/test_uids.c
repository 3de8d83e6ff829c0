/*
 * Blocks of uids, more of them than a server ever had sandboxes: given out without overlap, given
 * back, and given out again. The locks are those of the host, so that a server which runs beside
 * the test keeps its chunks; what is taken here is free again when the test ends.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "check.h"
#include "warden/warden.h"

#define BLOCKS 10000u

static struct warden w;
static uid_t blocks[BLOCKS];

static int compare_uids(const void *a, const void *b)
{
	uid_t x = *(const uid_t *)a, y = *(const uid_t *)b;
	return (x > y) - (x < y);
}

static char place[64];

static void leave(void)
{
	rmdir(place);
}

/* A cgroup of our own beside those of servers, whose sandboxes must be seen. */
static bool make_place(void)
{
	const char *roots[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"};
	snprintf(w.instance, sizeof w.instance, "test%d", getpid());
	for (size_t i = 0; i < 2; i++) {
		struct statfs fs;
		if (statfs(roots[i], &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
			continue;
		snprintf(place, sizeof place, "%s/bunker-%s", roots[i], w.instance);
		if (mkdir(place, 0700) < 0)
			return false;
		atexit(leave);
		w.cgroup_v2_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return w.cgroup_v2_fd >= 0;
	}
	return false;
}

static void a_server_has_a_block_for_its_front(void)
{
	struct error e = {0};
	CHECK_INT(uids_open(&w, &e), 0);
	CHECK_INT(uids_count(&w), 1);
	CHECK_INT(w.front_uid % UID_BLOCK % 128, FRONT_UID % 128);
}

static void ten_thousand_blocks_do_not_overlap(void)
{
	unsigned own = uids_count(&w);
	for (unsigned i = 0; i < BLOCKS; i++)
		CHECK_INT(uids_take(&w, &blocks[i]), 0);
	CHECK_INT(uids_count(&w), own + BLOCKS);
	qsort(blocks, BLOCKS, sizeof *blocks, compare_uids);
	CHECK(blocks[0] >= 16u << 24);
	for (unsigned i = 1; i < BLOCKS; i++)
		CHECK(blocks[i] - blocks[i - 1] >= UID_BLOCK);
	/* The uid -1 is nobody's, and the front's is in none of them. */
	CHECK(blocks[BLOCKS - 1] <= UINT32_MAX - UID_BLOCK);
	for (unsigned i = 0; i < BLOCKS; i++)
		CHECK(w.front_uid - blocks[i] >= UID_BLOCK);
}

/* In the kernel's table of 128 rows. */
static void ten_thousand_blocks_are_spread_over_all_rows(void)
{
	unsigned rows[128] = {0}, longest = 0;
	for (unsigned i = 0; i < BLOCKS; i++) {
		unsigned *row = &rows[((blocks[i] >> 7) + blocks[i]) % 128];
		longest = ++*row > longest ? *row : longest;
	}
	CHECK(longest <= 2 * BLOCKS / 128);
}

static void a_block_that_is_given_back_is_given_out_again(void)
{
	uid_t again;
	unsigned before = uids_count(&w);
	uids_release(&w, blocks[4321]);
	CHECK_INT(uids_count(&w), before - 1);
	for (unsigned i = 0; i < BLOCKS; i++) {
		CHECK_INT(uids_take(&w, &again), 0);
		if (again == blocks[4321])
			break;
		uids_release(&w, again);
	}
	CHECK_INT(again, blocks[4321]);
}

static const struct check_test tests[] = {
	TEST(a_server_has_a_block_for_its_front),
	TEST(ten_thousand_blocks_do_not_overlap),
	TEST(ten_thousand_blocks_are_spread_over_all_rows),
	TEST(a_block_that_is_given_back_is_given_out_again),
};

int main(void)
{
	if (geteuid() != 0 || !make_place()) {
		puts("skipped: it takes root, and cgroup v2");
		return 0;
	}
	return RUN_TESTS(tests);
}
