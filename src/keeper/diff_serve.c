/*
 * One comparison, from its request to the last record. It can take as long as somebody inside
 * wants, so it goes on for only as long as somebody listens, and only when nobody else wants the
 * processor.
 */
#include "keeper/diff.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"

#include "keeper/keeper.h"

#define LISTENER_CHECK_US 250000

static int tell_record(void *arg, const struct change *c)
{
	return diff_out_change(arg, c);
}

static int diff_serve_run(struct diff *d, enum diff_form form, struct diff_out *out)
{
	if (form == DIFF_RECORDS) {
		d->change = tell_record;
		d->arg = out;
		return diff_walk(d);
	}
	if (form == DIFF_TEXT) {
		d->change = text_write_change;
		d->arg = out;
		d->tells_all = true;
		return diff_walk(d);
	}
	struct tar_writer *t = tar_writer_new(out);
	if (!t || (form == DIFF_ARCHIVE && diff_out_compress(out) < 0))
		return -ENOMEM;
	d->change = tar_write_change;
	d->arg = t;
	int r = diff_walk(d);
	if (r == 0)
		r = tar_write_end(t);
	tar_writer_free(t);
	return r;
}

static int listener_fd;

static void leave_when_alone(int number)
{
	struct pollfd p = {.fd = listener_fd};
	(void)number;
	if (poll(&p, 1, 0) > 0 && p.revents & POLLERR)
		_exit(0);
}

/* A comparison that finds no difference writes nothing, and would never learn it from SIGPIPE. */
static int watch_listener(int pipe_fd)
{
	struct sigaction action = {.sa_handler = leave_when_alone, .sa_flags = SA_RESTART};
	struct itimerval every = {{.tv_usec = LISTENER_CHECK_US}, {.tv_usec = LISTENER_CHECK_US}};
	listener_fd = pipe_fd;
	signal(SIGPIPE, SIG_DFL);
	setpriority(PRIO_PROCESS, 0, 19);
	return sigaction(SIGALRM, &action, NULL) < 0 || setitimer(ITIMER_REAL, &every, NULL) < 0
		       ? -errno
		       : 0;
}

/* Closes the keeper's descriptors, the raw disk among them. */
static int diff_serve_confine(const struct view *old, const struct view *new)
{
	const int dirs[] = {old->root_upper, old->root_lower, old->usr_upper, old->usr_lower,
		new->root_upper, new->root_lower, new->usr_upper, new->usr_lower};
	if (close_range(KEEPER_FIRST_FD, ~0u, 0) < 0)
		return -errno;
	return confine_reader(dirs, ARRAY_LEN(dirs));
}

void diff_serve(struct keeper *k, const struct keeper_request *q, int pipe_fd)
{
	static struct diff_out out;
	static struct diff d;
	struct view old, new;
	out.fd = pipe_fd;
	prctl(PR_SET_NAME, "bunker-reader", 0, 0, 0);
	int r = watch_listener(pipe_fd);
	if (r == 0)
		r = view_open(k, &q->from, q->root, &old);
	if (r == 0)
		r = view_open(k, &q->disk, q->root, &new);
	if (r == 0)
		r = diff_serve_confine(&old, &new);
	if (r == 0) {
		d.old = &old;
		d.new = &new;
		r = diff_serve_run(&d, (enum diff_form)q->form, &out);
	}
	diff_out_end(&out, r < 0 ? -r : 0, d.truncated);
	_exit(0);
}
