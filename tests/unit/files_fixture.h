/*
 * A file worker in a process of its own, and the test as its front. Each test has a fresh
 * directory, which is the worker's home and the place of relative paths.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "check.h"
#include "init/files/files.h"

static char home[64];
static int worker = -1;
static pid_t worker_pid;

static inline void worker_start(void)
{
	int p[2];
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
	worker_pid = fork();
	if (worker_pid == 0) {
		close(p[0]);
		files_serve(p[1], home);
		home[0] = '\0'; /* it is the test's to remove */
		exit(0);        /* not _exit: the leak checker should look */
	}
	close(p[1]);
	worker = p[0];
}

static inline void worker_stop(void)
{
	int status;
	if (worker < 0)
		return;
	close(worker);
	worker = -1;
	waitpid(worker_pid, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static inline void remove_home(void)
{
	struct outcome o = {0};
	if (home[0])
		remove_tree(home, &o);
	buf_finish(&o.path);
	home[0] = '\0';
}

static inline void fresh(void)
{
	if (worker >= 0)
		close(worker);
	worker = -1;
	remove_home();
	snprintf(home, sizeof home, "/tmp/bunker-files-XXXXXX");
	CHECK(mkdtemp(home) != NULL);
	CHECK_INT(chdir(home), 0);
	signal(SIGPIPE, SIG_IGN);
	worker_start();
}

/* ---- asking ---- */

struct ask {
	enum file_op op;
	unsigned flags, mode, depth;
	uint64_t offset, length, limit;
	const char *path, *other, *owner, *pattern, *extra, *cwd;
};

static inline void send_bytes(const struct buf *bytes)
{
	CHECK(!bytes->failed);
	fd_write_all(worker, bytes->data, bytes->len); /* it may have answered and gone */
}

static inline void ask_only(const struct ask *a)
{
	struct buf out = {0};
	struct file_request r = {
		.fixed = {.op = a->op,
			.flags = a->flags,
			.mode = a->mode,
			.depth = a->depth,
			.offset = a->offset,
			.length = a->length ? a->length : RECORD_UNKNOWN,
			.limit = a->limit ? a->limit : 1000},
		.text = {a->cwd, a->path, a->other, a->owner, a->pattern, a->extra},
	};
	CHECK_INT(record_append_request(&out, &r), 0);
	send_bytes(&out);
	buf_finish(&out);
}

static inline void put_record(enum record_type type, const void *fixed, size_t size,
	const char *text, size_t text_len, const char *second, size_t second_len)
{
	struct buf out = {0};
	struct record_text texts[] = {{text, text_len}, {second, second_len}};
	record_append(&out, type, fixed, size, texts, 2);
	send_bytes(&out);
	buf_finish(&out);
}

static inline void put_end(void)
{
	struct record_end end = {0};
	put_record(RECORD_END, &end, sizeof end, "", 0, "", 0);
}

/* ---- what comes back ---- */

/* The answer as text, one record a line; DATA is collected in `bytes`. */
struct answer {
	struct buf lines, bytes;
	struct record_end end;
	char fault[4096];
	struct record_entry entry; /* the last */
	struct record_content content;
	bool lost;
};

static struct answer answer;

static inline bool read_exactly(void *bytes, size_t len)
{
	size_t got = 0;
	while (got < len) {
		ssize_t n = read(worker, (char *)bytes + got, len - got);
		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	return true;
}

static inline void add_line(const char *kind, const struct record_text *t, size_t count)
{
	buf_append_str(&answer.lines, kind);
	for (size_t i = 0; i < count; i++) {
		if (t[i].len == 0)
			continue;
		buf_append_char(&answer.lines, ' ');
		/* Paths below home are shown relative to it. */
		size_t skip = strlen(home) + 1;
		bool below = t[i].len > skip && memcmp(t[i].data, home, skip - 1) == 0;
		buf_append(&answer.lines, t[i].data + (below ? skip : 0),
			t[i].len - (below ? skip : 0));
	}
	buf_append_char(&answer.lines, '\n');
}

static inline void take_record(const struct record_header *h, const char *payload)
{
	static const char *const kinds[] = {
		"create", "write", "remove", "rename", "chmod", "overflow"};
	struct record_text t[4] = {{0}};
	struct record_match m;
	struct record_change c;
	struct record_attribute a;
	struct record_event e;
	char line[64];
	size_t size = (size_t)h->size;
	switch (h->type) {
	case RECORD_ENTRY:
		CHECK_INT(record_decode_entry(payload, size, &answer.entry, t), 0);
		add_line("entry", t, 2);
		break;
	case RECORD_CONTENT:
		CHECK_INT(record_decode_content(payload, size, &answer.content), 0);
		break;
	case RECORD_MATCH:
		CHECK_INT(record_decode_match(payload, size, &m, t), 0);
		snprintf(line, sizeof line, "%llu:%u", (unsigned long long)m.line, m.column);
		add_line(line, t, 2);
		break;
	case RECORD_CHANGE:
		CHECK_INT(record_decode_change(payload, size, &c, t), 0);
		snprintf(line, sizeof line, "%llu", (unsigned long long)c.count);
		add_line(line, t, 1);
		break;
	case RECORD_ATTRIBUTE:
		CHECK_INT(record_decode_attribute(payload, size, &a, t), 0);
		add_line("attribute", t, 2);
		break;
	case RECORD_EVENT:
		CHECK_INT(record_decode_event(payload, size, &e, t), 0);
		add_line(kinds[e.kind], t, 2);
		break;
	case RECORD_READY:
		add_line("ready", t, 0);
		break;
	case RECORD_SYNCED:
		add_line("synced", t, 0);
		break;
	default:
		CHECK(h->type == RECORD_END);
		CHECK_INT(record_decode_end(payload, size, &answer.end, t), 0);
		snprintf(answer.fault, sizeof answer.fault, "%.*s", (int)t[0].len, t[0].data);
	}
}

/* One record; false when the worker has gone. */
static inline bool receive(struct record_header *h)
{
	char header[RECORD_HEADER_SIZE];
	if (!read_exactly(header, sizeof header))
		return false;
	CHECK_INT(record_decode_header(header, h), 0);
	char *payload = malloc((size_t)h->size + 1);
	bool complete = read_exactly(payload, (size_t)h->size);
	if (complete && h->type == RECORD_DATA)
		buf_append(&answer.bytes, payload, (size_t)h->size);
	else if (complete)
		take_record(h, payload);
	free(payload);
	return complete;
}

static inline void forget_answer(void)
{
	buf_finish(&answer.lines);
	buf_finish(&answer.bytes);
	answer = (struct answer){0};
}

static inline const char *lines(void)
{
	buf_append_char(&answer.lines, '\0');
	answer.lines.len--;
	return answer.lines.data;
}

/* Up to END; the answer is its error. */
static inline int receive_all(void)
{
	struct record_header h;
	forget_answer();
	do
		answer.lost = !receive(&h);
	while (!answer.lost && h.type != RECORD_END);
	return answer.lost ? -1 : answer.end.error;
}

static inline int ask(struct ask a)
{
	ask_only(&a);
	return receive_all();
}

/* ---- files ---- */

static inline void put_file(const char *path, const char *content)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	CHECK_INT(fd_write_all(fd, content, strlen(content)), 0);
	close(fd);
}

static inline const char *get_file(const char *path)
{
	static struct buf text;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	text.len = 0;
	fd_read_all(fd, &text, 64 << 20);
	buf_append_char(&text, '\0');
	close(fd);
	return text.data;
}

static inline mode_t mode_of(const char *path)
{
	struct stat st;
	return lstat(path, &st) < 0 ? 0 : st.st_mode;
}

static inline bool exists(const char *path)
{
	return mode_of(path) != 0;
}
