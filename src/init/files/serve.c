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

static const struct {
	int (*run)(const struct file_request *r, struct outcome *o);
	bool input;
} operations[FILE_OP_END] = {
	[FILE_READ] = {file_read, false},
	[FILE_WRITE] = {file_write, true},
	[FILE_STAT] = {file_stat, false},
	[FILE_LIST] = {file_list, false},
	[FILE_MKDIR] = {file_mkdir, false},
	[FILE_MOVE] = {file_move, false},
	[FILE_COPY] = {file_copy, false},
	[FILE_REMOVE] = {file_remove, false},
	[FILE_CHMOD] = {file_chmod, false},
	[FILE_CHOWN] = {file_chown, false},
	[FILE_SYMLINK] = {file_symlink, false},
	[FILE_FIND] = {file_find, false},
	[FILE_GREP] = {file_grep, false},
	[FILE_REPLACE] = {file_replace, false},
	[FILE_ATTRIBUTES] = {file_attributes, true},
	[FILE_PACK] = {file_pack, false},
	[FILE_UNPACK] = {file_unpack, true},
	[FILE_WATCH] = {file_watch, false},
	[FILE_ROOT] = {file_root, false},
};

int fail(struct outcome *o, int error, const char *path)
{
	if (o->path.len == 0)
		buf_append_str(&o->path, path);
	return error;
}

/* A search may go on for hours without a word: once a second we see whether anybody still waits. */
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

/* What /proc/self/cwd leads to must be below our root, whatever links led there. */
static bool cwd_is_inside(void)
{
	char path[PATH_MAX];
	return syscall(SYS_getcwd, path, sizeof path) > 0 && path[0] == '/';
}

static int enter_cwd(const char *cwd, const char *home, struct outcome *o)
{
	if (cwd[0] == '\0')
		return chdir(home) < 0 && chdir("/") < 0 ? -errno : 0;
	if (chdir(cwd) < 0)
		return fail(o, -errno, cwd);
	return cwd_is_inside() ? 0 : fail(o, -EACCES, cwd);
}

static int put_end(int error, const struct outcome *o, const char *path)
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
static int serve_one(const char *home)
{
	autofree char *memory = NULL;
	struct file_request r;
	struct outcome o = {0};
	if (take_request(&r, &memory) < 0)
		return -1;
	watch_front(true);
	int error = enter_cwd(r.text[FILE_CWD], home, &o);
	if (error == 0)
		error = operations[r.fixed.op].run(&r, &o);
	watch_front(false);
	int ended = error == -ECONNRESET || error == -EPROTO
			    ? -1
			    : put_end(error, &o, r.text[FILE_PATH]);
	buf_finish(&o.path);
	/* After a failure the rest of its input is still on the way. */
	return ended < 0 || (error < 0 && operations[r.fixed.op].input) ? -1 : 0;
}

void files_serve(int fd, const char *home)
{
	struct sigaction action = {.sa_handler = look_for_front, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	io_open(fd);
	while (serve_one(home) == 0)
		;
}
