/* File work, as a front would ask for it: real files in a fresh directory, and the worker in a
 * process of its own. */
#include <sys/xattr.h>
#include <time.h>

#include "files_fixture.h"

/* ---- writing ---- */

struct put {
	const char *path, *content, *owner;
	unsigned flags, mode;
	uint64_t offset;
};

static void put_one(const struct put *p)
{
	const char *owner = p->owner ? p->owner : "";
	struct record_file f = {.flags = p->flags,
		.mode = p->mode,
		.offset = p->offset,
		.path_len = (uint32_t)strlen(p->path),
		.owner_len = (uint32_t)strlen(owner)};
	put_record(RECORD_FILE, &f, sizeof f, p->path, f.path_len, owner, f.owner_len);
	/* In two pieces, of which the second may be empty. */
	size_t len = strlen(p->content), half = len / 2;
	put_record(RECORD_DATA, NULL, 0, p->content, half, "", 0);
	put_record(RECORD_DATA, NULL, 0, p->content + half, len - half, "", 0);
	put_record(RECORD_DONE, NULL, 0, "", 0, "", 0);
}

static int write_file(struct put p)
{
	ask_only(&(struct ask){.op = FILE_WRITE});
	put_one(&p);
	put_end();
	return receive_all();
}

static void writes_a_file_and_tells_what_it_is(void)
{
	fresh();
	CHECK_INT(write_file((struct put){.path = "a.txt", .content = "hello"}), 0);
	CHECK_STR(get_file("a.txt"), "hello");
	CHECK_STR(lines(), "entry a.txt\n");
	CHECK_INT((long long)answer.entry.size, 5);
	CHECK_INT(mode_of("a.txt") & 07777, 0644);
	CHECK_INT(write_file((struct put){.path = "a.txt", .content = "x"}), 0);
	CHECK_STR(get_file("a.txt"), "x");
}

static void makes_parents_only_when_asked(void)
{
	fresh();
	CHECK_INT(write_file((struct put){.path = "p/q/a", .content = "1"}), ENOENT);
	CHECK_STR(answer.fault, "p/q/a");
	CHECK(!exists("p"));
	worker_stop();
	worker_start();
	CHECK_INT(write_file((struct put){.path = "p/q/a", .content = "1", .flags = FILE_PARENTS}),
		0);
	CHECK_STR(get_file("p/q/a"), "1");
}

static void appends_and_writes_at_an_offset(void)
{
	fresh();
	write_file((struct put){.path = "a", .content = "12345"});
	CHECK_INT(write_file((struct put){.path = "a", .content = "67", .flags = FILE_APPEND}), 0);
	CHECK_STR(get_file("a"), "1234567");
	CHECK_INT(write_file((struct put){
			  .path = "a", .content = "xy", .flags = FILE_AT_OFFSET, .offset = 2}),
		0);
	CHECK_STR(get_file("a"), "12xy567");
}

static void keeps_the_mode_unless_another_is_given(void)
{
	fresh();
	write_file((struct put){.path = "a", .content = "1", .flags = FILE_HAS_MODE, .mode = 0751});
	CHECK_INT(mode_of("a") & 07777, 0751);
	write_file((struct put){.path = "a", .content = "2"});
	CHECK_INT(mode_of("a") & 07777, 0751);
	write_file((struct put){.path = "a", .content = "2", .flags = FILE_ATOMIC});
	CHECK_INT(mode_of("a") & 07777, 0751);
	write_file((struct put){
		.path = "a", .content = "2", .flags = FILE_HAS_MODE | FILE_ATOMIC, .mode = 04600});
	CHECK_INT(mode_of("a") & 07777, 04600);
}

static void replaces_at_once_and_through_links(void)
{
	fresh();
	put_file("real", "old");
	CHECK_INT(symlink("real", "link"), 0);
	int before = open("real", O_RDONLY | O_CLOEXEC);
	CHECK_INT(write_file((struct put){.path = "link", .content = "new", .flags = FILE_ATOMIC}),
		0);
	char old[4] = "";
	CHECK_INT(read(before, old, 3), 3);
	close(before);
	CHECK_STR(old, "old"); /* who had it open has what was there */
	CHECK(S_ISLNK(mode_of("link")));
	CHECK_STR(get_file("real"), "new");
	CHECK_INT(ask((struct ask){.op = FILE_LIST, .path = "."}), 0);
	CHECK_STR(lines(), "entry link real\nentry real\n");
}

static void an_atomic_write_that_is_cut_short_changes_nothing(void)
{
	fresh();
	put_file("a", "old");
	ask_only(&(struct ask){.op = FILE_WRITE});
	struct record_file f = {.flags = FILE_ATOMIC, .path_len = 1};
	put_record(RECORD_FILE, &f, sizeof f, "a", 1, "", 0);
	put_record(RECORD_DATA, NULL, 0, "half", 4, "", 0);
	worker_stop();
	CHECK_STR(get_file("a"), "old");
	worker_start();
	CHECK_INT(ask((struct ask){.op = FILE_LIST, .path = "."}), 0);
	CHECK_STR(lines(), "entry a\n");
}

static void writes_many_and_stops_at_the_first_that_fails(void)
{
	fresh();
	ask_only(&(struct ask){.op = FILE_WRITE});
	for (int i = 0; i < 100; i++) {
		char path[16];
		snprintf(path, sizeof path, "f%02d", i);
		put_one(&(struct put){.path = path, .content = path});
	}
	put_end();
	CHECK_INT(receive_all(), 0);
	CHECK_INT((long long)answer.end.count, 100);
	CHECK_STR(get_file("f73"), "f73");
	CHECK_INT(mkdir("d", 0755), 0);
	ask_only(&(struct ask){.op = FILE_WRITE});
	put_one(&(struct put){.path = "one", .content = "1"});
	put_one(&(struct put){.path = "d", .content = "2"});
	put_one(&(struct put){.path = "three", .content = "3"});
	put_end();
	CHECK_INT(receive_all(), EISDIR);
	CHECK_STR(answer.fault, "d");
	CHECK_INT((long long)answer.end.count, 1);
	CHECK(exists("one") && !exists("three"));
}

static void does_not_write_to_what_is_no_file(void)
{
	fresh();
	CHECK_INT(mkfifo("fifo", 0644), 0);
	CHECK_INT(write_file((struct put){.path = "fifo", .content = "1"}), ENXIO);
	worker_stop();
	worker_start();
	CHECK_INT(write_file((struct put){.path = "fifo", .content = "1", .flags = FILE_ATOMIC}),
		ENXIO);
	worker_stop();
	worker_start();
	put_file("there", "1");
	CHECK_INT(
		write_file((struct put){.path = "there", .content = "2", .flags = FILE_EXCLUSIVE}),
		EEXIST);
	CHECK_STR(get_file("there"), "1");
}

static void a_full_disk_is_said(void)
{
	fresh();
	if (access("/dev/full", W_OK) < 0)
		return;
	/* A device is no regular file; the real thing is in the system tests. */
	CHECK_INT(write_file((struct put){.path = "/dev/full", .content = "1"}), ENXIO);
}

/* ---- reading ---- */

static const char *bytes(void)
{
	buf_append_char(&answer.bytes, '\0');
	answer.bytes.len--;
	return answer.bytes.data;
}

static void reads_a_whole_file_or_a_part(void)
{
	fresh();
	put_file("a", "0123456789");
	CHECK_INT(ask((struct ask){.op = FILE_READ, .path = "a"}), 0);
	CHECK_STR(bytes(), "0123456789");
	CHECK_INT((long long)answer.content.length, 10);
	CHECK_INT((long long)answer.entry.size, 10);
	CHECK_INT(ask((struct ask){.op = FILE_READ, .path = "a", .offset = 3, .length = 4}), 0);
	CHECK_STR(bytes(), "3456");
	CHECK_INT(ask((struct ask){
			  .op = FILE_READ, .path = "a", .offset = 3, .flags = FILE_FROM_END}),
		0);
	CHECK_STR(bytes(), "789");
	CHECK_INT((long long)answer.content.offset, 7);
	CHECK_INT(ask((struct ask){.op = FILE_READ, .path = "a", .offset = 30}), 0);
	CHECK_STR(bytes(), "");
	CHECK_INT((long long)answer.content.length, 0);
}

static void reads_large_files_and_their_parts(void)
{
	fresh();
	int fd = open("big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	for (int i = 0; i < 300000; i++) {
		char line[16];
		snprintf(line, sizeof line, "%07d\n", i);
		CHECK_INT(fd_write_all(fd, line, 8), 0);
	}
	close(fd);
	CHECK_INT(ask((struct ask){.op = FILE_READ, .path = "big"}), 0);
	CHECK_INT((long long)answer.bytes.len, 2400000);
	CHECK_INT(memcmp(answer.bytes.data + 8 * 299999, "0299999\n", 8), 0);
	CHECK_INT(ask((struct ask){
			  .op = FILE_READ, .path = "big", .offset = 800000, .length = 1000000}),
		0);
	CHECK_INT((long long)answer.bytes.len, 1000000);
	CHECK_INT(memcmp(answer.bytes.data, "0100000\n", 8), 0);
}

static void reads_files_whose_size_says_nothing(void)
{
	fresh();
	CHECK_INT(ask((struct ask){.op = FILE_READ, .path = "/proc/self/status"}), 0);
	CHECK(strstr(bytes(), "Name:") != NULL);
	CHECK_INT((long long)answer.entry.size, 0);
	CHECK_INT((long long)answer.content.length, (long long)answer.bytes.len);
}

static void says_why_something_cannot_be_read(void)
{
	fresh();
	CHECK_INT(mkdir("d", 0755), 0);
	CHECK_INT(mkfifo("fifo", 0644), 0);
	CHECK_INT(ask((struct ask){.op = FILE_READ, .path = "none"}), ENOENT);
	CHECK_STR(answer.fault, "none");
	CHECK_INT(ask((struct ask){.op = FILE_READ, .path = "d"}), EISDIR);
	CHECK_INT(ask((struct ask){.op = FILE_READ, .path = "fifo"}), ENXIO);
	CHECK_INT(ask((struct ask){.op = FILE_READ, .path = "/dev/zero"}), ENXIO);
	CHECK_INT(ask((struct ask){.op = FILE_READ, .path = "d/x/y"}), ENOENT);
	CHECK_INT(ask((struct ask){.op = FILE_READ, .path = "a", .cwd = "nowhere"}), ENOENT);
	CHECK_STR(answer.fault, "nowhere");
}

static void a_file_that_shrinks_ends_the_worker(void)
{
	fresh();
	int fd = open("a", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	CHECK_INT(ftruncate(fd, 64 << 20), 0);
	ask_only(&(struct ask){.op = FILE_READ, .path = "a"});
	struct record_header h;
	forget_answer();
	CHECK(receive(&h) && receive(&h)); /* ENTRY, CONTENT: the promise is made */
	CHECK_INT(ftruncate(fd, 1 << 20), 0);
	close(fd);
	char chunk[65536];
	uint64_t got = 0;
	ssize_t n;
	while ((n = read(worker, chunk, sizeof chunk)) > 0)
		got += (uint64_t)n;
	CHECK(got < (64 << 20));
}

/* ---- looking ---- */

static void lists_in_the_order_of_names_as_deep_as_asked(void)
{
	fresh();
	CHECK_INT(mkdir("b", 0755) | mkdir("b/c", 0755) | mkdir("b/c/d", 0755), 0);
	put_file("a", "");
	put_file("b/x", "");
	put_file("b/c/y", "");
	put_file("z z\n\xff", "");
	CHECK_INT(ask((struct ask){.op = FILE_LIST, .path = ".", .depth = 1}), 0);
	CHECK_STR(lines(), "entry a\nentry b\nentry z z\n\xff\n");
	CHECK_INT(ask((struct ask){.op = FILE_LIST, .path = ".", .depth = 2}), 0);
	CHECK_STR(lines(), "entry a\nentry b\nentry b/c\nentry b/x\nentry z z\n\xff\n");
	CHECK_INT(ask((struct ask){.op = FILE_LIST, .path = "."}), 0);
	CHECK_STR(lines(),
		"entry a\nentry b\nentry b/c\nentry b/c/d\nentry b/c/y\nentry b/x\nentry z z\n\xff\n");
	CHECK_INT(ask((struct ask){.op = FILE_LIST, .path = "a"}), ENOTDIR);
	CHECK_INT(ask((struct ask){.op = FILE_LIST, .path = ".", .mode = S_IFDIR}), 0);
	CHECK_STR(lines(), "entry b\nentry b/c\nentry b/c/d\n");
}

static void lists_in_pages(void)
{
	fresh();
	CHECK_INT(mkdir("b", 0755) | mkdir("b/c", 0755), 0);
	put_file("a", "");
	put_file("b/c/y", "");
	put_file("b/x", "");
	put_file("c", "");
	const char *pages[] = {"", "a", "b", "b/c", "b/c/y", "b/x", "c"};
	const char *wanted[] = {"entry a\n", "entry b\n", "entry b/c\n", "entry b/c/y\n",
		"entry b/x\n", "entry c\n", ""};
	for (int i = 0; i < 7; i++) {
		CHECK_INT(ask((struct ask){
				  .op = FILE_LIST, .path = ".", .limit = 1, .extra = pages[i]}),
			0);
		CHECK_STR(lines(), wanted[i]);
		CHECK_INT(answer.end.truncated, i < 5);
	}
	/* What is gone meanwhile is where the next page begins. */
	CHECK_INT(ask((struct ask){.op = FILE_LIST, .path = ".", .extra = "b/d/e/f"}), 0);
	CHECK_STR(lines(), "entry b/x\nentry c\n");
	CHECK_INT(ask((struct ask){.op = FILE_LIST, .path = ".", .depth = 1, .extra = "b"}), 0);
	CHECK_STR(lines(), "entry c\n");
}

static void lists_more_names_than_fit_into_one_batch(void)
{
	fresh();
	CHECK_INT(mkdir("many", 0755), 0);
	char name[256];
	for (int i = 0; i < 7000; i++) {
		snprintf(name, sizeof name, "many/%05d%0200d", (i * 7919) % 7000, 0);
		int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		CHECK(fd >= 0);
		close(fd);
	}
	CHECK_INT(ask((struct ask){.op = FILE_LIST, .path = "many", .limit = 100000}), 0);
	CHECK_INT((long long)answer.end.count, 7000);
	const char *at = lines();
	for (int i = 0; i < 7000; i++) {
		snprintf(name, sizeof name, "entry many/%05d", i);
		CHECK_INT(strncmp(at, name, strlen(name)), 0);
		at = strchr(at, '\n') + 1;
	}
}

static void finds_by_pattern(void)
{
	fresh();
	CHECK_INT(mkdir("src", 0755) | mkdir("src/x", 0755), 0);
	put_file("a.c", "");
	put_file("src/b.c", "");
	put_file("src/b.h", "");
	put_file("src/x/c.C", "");
	CHECK_INT(ask((struct ask){.op = FILE_FIND, .path = ".", .pattern = "*.c"}), 0);
	CHECK_STR(lines(), "entry a.c\nentry src/b.c\n");
	CHECK_INT(ask((struct ask){.op = FILE_FIND, .path = ".", .pattern = "src/*.{c,h}"}), 0);
	CHECK_STR(lines(), "entry src/b.c\nentry src/b.h\n");
	CHECK_INT(ask((struct ask){.op = FILE_FIND,
			  .path = ".",
			  .pattern = "**/*.c",
			  .flags = FILE_IGNORE_CASE}),
		0);
	CHECK_STR(lines(), "entry a.c\nentry src/b.c\nentry src/x/c.C\n");
	CHECK_INT(ask((struct ask){.op = FILE_FIND, .path = ".", .pattern = "**", .mode = S_IFDIR}),
		0);
	CHECK_STR(lines(), "entry src\nentry src/x\n");
	CHECK_INT(ask((struct ask){.op = FILE_FIND, .path = ".", .pattern = ""}), EINVAL);
	CHECK_INT(ask((struct ask){.op = FILE_FIND, .path = ".", .pattern = "*", .limit = 2}), 0);
	CHECK_INT(answer.end.truncated, 1);
}

static void finds_lines(void)
{
	fresh();
	CHECK_INT(mkdir("d", 0755), 0);
	put_file("a.txt", "one\ntwo words\nthree\r\n");
	put_file("d/b.txt", "no\nTwo\n\nlast two");
	int fd = open("binary", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK_INT(fd_write_all(fd, "two\0two", 7), 0);
	close(fd);
	CHECK_INT(ask((struct ask){.op = FILE_GREP, .path = ".", .pattern = "two"}), 0);
	CHECK_STR(lines(), "2:1 a.txt two words\n4:6 d/b.txt last two\n");
	CHECK_INT(
		ask((struct ask){
			.op = FILE_GREP, .path = ".", .pattern = "two", .flags = FILE_IGNORE_CASE}),
		0);
	CHECK_STR(lines(), "2:1 a.txt two words\n2:1 d/b.txt Two\n4:6 d/b.txt last two\n");
	CHECK_INT(ask((struct ask){.op = FILE_GREP,
			  .path = ".",
			  .pattern = "^t.*(e|s)$",
			  .flags = FILE_REGEX}),
		0);
	CHECK_STR(lines(), "2:1 a.txt two words\n");
	CHECK_INT(
		ask((struct ask){.op = FILE_GREP, .path = ".", .pattern = "t.o", .other = "d/**"}),
		0);
	CHECK_STR(lines(), "");
	CHECK_INT(
		ask((struct ask){.op = FILE_GREP, .path = ".", .pattern = "two", .other = "d/**"}),
		0);
	CHECK_STR(lines(), "4:6 d/b.txt last two\n");
	CHECK_INT(ask((struct ask){.op = FILE_GREP, .path = "a.txt", .pattern = "three"}), 0);
	CHECK_STR(lines(), "3:1 a.txt three\n");
	CHECK_INT(ask((struct ask){
			  .op = FILE_GREP, .path = ".", .pattern = "(", .flags = FILE_REGEX}),
		EINVAL);
	CHECK_STR(answer.fault, "(");
	CHECK_INT(ask((struct ask){.op = FILE_GREP, .path = ".", .pattern = "two", .limit = 1}), 0);
	CHECK_INT(answer.end.truncated, 1);
}

static void counts_lines_of_files_larger_than_a_buffer(void)
{
	fresh();
	int fd = open("big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	struct buf text = {0};
	for (int i = 1; i <= 200000; i++)
		buf_printf(&text, "%s %d\n", i % 50000 == 0 ? "needle" : "straw", i);
	for (int i = 0; i < 3000000; i++)
		buf_append_char(&text, 'x'); /* a line that does not fit */
	buf_append_str(&text, "\nneedle at the end");
	CHECK_INT(fd_write_all(fd, text.data, text.len), 0);
	buf_finish(&text);
	close(fd);
	const char *wanted =
		"50000:1 big needle 50000\n100000:1 big needle 100000\n150000:1 big needle "
		"150000\n200000:1 big needle 200000\n200002:1 big needle at the end\n";
	CHECK_INT(ask((struct ask){.op = FILE_GREP, .path = ".", .pattern = "needle"}), 0);
	CHECK_STR(lines(), wanted);
	CHECK_INT(ask((struct ask){
			  .op = FILE_GREP, .path = ".", .pattern = "^needle", .flags = FILE_REGEX}),
		0);
	CHECK_STR(lines(), wanted);
}

/* ---- changing ---- */

static void replaces_text(void)
{
	fresh();
	CHECK_INT(mkdir("d", 0755), 0);
	put_file("a", "foo bar foo\nfoo");
	put_file("d/b", "none");
	put_file("d/c", "a.b a-b\n\nab");
	CHECK_INT(chmod("a", 0640), 0);
	struct ask a = {.op = FILE_REPLACE,
		.path = ".",
		.pattern = "foo",
		.extra = "quux",
		.flags = FILE_DRY_RUN};
	CHECK_INT(ask(a), 0);
	CHECK_STR(lines(), "3 a\n");
	CHECK_STR(get_file("a"), "foo bar foo\nfoo");
	a.flags = 0;
	CHECK_INT(ask(a), 0);
	CHECK_STR(lines(), "3 a\n");
	CHECK_STR(get_file("a"), "quux bar quux\nquux");
	CHECK_INT(mode_of("a") & 07777, 0640);
	CHECK_INT(ask((struct ask){.op = FILE_REPLACE,
			  .path = "d/c",
			  .pattern = "a(.)b",
			  .extra = "\\1[\\0]\\\\",
			  .flags = FILE_REGEX}),
		0);
	CHECK_STR(get_file("d/c"), ".[a.b]\\ -[a-b]\\\n\nab");
	CHECK_INT(
		ask((struct ask){.op = FILE_REPLACE, .path = "a", .pattern = "x\nq", .extra = "-"}),
		0);
	CHECK_STR(get_file("a"), "quux bar quu-uux");
	CHECK_INT(ask((struct ask){.op = FILE_REPLACE,
			  .path = "a",
			  .pattern = "^|$",
			  .extra = "|",
			  .flags = FILE_REGEX}),
		0);
	CHECK_STR(get_file("a"), "|quux bar quu-uux|");
}

static void replaces_across_the_pieces_of_a_large_file(void)
{
	fresh();
	struct buf text = {0};
	int fd = open("big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	for (int i = 0; i < 700000; i++)
		buf_append_str(&text, "needle");
	CHECK_INT(fd_write_all(fd, text.data, text.len), 0);
	buf_finish(&text);
	close(fd);
	CHECK_INT(ask((struct ask){
			  .op = FILE_REPLACE, .path = "big", .pattern = "needle", .extra = "x"}),
		0);
	CHECK_STR(lines(), "700000 big\n");
	CHECK_INT((long long)strspn(get_file("big"), "x"), 700000);
}

static void makes_directories(void)
{
	fresh();
	CHECK_INT(ask((struct ask){.op = FILE_MKDIR, .path = "a/b"}), ENOENT);
	CHECK_INT(ask((struct ask){.op = FILE_MKDIR,
			  .path = "a/b",
			  .flags = FILE_PARENTS | FILE_HAS_MODE,
			  .mode = 0700}),
		0);
	CHECK_INT(mode_of("a/b") & 07777, 0700);
	CHECK_INT(mode_of("a") & 07777, 0755);
	CHECK_INT(ask((struct ask){.op = FILE_MKDIR, .path = "a/b"}), EEXIST);
	CHECK_INT(ask((struct ask){.op = FILE_MKDIR, .path = "a/b", .flags = FILE_EXIST_OK}), 0);
	put_file("f", "");
	CHECK_INT(ask((struct ask){.op = FILE_MKDIR, .path = "f", .flags = FILE_EXIST_OK}), EEXIST);
	CHECK_INT(
		ask((struct ask){.op = FILE_MKDIR, .path = "f/x", .flags = FILE_PARENTS}), ENOTDIR);
}

static void moves(void)
{
	fresh();
	put_file("a", "1");
	put_file("b", "2");
	CHECK_INT(ask((struct ask){.op = FILE_MOVE, .path = "a", .other = "b"}), EEXIST);
	CHECK_STR(answer.fault, "b");
	CHECK_INT(ask((struct ask){
			  .op = FILE_MOVE, .path = "a", .other = "b", .flags = FILE_OVERWRITE}),
		0);
	CHECK_STR(lines(), "entry b\n");
	CHECK_STR(get_file("b"), "1");
	CHECK_INT(ask((struct ask){
			  .op = FILE_MOVE, .path = "b", .other = "x/y/c", .flags = FILE_PARENTS}),
		0);
	CHECK_STR(get_file("x/y/c"), "1");
	CHECK_INT(ask((struct ask){.op = FILE_MOVE, .path = "x", .other = "x/y/z"}), EINVAL);
	CHECK_INT(ask((struct ask){.op = FILE_MOVE, .path = "none", .other = "z"}), ENOENT);
	CHECK_STR(answer.fault, "none");
}

static void copies_a_tree_with_modes_links_and_times(void)
{
	fresh();
	CHECK_INT(mkdir("t", 0750) | mkdir("t/sub", 0700), 0);
	put_file("t/file", "content");
	CHECK_INT(chmod("t/file", 0711), 0);
	CHECK_INT(link("t/file", "t/sub/hard"), 0);
	CHECK_INT(symlink("../file", "t/sub/soft"), 0);
	CHECK_INT(mkfifo("t/fifo", 0600), 0);
	(void)setxattr("t/file", "user.note", "kept", 4, 0);
	struct timespec times[2] = {{1000, 5}, {2000, 123456789}};
	CHECK_INT(utimensat(AT_FDCWD, "t/file", times, 0), 0);
	CHECK_INT(utimensat(AT_FDCWD, "t/sub", times, 0), 0);
	CHECK_INT(utimensat(AT_FDCWD, "t", times, 0), 0);
	CHECK_INT(ask((struct ask){.op = FILE_COPY, .path = "t", .other = "u"}), EISDIR);
	CHECK_INT(ask((struct ask){
			  .op = FILE_COPY, .path = "t", .other = "u", .flags = FILE_RECURSIVE}),
		0);
	struct stat a, b, d;
	CHECK_INT(stat("u/file", &a) | stat("u/sub/hard", &b) | stat("u", &d), 0);
	CHECK(a.st_ino == b.st_ino && a.st_nlink == 2);
	CHECK_INT(a.st_mode & 07777, 0711);
	CHECK_INT(a.st_mtim.tv_nsec, 123456789);
	CHECK_INT(d.st_mode & 07777, 0750);
	CHECK_INT(d.st_mtim.tv_sec, 2000);
	CHECK(S_ISLNK(mode_of("u/sub/soft")) && S_ISFIFO(mode_of("u/fifo")));
	CHECK_INT(mode_of("u/sub") & 07777, 0700);
	char value[8] = "";
	if (getxattr("t/file", "user.note", value, 7) == 4)
		CHECK_INT(getxattr("u/file", "user.note", value, 7), 4);
	CHECK_INT(ask((struct ask){.op = FILE_COPY,
			  .path = "t",
			  .other = "t/sub/deep",
			  .flags = FILE_RECURSIVE}),
		EINVAL);
	CHECK_INT(ask((struct ask){.op = FILE_COPY, .path = "t/file", .other = "u/file"}), EEXIST);
	CHECK_INT(ask((struct ask){.op = FILE_COPY,
			  .path = "t",
			  .other = "u",
			  .flags = FILE_RECURSIVE | FILE_OVERWRITE}),
		ENOTEMPTY);
	CHECK_INT(ask((struct ask){.op = FILE_LIST, .path = ".", .depth = 1}), 0);
	CHECK_STR(lines(), "entry t\nentry u\n");
}

static void moves_where_a_rename_cannot(void)
{
	fresh();
	struct stat here, there;
	CHECK_INT(mkdir("d", 0755), 0);
	put_file("d/f", "over");
	if (stat("/dev/shm", &there) < 0 || stat(home, &here) < 0 || here.st_dev == there.st_dev)
		return;
	char to[64];
	snprintf(to, sizeof to, "/dev/shm/bunker-files-%d", getpid());
	CHECK_INT(ask((struct ask){.op = FILE_MOVE, .path = "d", .other = to}), 0);
	CHECK(!exists("d"));
	CHECK_INT(ask((struct ask){.op = FILE_MOVE, .path = to, .other = "back"}), 0);
	CHECK(!exists(to));
	CHECK_STR(get_file("back/f"), "over");
}

static void removes(void)
{
	fresh();
	put_file("f", "");
	CHECK_INT(mkdir("d", 0755) | mkdir("d/e", 0755), 0);
	CHECK_INT(symlink("d", "link"), 0);
	CHECK_INT(ask((struct ask){.op = FILE_REMOVE, .path = "f"}), 0);
	CHECK_INT(ask((struct ask){.op = FILE_REMOVE, .path = "f"}), ENOENT);
	CHECK_INT(ask((struct ask){.op = FILE_REMOVE, .path = "f", .flags = FILE_EXIST_OK}), 0);
	CHECK_INT(ask((struct ask){.op = FILE_REMOVE, .path = "d"}), ENOTEMPTY);
	CHECK_INT(ask((struct ask){.op = FILE_REMOVE, .path = "link", .flags = FILE_RECURSIVE}), 0);
	CHECK(exists("d/e") && !exists("link"));
	CHECK_INT(ask((struct ask){.op = FILE_REMOVE, .path = "d", .flags = FILE_RECURSIVE}), 0);
	CHECK(!exists("d"));
}

static void removes_and_walks_a_tree_of_any_depth(void)
{
	fresh();
	CHECK_INT(mkdir("deep", 0755), 0);
	int fd = open("deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 20000; i++) {
		CHECK_INT(mkdirat(fd, "d", 0755), 0);
		int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CHECK(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
	CHECK_INT(ask((struct ask){.op = FILE_LIST, .path = "deep", .limit = 100000}), 0);
	CHECK(answer.end.count > 2000);
	CHECK_INT(ask((struct ask){.op = FILE_REMOVE, .path = "deep", .flags = FILE_RECURSIVE}), 0);
	CHECK(!exists("deep"));
}

static void changes_modes_owners_and_links(void)
{
	fresh();
	CHECK_INT(mkdir("d", 0755), 0);
	put_file("d/f", "");
	put_file("outside", "");
	CHECK_INT(symlink("../outside", "d/link"), 0);
	CHECK_INT(ask((struct ask){
			  .op = FILE_CHMOD, .path = "d/f", .mode = 0600, .flags = FILE_FOLLOW}),
		0);
	CHECK_INT(mode_of("d/f") & 07777, 0600);
	CHECK_INT(ask((struct ask){.op = FILE_CHMOD,
			  .path = "d",
			  .mode = 0700,
			  .flags = FILE_RECURSIVE | FILE_FOLLOW}),
		0);
	CHECK_INT(mode_of("d/f") & 07777, 0700);
	CHECK_INT(mode_of("outside") & 07777, 0644);
	CHECK_INT(ask((struct ask){.op = FILE_SYMLINK, .path = "l", .other = "d/f"}), 0);
	CHECK_STR(lines(), "entry l d/f\n");
	CHECK_INT(ask((struct ask){.op = FILE_SYMLINK, .path = "l", .other = "x"}), EEXIST);
	CHECK_INT(ask((struct ask){
			  .op = FILE_SYMLINK, .path = "l", .other = "x", .flags = FILE_OVERWRITE}),
		0);
	CHECK_STR(lines(), "entry l x\n");
	CHECK_INT(ask((struct ask){.op = FILE_CHOWN, .path = "d", .owner = "nobody-here"}), EINVAL);
	if (geteuid() != 0)
		return;
	CHECK_INT(
		ask((struct ask){
			.op = FILE_CHOWN, .path = "d", .owner = "12:34", .flags = FILE_RECURSIVE}),
		0);
	struct stat st;
	CHECK_INT(stat("d/f", &st), 0);
	CHECK(st.st_uid == 12 && st.st_gid == 34);
	CHECK_INT(
		ask((struct ask){.op = FILE_STAT, .path = "/etc/passwd", .flags = FILE_WITH_NAMES}),
		0);
	CHECK(answer.entry.owner_len == 4 && answer.entry.group_len == 4);
}

static void keeps_attributes(void)
{
	fresh();
	put_file("a", "");
	if (setxattr("a", "user.probe", "", 0, 0) < 0)
		return; /* not on this filesystem */
	struct record_attribute set = {9, 5}, gone = {10, RECORD_REMOVED}, foreign = {12, 1};
	ask_only(&(struct ask){.op = FILE_ATTRIBUTES, .path = "a"});
	put_record(RECORD_ATTRIBUTE, &set, sizeof set, "user.note", 9, "hello", 5);
	put_record(RECORD_ATTRIBUTE, &gone, sizeof gone, "user.probe", 10, "", 0);
	put_end();
	CHECK_INT(receive_all(), 0);
	CHECK_STR(lines(), "attribute user.note hello\n");
	ask_only(&(struct ask){.op = FILE_ATTRIBUTES, .path = "a"});
	put_record(RECORD_ATTRIBUTE, &foreign, sizeof foreign, "trusted.evil", 12, "x", 1);
	put_end();
	CHECK_INT(receive_all(), EINVAL);
}

/* ---- the worker ---- */

static void answers_one_request_after_the_other_and_ends_with_the_front(void)
{
	fresh();
	for (int i = 0; i < 50; i++)
		CHECK_INT(ask((struct ask){.op = FILE_STAT, .path = "."}), 0);
	worker_stop();
}

static void ends_on_what_is_no_request(void)
{
	fresh();
	put_record(RECORD_DONE, NULL, 0, "", 0, "", 0);
	CHECK_INT(receive_all(), -1);
	worker_stop();
	worker_start();
	CHECK_INT(fd_write_all(worker, "GET / HTTP/1.1\r\n\r\n", 18), 0);
	CHECK_INT(receive_all(), -1);
	worker_stop();
}

static void gives_up_a_long_search_when_the_front_has_gone(void)
{
	fresh();
	/* Backtracking over this takes longer than anybody waits. */
	put_file("a",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	ask_only(&(struct ask){
		.op = FILE_GREP, .path = ".", .pattern = "(a*)*(a*)*\\1b\\2", .flags = FILE_REGEX});
	usleep(50 * 1000);
	int64_t before = time(NULL);
	int status;
	close(worker);
	worker = -1;
	waitpid(worker_pid, &status, 0);
	CHECK(time(NULL) - before < 5);
}

static const struct check_test tests[] = {
	TEST(writes_a_file_and_tells_what_it_is),
	TEST(makes_parents_only_when_asked),
	TEST(appends_and_writes_at_an_offset),
	TEST(keeps_the_mode_unless_another_is_given),
	TEST(replaces_at_once_and_through_links),
	TEST(an_atomic_write_that_is_cut_short_changes_nothing),
	TEST(writes_many_and_stops_at_the_first_that_fails),
	TEST(does_not_write_to_what_is_no_file),
	TEST(a_full_disk_is_said),
	TEST(reads_a_whole_file_or_a_part),
	TEST(reads_large_files_and_their_parts),
	TEST(reads_files_whose_size_says_nothing),
	TEST(says_why_something_cannot_be_read),
	TEST(a_file_that_shrinks_ends_the_worker),
	TEST(lists_in_the_order_of_names_as_deep_as_asked),
	TEST(lists_in_pages),
	TEST(lists_more_names_than_fit_into_one_batch),
	TEST(finds_by_pattern),
	TEST(finds_lines),
	TEST(counts_lines_of_files_larger_than_a_buffer),
	TEST(replaces_text),
	TEST(replaces_across_the_pieces_of_a_large_file),
	TEST(makes_directories),
	TEST(moves),
	TEST(copies_a_tree_with_modes_links_and_times),
	TEST(moves_where_a_rename_cannot),
	TEST(removes),
	TEST(removes_and_walks_a_tree_of_any_depth),
	TEST(changes_modes_owners_and_links),
	TEST(keeps_attributes),
	TEST(answers_one_request_after_the_other_and_ends_with_the_front),
	TEST(ends_on_what_is_no_request),
	TEST(gives_up_a_long_search_when_the_front_has_gone),
};

int main(void)
{
	umask(022);
	atexit(remove_home);
	return RUN_TESTS(tests);
}
