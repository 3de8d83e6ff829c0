#include "keeper/hard_links.h"

#include <errno.h>
#include <string.h>

#include "check.h"

static struct stat file(dev_t device, ino_t inode)
{
	struct stat st;
	memset(&st, 0xa5, sizeof st); /* only two of its fields count */
	st.st_dev = device;
	st.st_ino = inode;
	return st;
}

static void the_first_name_is_found(void)
{
	struct hard_links l = {0};
	struct stat a = file(1, 7), same = file(1, 7), other_device = file(2, 7);
	CHECK(!hard_links_find(&l, &a));
	CHECK_INT(hard_links_add(&l, &a, "dir/", "name"), 0);
	same.st_size = 1;
	CHECK_STR(hard_links_find(&l, &same), "dir/name");
	CHECK(!hard_links_find(&l, &other_device));
	hard_links_finish(&l);
	CHECK(!hard_links_find(&l, &a));
}

static void memory_ends_where_it_must(void)
{
	struct hard_links l = {0};
	char path[4000];
	ino_t count = 0;
	memset(path, 'x', sizeof path - 1);
	path[sizeof path - 1] = '\0';
	for (int r = 0; r == 0; count++) {
		struct stat st = file(1, count);
		r = hard_links_add(&l, &st, path, "");
		CHECK(r == 0 || r == -EMLINK);
	}
	CHECK(count > 8000 && count < 9000);
	CHECK(l.bytes <= HARD_LINKS_BYTES_MAX);
	struct stat first = file(1, 0), last = file(1, count - 2), refused = file(1, count - 1);
	CHECK(hard_links_find(&l, &first) && hard_links_find(&l, &last) &&
		!hard_links_find(&l, &refused));
	hard_links_finish(&l);
}

static const struct check_test tests[] = {
	TEST(the_first_name_is_found),
	TEST(memory_ends_where_it_must),
};

int main(void)
{
	return RUN_TESTS(tests);
}
