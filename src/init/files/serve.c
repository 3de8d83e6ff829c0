#include "init/files/files.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/processor.h"

static const struct {
	int (*run)(const struct file_request *r, struct outcome *o);
	bool input;
	bool slow; /* it may go on for long without a word */
} operations[FILE_OP_END] = {
	[FILE_READ] = {file_read, false, false},
	[FILE_WRITE] = {file_write, true, false},
	[FILE_STAT] = {file_stat, false, false},
	[FILE_LIST] = {file_list, false, true},
	[FILE_MKDIR] = {file_mkdir, false, false},
	[FILE_MOVE] = {file_move, false, true},
	[FILE_COPY] = {file_copy, false, true},
	[FILE_REMOVE] = {file_remove, false, true},
	[FILE_CHMOD] = {file_chmod, false, true},
	[FILE_CHOWN] = {file_chown, false, true},
	[FILE_SYMLINK] = {file_symlink, false, false},
	[FILE_FIND] = {file_find, false, true},
	[FILE_GREP] = {file_grep, false, true},
	[FILE_REPLACE] = {file_replace, false, true},
	[FILE_ATTRIBUTES] = {file_attributes, true, false},
	[FILE_PACK] = {file_pack, false, true},
	[FILE_UNPACK] = {file_unpack, true, true},
	[FILE_WATCH] = {file_watch, false, false},
	[FILE_ROOT] = {file_root, false, false},
	[FILE_TRUST] = {file_trust, false, false},
};

int serve_fail(struct outcome *o, int error, const char *path)
{
	if (o->path.len == 0)
		buf_append_str(&o->path, path);
	return error;
}

/* Checks once a second whether the front still waits: a search may run for hours without output. */
static void look_for_front(int number)
{
	(void)number;
	int saved = errno;
	struct pollfd p = {.fd = io_fd(), .events = POLLRDHUP};
	if (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLRDHUP | POLLERR)))
		_exit(0);
	errno = saved;
}

static void watch_front(bool on)
{
	struct itimerval every = {{on, 0}, {on, 0}};
	setitimer(ITIMER_REAL, &every, NULL);
}

/* Returns whether the working directory is below our root, whatever links led there. */
static bool cwd_is_inside(void)
{
	char path[PATH_MAX];
	return syscall(SYS_getcwd, path, sizeof path) > 0 && path[0] == '/';
}

static int enter_cwd(const char *cwd, const char *home, struct outcome *o)
{
	char named[PATH_MAX];
	if (cwd[0] == '~') {
		int r = home_of_user(cwd + 1, named);
		if (r < 0)
			return serve_fail(o, r, cwd + 1);
		home = named;
		cwd = "";
	}
	if (cwd[0] == '\0')
		return chdir(home) < 0 && chdir("/") < 0 ? -errno : 0;
	if (chdir(cwd) < 0)
		return serve_fail(o, -errno, cwd);
	return cwd_is_inside() ? 0 : serve_fail(o, -EACCES, cwd);
}

/* For one absolute path it makes no difference where we are. */
static bool needs_cwd(const struct file_request *r)
{
	bool single = r->fixed.op == FILE_READ || r->fixed.op == FILE_STAT;
	return !single || r->text[FILE_PATH][0] != '/' || r->text[FILE_CWD][0] != '\0';
}

static int files_serve_put_end(int error, const struct outcome *o, const char *path)
{
	struct record_end end = {.error = abs(error), .truncated = o->truncated, .count = o->count};
	struct record_text text = {o->path.data, o->path.len};
	if (error && o->path.len == 0)
		text = (struct record_text){path, strlen(path)};
	if (text.len > PATH_MAX)
		text.len = PATH_MAX;
	end.path_len = (uint32_t)text.len;
	int r = io_put(RECORD_END, &end, sizeof end, &text, 1);
	return r < 0 ? r : io_flush();
}

/* The request's texts are in the buffer that its input will overwrite. */
static int take_request(struct file_request *r, char **memory)
{
	struct record_header h;
	const char *payload;
	if (io_next(&h) < 0 || h.type != RECORD_REQUEST || io_payload(&h, &payload) < 0)
		return -EPROTO;
	*memory = malloc((size_t)h.size);
	if (!*memory)
		return -ENOMEM;
	memcpy(*memory, payload, (size_t)h.size);
	return record_decode_request(*memory, (size_t)h.size, r);
}

/* Negative: this connection has come to its end. */
static int files_serve_one(const char *home)
{
	autofree char *memory = NULL;
	struct file_request r;
	struct outcome o = {0};
	if (take_request(&r, &memory) < 0)
		return -1;
	bool slow = operations[r.fixed.op].slow;
	if (r.fixed.near == 0)
		processor_stay(0);
	if (slow)
		watch_front(true);
	int error = needs_cwd(&r) ? enter_cwd(r.text[FILE_CWD], home, &o) : 0;
	if (error == 0)
		error = operations[r.fixed.op].run(&r, &o);
	if (slow)
		watch_front(false);
	int ended = error == -ECONNRESET || error == -EPROTO
			    ? -1
			    : files_serve_put_end(error, &o, r.text[FILE_PATH]);
	buf_finish(&o.path);
	processor_stay(r.fixed.near);
	/* After a failure the rest of the operation's input is still on the way. */
	return ended < 0 || (error < 0 && operations[r.fixed.op].input) ? -1 : 0;
}

void files_serve(int fd, const char *home)
{
	struct sigaction action = {.sa_handler = look_for_front, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	io_open(fd);
	while (files_serve_one(home) == 0)
		;
}
