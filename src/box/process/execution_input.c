/*
 * Stdin. Input that is given at the start waits here and goes out as the window allows; later
 * writers are told how much room there is, so nothing grows. Offsets are absolute and survive the
 * front: a new one goes on where init says the last one stopped.
 */
#include <errno.h>
#include <utlist.h>

#include "box/process/execution_core.h"
#include "box/sandbox/object.h"
#include "box/sandbox/pause.h"

static uint64_t window_of(const struct execution *x)
{
	return FRAME_RING - (x->input_sent - x->input_taken);
}

static void send_bytes(struct execution *x, const char *data, size_t len)
{
	while (len > 0) {
		size_t part = len < FRAME_MAX_DATA ? len : FRAME_MAX_DATA;
		execution_send(x, FRAME_STDIN, 0, x->input_sent, data, part);
		x->input_sent += part;
		data += part;
		len -= part;
	}
}

void execution_input_push(struct execution *x)
{
	uint64_t waiting = x->input_end - x->input_sent;
	uint64_t window = window_of(x);
	if (x->input_closed || execution_has_ended(x))
		return;
	if (waiting > 0)
		send_bytes(x, x->input.data + x->input.len - waiting,
			(size_t)(waiting < window ? waiting : window));
	if (x->input_sent < x->input_end)
		return;
	buf_finish(&x->input);
	if (x->input_open)
		return;
	execution_send(x, FRAME_STDIN_END, 0, 0, NULL, 0);
	x->input_closed = true;
}

int execution_input_taken(struct execution *x, uint64_t offset)
{
	if (offset > x->input_sent || offset < x->input_taken)
		return -EPROTO;
	x->input_taken = offset;
	execution_input_push(x);
	execution_flush(x);
	struct execution_watcher *w, *next;
	DL_FOREACH_SAFE (x->watchers, w, next)
		if (w->room)
			w->room(w->arg);
	return 0;
}

bool execution_input_is_open(const struct execution *x)
{
	return x->input_open && !x->input_deaf && !execution_has_ended(x);
}

bool execution_input_is_deaf(const struct execution *x)
{
	return x->input_deaf;
}

uint64_t execution_input_offset(const struct execution *x)
{
	return x->input_end;
}

uint64_t execution_input_delivered(const struct execution *x)
{
	return x->input_taken;
}

size_t execution_input_room(const struct execution *x)
{
	if (!execution_input_is_open(x) || x->input_sent < x->input_end)
		return 0;
	return (size_t)window_of(x);
}

size_t execution_input_write(struct execution *x, const void *data, size_t len)
{
	size_t room = execution_input_room(x);
	size_t part = len < room ? len : room;
	struct error ignored;
	if (part > 0)
		sandbox_wake(x->sandbox, &ignored);
	x->input_end += part;
	send_bytes(x, data, part);
	execution_flush(x);
	return part;
}

void execution_input_close(struct execution *x)
{
	if (!x->input_open)
		return;
	x->input_open = false;
	execution_input_push(x);
	execution_flush(x);
}
