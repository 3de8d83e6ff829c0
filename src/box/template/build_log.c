/*
 * A build's log: a file of lines in the spool directory, "TIME LEVEL STEP MESSAGE". Entries are
 * counted from 0 and never change, so a reader goes on at the number where it stopped, also after
 * the server was started anew. A build that says too much keeps its beginning, and the last line
 * says that there was more. Logs count with what is kept of their tenant's commands; they go with
 * their builds.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "box/process/kept.h"
#include "box/template/catalogue.h"

#define LOG_BYTES_MAX  (16u << 20)
#define LOG_LINE_MAX   4096
#define LOG_PREFIX_MAX 64
#define LOG_CHUNK      (64u * 1024)

static const char log_cut[] = "the log is longer than what is kept of it; the rest is left out";

static const char *const levels[] = {"debug", "info", "warn", "error"};

static void log_path(const struct build *build, char out[256])
{
	snprintf(out, 256, "%s/%s.log", build->catalogue->box->config.spool_dir, build->id);
}

static int open_log(const struct build *build, int flags)
{
	char path[256];
	log_path(build, path);
	return open(path, flags | O_CLOEXEC, 0600);
}

/* Counts what an earlier server left; a line that was cut short is no entry. */
static void build_log_learn(struct build *build)
{
	autoclose int fd = open_log(build, O_RDWR);
	static char chunk[LOG_CHUNK];
	uint64_t end = 0;
	ssize_t n;
	build->log.known = true;
	if (fd < 0)
		return;
	for (uint64_t at = 0; (n = pread(fd, chunk, sizeof chunk, (off_t)at)) > 0; at += (size_t)n)
		for (ssize_t i = 0; i < n; i++)
			if (chunk[i] == '\n') {
				build->log.entries++;
				end = at + (uint64_t)i + 1;
			}
	build->log.bytes = end;
	if (ftruncate(fd, (off_t)end) < 0)
		log_warn("cannot cut a build's log", "error", strerror(errno));
}

/* ---- writing ---- */

/* Entries on their way to the file. */
struct batch {
	struct build *build;
	const char *level;
	int step;
	struct buf lines;
	uint64_t count;
};

static void add_line(struct batch *b, const char *level, const char *text, size_t len)
{
	size_t begin = b->lines.len;
	buf_printf(&b->lines, "%" PRId64 " %s %d ", clock_wall_ms(), level, b->step);
	buf_append(&b->lines, text, len);
	for (size_t i = begin; i < b->lines.len; i++)
		if (b->lines.data[i] == '\0' || b->lines.data[i] == '\n')
			b->lines.data[i] = ' ';
	buf_append_char(&b->lines, '\n');
	b->count++;
}

/* One line of what was written, in as many entries as it needs. */
static void add_text(struct batch *b, const char *text, size_t len)
{
	struct build *build = b->build;
	do {
		size_t piece = len < LOG_LINE_MAX ? len : LOG_LINE_MAX;
		if (build->log.full)
			return;
		build->log.full =
			build->log.bytes + b->lines.len + piece + LOG_PREFIX_MAX > LOG_BYTES_MAX;
		if (build->log.full)
			add_line(b, "warn", log_cut, strlen(log_cut));
		else
			add_line(b, b->level, text, piece);
		text += piece;
		len -= piece;
	} while (len > 0);
}

/* Charges its tenant; what that has no room for becomes a line that says so. */
static void charge_batch(struct batch *b)
{
	struct build *build = b->build;
	struct kept_account *account = kept_of(build->catalogue->box, build->tenant);
	if (!kept_charge(account, b->lines.len)) {
		buf_finish(&b->lines);
		b->count = 0;
		build->log.full = true;
		add_line(b, "warn", log_cut, strlen(log_cut));
		kept_force_charge(account, b->lines.len);
	}
	build->log.charged += b->lines.len;
}

static void write_batch(struct batch *b)
{
	struct build *build = b->build;
	if (b->count == 0)
		return;
	charge_batch(b);
	autoclose int fd = open_log(build, O_WRONLY | O_CREAT | O_APPEND);
	int r = fd < 0 ? -errno : fd_write_all(fd, b->lines.data, b->lines.len);
	if (r < 0 || b->lines.failed) {
		log_error("cannot write a build's log", "error", strerror(-r));
	} else {
		build->log.bytes += b->lines.len;
		build->log.entries += b->count;
	}
	buf_finish(&b->lines);
	build_changed(build);
}

static struct batch begin_batch(struct build *build, const char *level, int step)
{
	if (!build->log.known)
		build_log_learn(build);
	return (struct batch){.build = build, .level = level, .step = step};
}

void build_log_text(struct build *build, const char *level, int step, const char *text, size_t len)
{
	struct batch b = begin_batch(build, level, step);
	add_text(&b, text, len);
	write_batch(&b);
}

size_t build_log_lines(
	struct build *build, const char *level, int step, const char *text, size_t len)
{
	struct batch b = begin_batch(build, level, step);
	size_t at = 0;
	for (const char *end; at < len && (end = memchr(text + at, '\n', len - at));) {
		size_t line = (size_t)(end - text) - at;
		bool has_return = line > 0 && end[-1] == '\r';
		add_text(&b, text + at, has_return ? line - 1 : line);
		at += line + 1;
	}
	write_batch(&b);
	return at;
}

void build_log(struct build *build, const char *level, int step, const char *format, ...)
{
	char text[LOG_LINE_MAX];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	build_log_text(build, level, step, text,
		n < 0                     ? 0
		: (size_t)n < sizeof text ? (size_t)n
					  : sizeof text - 1);
}

void build_log_remove(struct build *build)
{
	char path[256];
	log_path(build, path);
	unlink(path);
	kept_release(kept_of(build->catalogue->box, build->tenant), build->log.charged);
	build->log.charged = 0;
}

void build_log_found(struct build *build)
{
	char path[256];
	struct stat st;
	log_path(build, path);
	if (stat(path, &st) < 0)
		return;
	build->log.charged = (uint64_t)st.st_size;
	kept_force_charge(kept_of(build->catalogue->box, build->tenant), build->log.charged);
}

/* ---- reading ---- */

static const char *build_log_level_of(const char *text, size_t len)
{
	for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
		if (strlen(levels[i]) == len && strncmp(levels[i], text, len) == 0)
			return levels[i];
	return "info";
}

/* The line is NUL-terminated. */
static struct build_log_entry parse_line(char *line)
{
	char *level, *step, *message;
	struct build_log_entry entry = {.time_ms = strtoll(line, &level, 10)};
	level += *level == ' ';
	size_t level_len = strcspn(level, " ");
	step = level + level_len;
	entry.level = build_log_level_of(level, level_len);
	entry.step = (int)strtol(step, &message, 10);
	entry.message = message + (*message == ' ');
	return entry;
}

/*
 * Returns an offset from which entry number `from` can be reached; *entry is the one that begins
 * there.
 */
static uint64_t build_log_seek(const struct build *build, uint64_t from, uint64_t *entry)
{
	if (build->log.near_entry <= from) {
		*entry = build->log.near_entry;
		return build->log.near_byte;
	}
	*entry = 0;
	return 0;
}

uint64_t build_log_read(struct build *build, uint64_t from, size_t max,
	void (*each)(void *arg, const struct build_log_entry *entry), void *arg)
{
	autobuf chunk = {0};
	uint64_t entry, at = build_log_seek(build, from, &entry);
	size_t given = 0;
	if (!build->log.known)
		build_log_learn(build);
	autoclose int fd = open_log(build, O_RDONLY);
	while (fd >= 0 && given < max && buf_reserve(&chunk, LOG_CHUNK)) {
		ssize_t n = pread(fd, chunk.data, LOG_CHUNK, (off_t)at);
		char *line = chunk.data, *end;
		size_t left = n > 0 ? (size_t)n : 0;
		while (given < max && left > 0 && (end = memchr(line, '\n', left)) != NULL) {
			*end = '\0';
			if (entry++ >= from) {
				struct build_log_entry parsed = parse_line(line);
				each(arg, &parsed);
				given++;
			}
			left -= (size_t)(end + 1 - line);
			line = end + 1;
		}
		if (line == chunk.data)
			break;
		at += (uint64_t)(line - chunk.data);
	}
	build->log.near_entry = entry;
	build->log.near_byte = at;
	return from > entry ? from : entry;
}
