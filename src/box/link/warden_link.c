#include "box/link/warden_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "base/fault.h"
#include "base/log.h"

/* So many boots are sent at a time: what the warden works on at once. */
#define BOOTS_MAX 16

struct warden_call {
	struct warden_call *prev, *next;
	struct warden_request request;
	warden_reply_fn *reply;
	void *arg;
};

static void poll_ready(uv_poll_t *poll, int status, int events);

static void send_unsent(struct warden_link *w)
{
	while (w->unsent) {
		if (send(w->fd, &w->unsent->request, sizeof w->unsent->request,
			    MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break;
		w->unsent = w->unsent->next;
	}
	bool writing = w->unsent != NULL;
	if (writing == w->writing)
		return; /* each start is two system calls */
	w->writing = writing;
	uv_poll_start(&w->poll, writing ? UV_READABLE | UV_WRITABLE : UV_READABLE, poll_ready);
}

static void call_queue(struct warden_link *w, struct warden_call *call)
{
	w->boots += call->request.op == WARDEN_BOOT;
	DL_APPEND(w->calls, call);
	if (!w->unsent) {
		w->unsent = call;
		send_unsent(w);
	}
}

/* Sends the next boot in the place of one that was answered. */
static void send_held(struct warden_link *w)
{
	struct warden_call *call = w->held;
	if (!call || w->boots >= BOOTS_MAX)
		return;
	DL_DELETE(w->held, call);
	call_queue(w, call);
}

static void take_reply(struct warden_link *w, const struct warden_reply *reply)
{
	struct warden_call *call = w->calls;
	while (call && call != w->unsent && call->request.sequence != reply->sequence)
		call = call->next;
	if (!call || call == w->unsent) {
		log_error("the warden answered what nobody asked");
		return;
	}
	DL_DELETE(w->calls, call);
	if (call->request.op == WARDEN_BOOT) {
		w->boots--;
		send_held(w);
	}
	FAULT_POINT();
	call->reply(call->arg, reply);
	free(call);
}

void warden_link_recall_boot(struct warden_link *w, const char *id)
{
	struct warden_call *call = w->held;
	while (call && strncmp(call->request.id, id, ID_LEN) != 0)
		call = call->next;
	if (!call)
		return;
	DL_DELETE(w->held, call);
	const struct warden_reply reply = {.op = WARDEN_BOOT, .error = ECANCELED};
	call->reply(call->arg, &reply);
	free(call);
}

static void poll_ready(uv_poll_t *poll, int status, int events)
{
	struct warden_link *w = poll->data;
	struct warden_reply reply;
	(void)status;
	if (events & UV_WRITABLE)
		send_unsent(w);
	for (;;) {
		ssize_t n = recv(w->fd, &reply, sizeof reply, MSG_DONTWAIT);
		if (n == (ssize_t)sizeof reply) {
			take_reply(w, &reply);
			continue;
		}
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			uv_poll_stop(poll);
			w->lost(w->arg);
		}
		return;
	}
}

int warden_link_open(
	struct warden_link *w, uv_loop_t *loop, int fd, void (*lost)(void *arg), void *arg)
{
	*w = (struct warden_link){.fd = fd, .lost = lost, .arg = arg};
	int r = uv_poll_init(loop, &w->poll, fd);
	if (r < 0)
		return r;
	w->poll.data = w;
	return uv_poll_start(&w->poll, UV_READABLE, poll_ready);
}

static struct warden_call *call_new(
	struct warden_link *w, enum warden_op op, const char *id, const struct resources *limits)
{
	struct warden_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->request.op = op;
	call->request.sequence = ++w->sequence;
	memcpy(call->request.id, id, strnlen(id, ID_LEN));
	if (limits)
		call->request.limits =
			(struct warden_limits){limits->memory, limits->cpu, limits->pids};
	return call;
}

static void call_send(
	struct warden_link *w, struct warden_call *call, warden_reply_fn *reply, void *arg)
{
	call->reply = reply;
	call->arg = arg;
	FAULT_POINT();
	if (call->request.op == WARDEN_BOOT && w->boots >= BOOTS_MAX)
		DL_APPEND(w->held, call);
	else
		call_queue(w, call);
	FAULT_POINT();
}

void warden_link_call(struct warden_link *w, enum warden_op op, const char *id,
	const struct resources *limits, warden_reply_fn *reply, void *arg)
{
	call_send(w, call_new(w, op, id, limits), reply, arg);
}

void warden_link_boot(
	struct warden_link *w, const struct warden_boot *boot, warden_reply_fn *reply, void *arg)
{
	struct warden_call *call = call_new(w, WARDEN_BOOT, boot->id, boot->limits);
	memcpy(call->request.boot_id, boot->boot_id, UUID_BYTES);
	memcpy(call->request.root, boot->root, ID_SIZE);
	memcpy(call->request.volumes, boot->volumes, sizeof call->request.volumes);
	call->request.flags = boot->host_network ? WARDEN_BOOT_HOST_NETWORK : 0;
	call_send(w, call, reply, arg);
}

void warden_link_close(struct warden_link *w, uv_close_cb closed)
{
	struct warden_call *call, *next;
	uv_close((uv_handle_t *)&w->poll, closed);
	DL_FOREACH_SAFE (w->calls, call, next)
		free(call);
	DL_FOREACH_SAFE (w->held, call, next)
		free(call);
	w->calls = w->unsent = w->held = NULL;
}
