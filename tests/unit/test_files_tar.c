/* Archives down and up, what tar(1) makes and reads, and hostile ones. */
#include "files_fixture.h"

static void pack_to(const char *path, const char *archive)
{
	CHECK_INT(ask((struct ask){.op = FILE_PACK, .path = path}), 0);
	int fd = open(archive, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK_INT(fd_write_all(fd, answer.bytes.data, answer.bytes.len), 0);
	close(fd);
}

/* In pieces of this size, so that every boundary is met. */
static int unpack_bytes(const char *bytes, size_t len, size_t piece, const char *to, unsigned flags)
{
	ask_only(&(struct ask){.op = FILE_UNPACK, .path = to, .flags = flags});
	for (size_t at = 0; at < len; at += piece)
		put_record(RECORD_DATA, NULL, 0, bytes + at, len - at < piece ? len - at : piece,
			"", 0);
	put_end();
	int r = receive_all();
	if (r != 0) {
		worker_stop();
		worker_start();
	}
	return r;
}

static int unpack_file(const char *archive, size_t piece, const char *to, unsigned flags)
{
	struct buf bytes = {0};
	int fd = open(archive, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	fd_read_all(fd, &bytes, 64 << 20);
	close(fd);
	int r = unpack_bytes(bytes.data, bytes.len, piece, to, flags);
	buf_finish(&bytes);
	return r;
}

static void shell(const char *command)
{
	CHECK_INT(system(command), 0);
}

static void make_tree(void)
{
	shell("mkdir -p t/sub/empty t/private && echo content > t/file && chmod 0751 t/file"
	      " && ln t/file t/sub/hard && ln -s ../file t/sub/soft && mkfifo t/fifo"
	      " && n=$(printf 'x%.0s' $(seq 200)) && mkdir t/$n && echo long > t/$n/$n"
	      " && ln -s $n/$n/$n t/longlink && printf 'ab' > \"t/odd name\n\xff\" && chmod 0500 t/private"
	      " && head -c 100000 /dev/zero > t/zeros"
	      " && find t -exec touch -h -d '2001-02-03 04:05:06.789' {} +");
}

static const char compare[] = "a=$(cd t && find . -printf '%p %M %l %T@ %n\\n' | sort);"
			      "b=$(cd u && find . -printf '%p %M %l %T@ %n\\n' | sort);"
			      "test \"$a\" = \"$b\" && diff -r --no-dereference --exclude fifo t u";

static void what_it_packs_tar_reads(void)
{
	fresh();
	make_tree();
	pack_to("t", "a.tar");
	shell("mkdir u && tar -xpf a.tar -C u");
	shell(compare);
}

static void what_tar_packs_it_reads(void)
{
	static const char *const formats[] = {"ustar", "gnu", "posix"};
	for (int i = 0; i < 3; i++) {
		char command[256];
		fresh();
		make_tree();
		if (i == 0)
			shell("rm -rf t/x* t/longlink");
		/* Only the newest format has parts of seconds. */
		if (i < 2)
			shell("find t -exec touch -h -d '2001-02-03 04:05:06' {} +");
		snprintf(command, sizeof command, "tar --format=%s -cf a.tar -C t .", formats[i]);
		shell(command);
		CHECK_INT(unpack_file("a.tar", i == 2 ? 77 : 5000, "u", FILE_PARENTS), 0);
		shell(compare);
	}
}

static void packs_and_unpacks_itself(void)
{
	fresh();
	make_tree();
	pack_to("t", "a.tar");
	CHECK_INT(unpack_file("a.tar", 65536, "deep/u", FILE_PARENTS), 0);
	CHECK(answer.end.count > 8);
	shell("mv deep/u u");
	shell(compare);
	pack_to("t/file", "b.tar");
	CHECK_INT(unpack_file("b.tar", 65536, "v", FILE_PARENTS), 0);
	CHECK_STR(get_file("v/file"), "content\n");
}

static void replaces_what_is_there(void)
{
	fresh();
	shell("mkdir -p t u && echo new > t/f && echo old > u/f && ln -s /etc/hostname u/l && echo file > t/l");
	pack_to("t", "a.tar");
	CHECK_INT(unpack_file("a.tar", 65536, "u", 0), 0);
	CHECK_STR(get_file("u/f"), "new\n");
	CHECK(S_ISREG(mode_of("u/l")));
	CHECK_INT(unpack_file("a.tar", 65536, "none", 0), ENOENT);
	shell("rm -r u/f && mkdir u/f");
	CHECK_INT(unpack_file("a.tar", 65536, "u", 0), EISDIR);
	CHECK_STR(answer.fault, "f");
}

/* ---- hostile archives ---- */

struct evil {
	const char *path, *target;
	char type;
};

static void append_evil(struct buf *out, const struct evil *e)
{
	struct tar_member m = {.type = e->type, .mode = 04755, .size = e->type == '0' ? 5 : 0};
	buf_append(&m.path, e->path, strlen(e->path) + 1);
	if (e->target)
		buf_append(&m.target, e->target, strlen(e->target) + 1);
	tar_append_header(out, &m);
	char block[TAR_BLOCK] = "evil\n";
	if (m.size)
		buf_append(out, block, sizeof block);
	tar_member_finish(&m);
}

static int unpack_evil(const struct evil *members, size_t count)
{
	autobuf archive = {0};
	for (size_t i = 0; i < count; i++)
		append_evil(&archive, &members[i]);
	return unpack_bytes(archive.data, archive.len, 65536, "u", 0);
}

static void never_leaves_the_directory(void)
{
	char absolute[128];
	fresh();
	shell("mkdir u out && echo safe > out/f && ln -s ../out u/there-before");
	snprintf(absolute, sizeof absolute, "%s/out/f", home);
	const struct {
		struct evil members[3];
		size_t count;
		int error;
	} cases[] = {
		{{{"../out/f", NULL, '0'}}, 1, EXDEV},
		{{{"a/../../out/f", NULL, '0'}}, 1, EXDEV},
		{{{absolute, NULL, '0'}}, 1, EXDEV},
		{{{"l", "../out", '2'}, {"l/f", NULL, '0'}}, 2, EXDEV},
		{{{"l", home, '2'}, {"l/out/f", NULL, '0'}}, 2, EXDEV},
		{{{"there-before/f", NULL, '0'}}, 1, EXDEV},
		{{{"l1", "l2", '2'}, {"l2", "..", '2'}, {"l1/out/f", NULL, '0'}}, 3, EXDEV},
		{{{"loop", "loop", '2'}, {"loop/f", NULL, '0'}}, 2, ELOOP},
		{{{"h", "../out/f", '1'}}, 1, EXDEV},
		{{{"h", absolute, '1'}}, 1, EXDEV},
		{{{"h", "there-before/f", '1'}}, 1, EXDEV},
		{{{"there-before/new/deep/f", NULL, '0'}}, 1, EXDEV},
		{{{"there-before/d", NULL, '5'}}, 1, EXDEV},
		{{{"there-before/s", "x", '2'}}, 1, EXDEV},
		{{{"there-before/p", NULL, '6'}}, 1, EXDEV},
		{{{"m", "/proc/self/root", '2'}, {"m/tmp/f", NULL, '0'}}, 2, EXDEV},
		{{{"null", NULL, '3'}}, 1, EPERM},
		{{{"sda", NULL, '4'}}, 1, EPERM},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		CHECK_INT(unpack_evil(cases[i].members, cases[i].count), cases[i].error);
		CHECK_STR(get_file("out/f"), "safe\n");
		shell("test \"$(ls out)\" = f && test \"$(stat -c %h out/f)\" = 1");
	}
	/* The same with a link that stays inside: the control. */
	const struct evil fine[] = {{"d", NULL, '5'}, {"in", "d", '2'}, {"in/f", NULL, '0'}};
	CHECK_INT(unpack_evil(fine, 3), 0);
	CHECK_STR(get_file("u/d/f"), "evil\n");
}

static void writes_beside_a_link_and_not_through_it(void)
{
	fresh();
	shell("mkdir u out && echo safe > out/f");
	const struct evil members[] = {{"f", "../out/f", '2'}, {"f", NULL, '0'}};
	CHECK_INT(unpack_evil(members, 2), 0);
	CHECK_STR(get_file("out/f"), "safe\n");
	CHECK_STR(get_file("u/f"), "evil\n");
}

static void takes_set_id_bits_and_owners_only_when_asked(void)
{
	struct stat st;
	fresh();
	shell("mkdir u");
	const struct evil members[] = {{"f", NULL, '0'}};
	CHECK_INT(unpack_evil(members, 1), 0);
	CHECK_INT(mode_of("u/f") & 07777, 0755);
	CHECK_INT(stat("u/f", &st), 0);
	CHECK_INT(st.st_uid, geteuid());
	if (geteuid() != 0)
		return;
	autobuf archive = {0};
	append_evil(&archive, members);
	CHECK_INT(unpack_bytes(archive.data, archive.len, 65536, "u", FILE_OWNERS), 0);
	CHECK_INT(mode_of("u/f") & 07777, 04755);
}

static void refuses_what_is_no_archive(void)
{
	fresh();
	shell("mkdir u");
	char garbage[2000];
	memset(garbage, 'x', sizeof garbage);
	CHECK_INT(unpack_bytes(garbage, sizeof garbage, 100, "u", 0), EBADMSG);
	CHECK_INT(unpack_bytes(garbage, 100, 100, "u", 0), EBADMSG);
	CHECK_INT(unpack_bytes("", 0, 1, "u", 0), 0);
	autobuf archive = {0};
	append_evil(&archive, &(struct evil){"f", NULL, '0'});
	CHECK_INT(unpack_bytes(archive.data, TAR_BLOCK + 100, 100, "u", 0), EBADMSG);
	archive.data[0] = 'g'; /* the checksum is another now */
	CHECK_INT(unpack_bytes(archive.data, archive.len, 100, "u", 0), EBADMSG);
}

static void cleans_paths(void)
{
	static const struct {
		const char *path, *clean;
	} cases[] = {{"a/b", "a/b"}, {"./a//b/", "a/b"}, {".", ""}, {"./", ""}, {"a/./b", "a/b"},
		{"...", "..."}, {"..a/b..", "..a/b.."}, {"/a", NULL}, {"..", NULL}, {"a/..", NULL},
		{"a/../b", NULL}, {"", ""}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char path[32];
		snprintf(path, sizeof path, "%s", cases[i].path);
		CHECK_INT(tar_clean_path(path), cases[i].clean != NULL);
		if (cases[i].clean)
			CHECK_STR(path, cases[i].clean);
	}
}

static const struct check_test tests[] = {
	TEST(what_it_packs_tar_reads),
	TEST(what_tar_packs_it_reads),
	TEST(packs_and_unpacks_itself),
	TEST(replaces_what_is_there),
	TEST(never_leaves_the_directory),
	TEST(writes_beside_a_link_and_not_through_it),
	TEST(takes_set_id_bits_and_owners_only_when_asked),
	TEST(refuses_what_is_no_archive),
	TEST(cleans_paths),
};

int main(void)
{
	umask(022);
	atexit(remove_home);
	return RUN_TESTS(tests);
}
