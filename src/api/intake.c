#include "api/intake.h"

#include <stdlib.h>

struct intake *intake_new(struct http_request *req, const struct intake_taker *how)
{
	struct intake *in = calloc(1, sizeof *in);
	if (!in)
		abort();
	in->req = req;
	in->how = how;
	return in;
}

static void take_data(void *arg, const char *data, size_t len)
{
	struct intake *in = arg;
	in->how->write(in->taker, data, len);
	if (in->how->room(in->taker) == 0 && !in->paused) {
		in->paused = true;
		http_body_pause(in->req);
	}
}

static void take_end(void *arg)
{
	struct intake *in = arg;
	in->how->end(in->taker);
}

static void aborted(void *arg)
{
	struct intake *in = arg;
	in->how->cancel(in->taker);
	free(in);
}

void intake_begin(struct intake *in, void *taker)
{
	const struct http_body_sink sink = {take_data, take_end, aborted, in};
	in->taker = taker;
	http_on_abort(in->req, aborted, in);
	http_body_stream(in->req, &sink);
}

void intake_room(void *intake)
{
	struct intake *in = intake;
	if (!in->paused)
		return;
	in->paused = false;
	http_body_resume(in->req);
}
