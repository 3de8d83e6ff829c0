/* One comparison, from its request to the last record. */
#include "keeper/diff.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "keeper/keeper.h"

static int tell_record(void *arg, const struct change *c)
{
	return diff_out_change(arg, c);
}

static int run(struct diff *d, enum diff_form form, struct diff_out *out)
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

void diff_serve(struct keeper *k, const struct keeper_request *q, int pipe_fd)
{
	static struct diff_out out;
	static struct diff d;
	struct view old, new;
	out.fd = pipe_fd;
	prctl(PR_SET_NAME, "bunker-reader", 0, 0, 0);
	signal(SIGPIPE, SIG_DFL); /* nobody wants to know any more */
	int r = view_open(k, &q->from, q->root, &old);
	if (r == 0)
		r = view_open(k, &q->disk, q->root, &new);
	if (r == 0)
		r = confine_reader();
	if (r == 0) {
		d.old = &old;
		d.new = &new;
		r = run(&d, (enum diff_form)q->form, &out);
	}
	diff_out_end(&out, r < 0 ? -r : 0, d.truncated);
	_exit(0);
}
