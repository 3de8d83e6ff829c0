/*
 * Requests to the keeper and their answers, which come in any order. A keeper that was started
 * again says so, and everything that had no answer is asked again: its operations can be repeated.
 */
#include "box/link/keeper_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/fault.h"
#include "base/log.h"

struct keeper_call {
	struct keeper_call *prev, *next;
	struct keeper_request request;
	keeper_reply_fn *reply;
	void *arg;
};

static void poll_ready(uv_poll_t *poll, int status, int events);

static void send_unsent(struct keeper_link *k)
{
	while (k->unsent) {
		if (send(k->fd, &k->unsent->request, sizeof k->unsent->request,
			    MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break;
		k->unsent = k->unsent->next;
	}
	bool writing = k->unsent != NULL;
	if (writing == k->writing)
		return; /* each start is two system calls */
	k->writing = writing;
	uv_poll_start(&k->poll, writing ? UV_READABLE | UV_WRITABLE : UV_READABLE, poll_ready);
}

static void take_reply(struct keeper_link *k, const struct keeper_reply *reply)
{
	struct keeper_call *call = k->calls;
	if (reply->op == KEEPER_STARTED) {
		k->unsent = k->calls;
		send_unsent(k);
		return;
	}
	while (call && call != k->unsent && call->request.sequence != reply->sequence)
		call = call->next;
	if (reply->epoch != k->epoch || !call || call == k->unsent) {
		/* Of a front before us, or asked twice. */
		if (reply->pipe_fd >= 0)
			close(reply->pipe_fd);
		return;
	}
	DL_DELETE(k->calls, call);
	FAULT_POINT();
	call->reply(call->arg, reply);
	free(call);
}

/* A pipe that comes along is in the reply, or else it holds -1. */
static ssize_t receive(int fd, struct keeper_reply *reply)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec bytes = {.iov_base = reply, .iov_len = sizeof *reply};
	struct msghdr message = {.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof control.space};
	ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n != (ssize_t)sizeof *reply)
		return n;
	reply->pipe_fd = -1;
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&reply->pipe_fd, CMSG_DATA(c), sizeof(int));
	return n;
}

static void poll_ready(uv_poll_t *poll, int status, int events)
{
	struct keeper_link *k = poll->data;
	struct keeper_reply reply;
	(void)status;
	if (events & UV_WRITABLE)
		send_unsent(k);
	for (;;) {
		ssize_t n = receive(k->fd, &reply);
		if (n == (ssize_t)sizeof reply) {
			take_reply(k, &reply);
			continue;
		}
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			uv_poll_stop(poll); /* the warden is gone, too, and that is noticed */
		return;
	}
}

int keeper_link_open(struct keeper_link *k, uv_loop_t *loop, int fd, void *arg)
{
	*k = (struct keeper_link){.fd = fd, .arg = arg};
	if (getrandom(&k->epoch, sizeof k->epoch, 0) != (ssize_t)sizeof k->epoch)
		return UV_EIO;
	int r = uv_poll_init(loop, &k->poll, fd);
	if (r < 0)
		return r;
	k->poll.data = k;
	return uv_poll_start(&k->poll, UV_READABLE, poll_ready);
}

static void name_disk(struct disk_name *out, const struct disk_name *from)
{
	if (!from)
		return;
	out->kind = from->kind;
	memcpy(out->id, from->id, strnlen(from->id, ID_LEN));
}

static struct keeper_call *call_new(struct keeper_link *k, enum keeper_op op,
	const struct disk_name *disk, const struct disk_name *from)
{
	struct keeper_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->request.op = op;
	call->request.sequence = ++k->sequence;
	call->request.epoch = k->epoch;
	name_disk(&call->request.disk, disk);
	name_disk(&call->request.from, from);
	return call;
}

static void call_send(
	struct keeper_link *k, struct keeper_call *call, keeper_reply_fn *reply, void *arg)
{
	call->reply = reply;
	call->arg = arg;
	FAULT_POINT();
	DL_APPEND(k->calls, call);
	if (!k->unsent) {
		k->unsent = call;
		send_unsent(k);
	}
	FAULT_POINT();
}

void keeper_link_call(struct keeper_link *k, enum keeper_op op, const struct disk_name *disk,
	const struct disk_name *from, int64_t bytes, keeper_reply_fn *reply, void *arg)
{
	struct keeper_call *call = call_new(k, op, disk, from);
	call->request.bytes = bytes;
	call_send(k, call, reply, arg);
}

void keeper_link_diff(struct keeper_link *k, const struct disk_name *disk,
	const struct disk_name *from, const char *root, enum diff_form form, keeper_reply_fn *reply,
	void *arg)
{
	struct keeper_call *call = call_new(k, KEEPER_DIFF, disk, from);
	memcpy(call->request.root, root, strnlen(root, ID_LEN));
	call->request.form = form;
	call_send(k, call, reply, arg);
}

void keeper_link_close(struct keeper_link *k, uv_close_cb closed)
{
	struct keeper_call *call, *next;
	uv_close((uv_handle_t *)&k->poll, closed);
	DL_FOREACH_SAFE (k->calls, call, next)
		free(call);
	k->calls = k->unsent = NULL;
}
