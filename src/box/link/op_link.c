#include "box/link/op_link.h"

#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"

struct op_call {
	struct op_call *prev, *next;
	op_reply_fn *reply;
	void *arg;
	alignas(max_align_t) char request[];
};

static uint32_t sequence_of(const void *message)
{
	struct op_head head;
	memcpy(&head, message, sizeof head);
	return head.sequence;
}

/* ---- sending ---- */

static void op_link_ready(uv_poll_t *poll, int status, int events);

static void send_unsent(struct op_link *l)
{
	while (l->unsent) {
		if (send(l->fd, l->unsent->request, l->protocol->request_size,
			    MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break;
		l->unsent = l->unsent->next;
	}
	bool writing = l->unsent != NULL;
	if (writing == l->writing)
		return; /* each start is two system calls */
	l->writing = writing;
	uv_poll_start(&l->poll, writing ? UV_READABLE | UV_WRITABLE : UV_READABLE, op_link_ready);
}

void op_link_call(struct op_link *l, const void *request, op_reply_fn *reply, void *arg)
{
	const struct op_protocol *p = l->protocol;
	struct op_call *call = mem_new(sizeof *call + p->request_size);
	call->reply = reply;
	call->arg = arg;
	memcpy(call->request, request, p->request_size);
	l->sequence++;
	memcpy(call->request + offsetof(struct op_head, sequence), &l->sequence,
		sizeof l->sequence);
	if (p->request_epoch)
		memcpy(call->request + p->request_epoch, &l->epoch, sizeof l->epoch);
	FAULT_POINT();
	DL_APPEND(l->calls, call);
	if (!l->unsent) {
		l->unsent = call;
		send_unsent(l);
	}
	FAULT_POINT();
}

/* ---- answers ---- */

static struct op_call *find_call(const struct op_link *l, const char *reply)
{
	const struct op_protocol *p = l->protocol;
	struct op_call *call = l->calls;
	uint32_t sequence = sequence_of(reply);
	if (p->reply_epoch && memcmp(reply + p->reply_epoch, &l->epoch, sizeof l->epoch) != 0)
		return NULL;
	while (call && call != l->unsent && sequence_of(call->request) != sequence)
		call = call->next;
	return call == l->unsent ? NULL : call;
}

/* It is for an earlier front, or was asked twice because the process was started again. */
static void drop_reply(const struct op_link *l, const char *reply)
{
	const struct op_protocol *p = l->protocol;
	int32_t fd = -1;
	if (p->reply_fd)
		memcpy(&fd, reply + p->reply_fd, sizeof fd);
	if (fd >= 0)
		close(fd);
	if (!p->reply_epoch)
		log_error("an answer came that nobody asked for", "from", p->peer);
}

static void take_reply(struct op_link *l, const char *reply)
{
	struct op_head head;
	memcpy(&head, reply, sizeof head);
	if (l->protocol->restarted && head.op == l->protocol->restarted) {
		l->unsent = l->calls;
		send_unsent(l);
		return;
	}
	struct op_call *call = find_call(l, reply);
	if (!call) {
		drop_reply(l, reply);
		return;
	}
	DL_DELETE(l->calls, call);
	FAULT_POINT();
	l->protocol->deliver(call->reply, call->arg, reply);
	free(call);
}

/* A descriptor that comes along is put into the reply, where the protocol has a place for it. */
static ssize_t receive_reply(const struct op_link *l, char reply[OP_REPLY_MAX])
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	bool takes_fd = l->protocol->reply_fd != 0;
	struct iovec bytes = {.iov_base = reply, .iov_len = l->protocol->reply_size};
	struct msghdr message = {.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = takes_fd ? control.space : NULL,
		.msg_controllen = takes_fd ? sizeof control.space : 0};
	ssize_t n = recvmsg(l->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n != (ssize_t)l->protocol->reply_size || !takes_fd)
		return n;
	int32_t fd = -1;
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof fd);
	memcpy(reply + l->protocol->reply_fd, &fd, sizeof fd);
	return n;
}

static void op_link_ready(uv_poll_t *poll, int status, int events)
{
	struct op_link *l = poll->data;
	alignas(max_align_t) char reply[OP_REPLY_MAX];
	(void)status;
	if (events & UV_WRITABLE)
		send_unsent(l);
	for (;;) {
		ssize_t n = receive_reply(l, reply);
		if (n == (ssize_t)l->protocol->reply_size) {
			take_reply(l, reply);
			continue;
		}
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			uv_poll_stop(poll);
			if (l->lost)
				l->lost(l->arg);
		}
		return;
	}
}

/* ---- begin and end ---- */

int op_link_open(struct op_link *l, const struct op_protocol *protocol, uv_loop_t *loop, int fd,
	void (*lost)(void *arg), void *arg)
{
	assert(protocol->reply_size <= OP_REPLY_MAX);
	*l = (struct op_link){.protocol = protocol, .fd = fd, .lost = lost, .arg = arg};
	if (getrandom(&l->epoch, sizeof l->epoch, 0) != (ssize_t)sizeof l->epoch)
		return UV_EIO;
	int r = uv_poll_init(loop, &l->poll, fd);
	if (r < 0)
		return r;
	l->poll.data = l;
	return uv_poll_start(&l->poll, UV_READABLE, op_link_ready);
}

bool op_link_is_busy(const struct op_link *l)
{
	return l->calls != NULL;
}

static void op_link_closed(uv_handle_t *handle)
{
	struct op_link *l = handle->data;
	l->closed(l->closed_arg);
}

void op_link_close(struct op_link *l, void (*closed)(void *arg), void *arg)
{
	struct op_call *call, *next;
	l->closed = closed;
	l->closed_arg = arg;
	uv_close((uv_handle_t *)&l->poll, op_link_closed);
	DL_FOREACH_SAFE (l->calls, call, next)
		free(call);
	l->calls = l->unsent = NULL;
}
