/* What happens in a directory, as it is told. */
#include <poll.h>

#include "files_fixture.h"

static void watch(const char *path, unsigned flags)
{
	struct record_header h;
	ask_only(&(struct ask){.op = FILE_WATCH, .path = path, .flags = flags});
	forget_answer();
	CHECK(receive(&h));
	CHECK_INT(h.type, RECORD_READY);
	forget_answer();
}

/* Events until nothing has come for a moment. */
static const char *events(void)
{
	struct record_header h;
	struct pollfd p = {.fd = worker, .events = POLLIN};
	forget_answer();
	while (poll(&p, 1, 150) > 0 && receive(&h))
		;
	return lines();
}

static void tells_of_files(void)
{
	fresh();
	CHECK_INT(mkdir("d", 0755), 0);
	watch("d", 0);
	put_file("d/a", "x");
	CHECK_STR(events(), "create a\nwrite a\n");
	CHECK_INT(chmod("d/a", 0600), 0);
	CHECK_STR(events(), "chmod a\n");
	CHECK_INT(rename("d/a", "d/b"), 0);
	CHECK_STR(events(), "rename a b\n");
	CHECK_INT(unlink("d/b"), 0);
	CHECK_STR(events(), "remove b\n");
	put_file("outside", "");
	CHECK_INT(rename("outside", "d/in"), 0);
	CHECK_STR(events(), "create in\n");
	CHECK_INT(rename("d/in", "outside"), 0);
	CHECK_STR(events(), "remove in\n");
	CHECK_INT(mkdir("d/sub", 0755), 0);
	CHECK_STR(events(), "create sub\n");
	put_file("d/sub/x", "");
	CHECK_STR(events(), "");
}

static void tells_of_everything_below_when_asked(void)
{
	fresh();
	CHECK_INT(mkdir("d", 0755) | mkdir("d/old", 0755), 0);
	watch("d", FILE_RECURSIVE);
	put_file("d/old/a", "x");
	CHECK_STR(events(), "create old/a\nwrite old/a\n");
	CHECK_INT(mkdir("d/new", 0755), 0);
	CHECK_STR(events(), "create new\n");
	put_file("d/new/a", "x");
	CHECK_STR(events(), "create new/a\nwrite new/a\n");
	CHECK_INT(rename("d/new", "d/old/moved"), 0);
	CHECK_STR(events(), "rename new old/moved\n");
	put_file("d/old/moved/a", "");
	CHECK_STR(events(), "write old/moved/a\n");
	CHECK_INT(rename("d/old", "gone"), 0);
	CHECK_STR(events(), "remove old\n");
	put_file("gone/moved/a", "more");
	CHECK_STR(events(), "");
	CHECK_INT(rename("gone", "d/back"), 0);
	CHECK_STR(events(), "create back\ncreate back/a\ncreate back/moved\ncreate back/moved/a\n");
	put_file("d/back/moved/a", "more");
	CHECK(strstr(events(), "write back/moved/a\n") != NULL);
	CHECK_INT(system("rm -r d/back"), 0);
	CHECK(strstr(events(), "remove back/moved/a\n") != NULL);
}

/* Each of many files in directories that appear while we look, exactly once. */
static void loses_and_doubles_nothing_in_new_directories(void)
{
	fresh();
	CHECK_INT(mkdir("d", 0755), 0);
	watch("d", FILE_RECURSIVE);
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 60; i++) {
			char path[64];
			snprintf(path, sizeof path, "d/%02d", i);
			mkdir(path, 0755);
			snprintf(path, sizeof path, "d/%02d/x", i);
			mkdir(path, 0755);
			for (int k = 0; k < 20; k++) {
				snprintf(path, sizeof path, "d/%02d/x/%02d", i, k);
				close(open(path, O_WRONLY | O_CREAT, 0644));
			}
		}
		_exit(0);
	}
	const char *text = events();
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 60; i++) {
		for (int k = 0; k < 20; k++) {
			char line[64];
			snprintf(line, sizeof line, "create %02d/x/%02d\n", i, k);
			const char *first = strstr(text, line);
			CHECK(first != NULL);
			CHECK(strstr(first + 1, line) == NULL);
		}
	}
}

static void ends_with_what_it_watches(void)
{
	fresh();
	CHECK_INT(mkdir("d", 0755), 0);
	watch("d", FILE_RECURSIVE);
	CHECK_INT(rmdir("d"), 0);
	CHECK_INT(receive_all(), 0);
	CHECK_STR(lines(), "remove\n");
	CHECK_INT(ask((struct ask){.op = FILE_WATCH, .path = "none"}), ENOENT);
	put_file("f", "");
	CHECK_INT(ask((struct ask){.op = FILE_WATCH, .path = "f"}), ENOTDIR);
}

static void says_when_events_were_lost(void)
{
	fresh();
	CHECK_INT(mkdir("d", 0755), 0);
	watch("d", 0);
	kill(worker_pid, SIGSTOP);
	for (int i = 0; i < 20000; i++) {
		char path[32];
		snprintf(path, sizeof path, "d/%d", i % 7);
		close(open(path, O_WRONLY | O_CREAT, 0644));
		unlink(path);
	}
	kill(worker_pid, SIGCONT);
	CHECK(strstr(events(), "overflow\n") != NULL);
}

static void tells_all_that_happened_before_a_sync(void)
{
	struct record_header h, sync = {.type = RECORD_SYNC};
	fresh();
	CHECK_INT(mkdir("d", 0755), 0);
	watch("d", 0);
	for (int i = 0; i < 100; i++) {
		put_file("d/a", "");
		CHECK_INT(rename("d/a", "gone"), 0); /* a rename without a second half */
		forget_answer();
		CHECK_INT(write(worker, &sync, sizeof sync), (long)sizeof sync);
		do
			CHECK(receive(&h));
		while (h.type != RECORD_SYNCED);
		CHECK_STR(lines(), "create a\nremove a\nsynced\n");
	}
}

static void ends_with_the_front(void)
{
	fresh();
	watch(".", FILE_RECURSIVE);
	worker_stop();
}

static const struct check_test tests[] = {
	TEST(tells_of_files),
	TEST(tells_of_everything_below_when_asked),
	TEST(loses_and_doubles_nothing_in_new_directories),
	TEST(ends_with_what_it_watches),
	TEST(says_when_events_were_lost),
	TEST(tells_all_that_happened_before_a_sync),
	TEST(ends_with_the_front),
};

int main(void)
{
	umask(022);
	atexit(remove_home);
	return RUN_TESTS(tests);
}
