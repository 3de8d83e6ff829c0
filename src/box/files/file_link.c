#include "box/files/file_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/sandbox/failure.h"

#define IDLE_MAX    4 /* of one sandbox */
#define IDLE_MS     30000
#define PATIENCE_MS 60000
#define READ_SIZE   (16u * 1024)
#define CHUNK_SIZE  (256u * 1024)
#define LAST_READS  64 /* more than a socket's buffer has */

static void on_timer(uv_timer_t *timer);

/* ---- life ---- */

static void file_link_free(uv_handle_t *handle)
{
	struct file_link *l = handle->data;
	if (--l->handles_open > 0)
		return;
	if (l->fd >= 0)
		close(l->fd);
	buf_finish(&l->in);
	buf_finish(&l->out);
	free(l->user);
	free(l->tenant);
	free(l);
}

void file_link_close(struct file_link *l)
{
	if (l->closed)
		return;
	l->closed = true;
	l->call = NULL;
	DL_DELETE(l->sandbox->files.links, l);
	tenant_count_descriptors(l->sandbox->box, l->tenant, -1);
	uv_close((uv_handle_t *)&l->timer, file_link_free);
	if (l->polled)
		uv_close((uv_handle_t *)&l->poll, file_link_free);
}

/* A sandbox without a tenant, such as those in the pool, is the server's own. */
static const char *link_tenant(const struct sandbox *s)
{
	return s->tenant ? s->tenant : "";
}

static struct file_link *link_new(struct sandbox *s, const char *user)
{
	struct file_link *l = mem_new(sizeof *l);
	l->user = mem_copy_text(user);
	l->sandbox = s;
	l->fd = -1;
	uv_timer_init(s->box->loop, &l->timer);
	l->timer.data = l;
	l->handles_open = 1;
	struct frame_worker worker = {.open_files = (uint32_t)s->resources.open_files,
		.flags = s->is_porter ? FRAME_WORKER_IN_VOLUME : 0};
	frame_append_worker(&l->out, &worker, user);
	DL_APPEND(s->files.links, l);
	l->tenant = mem_copy_text(link_tenant(s));
	tenant_count_descriptors(s->box, l->tenant, 1);
	return l;
}

static void links_drop_idle(struct sandbox *s)
{
	struct file_link *l, *next;
	DL_FOREACH_SAFE (s->files.links, l, next)
		if (!l->call)
			file_link_close(l);
}

int file_link_check(struct sandbox *s, const char *user, struct error *e)
{
	struct sandbox *other;
	const struct file_link *l;
	DL_FOREACH (s->files.links, l)
		if (!l->call && strcmp(l->user, user) == 0)
			return 0;
	if (tenant_check_descriptor(s->box, link_tenant(s), e) == 0)
		return 0;
	DL_FOREACH (s->box->sandboxes.order, other)
		if (strcmp(link_tenant(other), link_tenant(s)) == 0)
			links_drop_idle(other);
	return tenant_check_descriptor(s->box, link_tenant(s), e);
}

struct file_link *file_link_take(struct sandbox *s, const char *user, struct file_call *call)
{
	struct file_link *at, *l = NULL;
	DL_FOREACH (s->files.links, at)
		if (!l && !at->call && strcmp(at->user, user) == 0)
			l = at;
	if (!l)
		l = link_new(s, user);
	l->call = call;
	uv_timer_start(&l->timer, on_timer, PATIENCE_MS, PATIENCE_MS);
	return l;
}

void file_link_idle(struct file_link *l)
{
	const struct file_link *other;
	unsigned idle = 0;
	l->call = NULL;
	DL_FOREACH (l->sandbox->files.links, other)
		idle += other->call == NULL;
	if (idle > IDLE_MAX || l->in.len > l->in_at || l->out.len > 0) {
		file_link_close(l);
		return;
	}
	uv_timer_start(&l->timer, on_timer, IDLE_MS, 0);
}

static void file_link_lost(struct file_link *l)
{
	struct file_call *call = l->call;
	file_link_close(l);
	if (call)
		file_call_lost(call);
}

/* Fails the sandbox: a worker that talks nonsense is as hostile as an init that does. */
static void file_link_distrust(struct file_link *l)
{
	log_debug("a file worker talks nonsense", "sandbox", l->sandbox->id);
	sandbox_fail(l->sandbox, "its file worker sent a record that makes no sense");
	/* Calls on a link that was not listed have not ended with it. */
	if (!l->closed)
		file_link_lost(l);
}

static void on_timer(uv_timer_t *timer)
{
	struct file_link *l = timer->data;
	if (!l->call)
		file_link_close(l);
	else if (!file_call_is_patient(l->call))
		file_link_lost(l);
}

/* ---- reading ---- */

static void on_ready(uv_poll_t *poll, int status, int events);

/* Asks the loop for what is wanted now. */
static void update_poll(struct file_link *l)
{
	bool reading = !l->call || !file_call_is_paused(l->call);
	bool writing = l->out.len > 0;
	if (l->closed || (reading == l->reading && writing == l->writable_wanted))
		return;
	l->reading = reading;
	l->writable_wanted = writing;
	int events = (reading ? UV_READABLE : 0) | (writing ? UV_WRITABLE : 0);
	if (events)
		uv_poll_start(&l->poll, events, on_ready);
	else
		uv_poll_stop(&l->poll);
}

/* Takes the first message: whether there is a worker. */
static int take_started(struct file_link *l)
{
	struct frame_header h;
	struct frame_started started;
	const char *at = l->in.data + l->in_at;
	int64_t size = frame_decode(at, l->in.len - l->in_at, &h);
	if (size == 0)
		return 0;
	if (size < 0 || h.type != FRAME_STARTED ||
		frame_payload(&h, at + FRAME_HEADER_SIZE, &started, sizeof started) < 0)
		return -EPROTO;
	l->in_at += (size_t)size;
	l->started = true;
	if (started.stage == FRAME_STAGE_NONE)
		return 1;
	struct file_call *call = l->call;
	file_link_close(l);
	file_call_refused(call, &started);
	return 0;
}

static void file_link_take_data(struct file_link *l)
{
	struct buf bytes = {0};
	size_t there = l->in.len - l->in_at;
	size_t n = l->data_left < there ? (size_t)l->data_left : there;
	buf_append(&bytes, l->in.data + l->in_at, n);
	l->in_at += n;
	l->data_left -= n;
	file_call_data(l->call, &bytes);
	buf_finish(&bytes);
}

/* 1: something was taken; 0: more must come first. */
static int file_link_take_record(struct file_link *l)
{
	struct record_header h;
	const char *at = l->in.data + l->in_at;
	size_t there = l->in.len - l->in_at;
	if (there < RECORD_HEADER_SIZE)
		return 0;
	if (record_decode_header(at, &h) < 0)
		return -EPROTO;
	if (h.type == RECORD_DATA) {
		if (file_call_expect_data(l->call, h.size) < 0)
			return -EPROTO;
		l->in_at += RECORD_HEADER_SIZE;
		l->data_left = h.size;
		return 1;
	}
	if (there - RECORD_HEADER_SIZE < h.size)
		return 0;
	l->in_at += RECORD_HEADER_SIZE + (size_t)h.size;
	int r = file_call_record(l->call, &h, at + RECORD_HEADER_SIZE);
	return r < 0 ? r : 1;
}

/* Handles records that are complete and wanted. A callback may close the link. */
static void handle_received(struct file_link *l)
{
	int r = 1;
	while (r > 0 && !l->closed && l->call && !file_call_is_paused(l->call)) {
		if (!l->started)
			r = take_started(l);
		else if (l->data_left == 0)
			r = file_link_take_record(l);
		else if (l->in_at < l->in.len)
			file_link_take_data(l);
		else
			break;
	}
	if (l->closed)
		return;
	/* An idle worker was asked nothing, so its answer is a violation. */
	if (r < 0 || (!l->call && l->in_at < l->in.len)) {
		file_link_distrust(l);
		return;
	}
	if (l->in_at == l->in.len)
		buf_finish(&l->in);
	else
		buf_consume(&l->in, l->in_at);
	l->in_at = 0;
}

/* Much of a file comes into memory of its own, which the call may keep. */
static ssize_t receive_chunk(struct file_link *l)
{
	struct buf bytes = {0};
	size_t max = l->data_left < CHUNK_SIZE ? (size_t)l->data_left : CHUNK_SIZE;
	if (!buf_reserve(&bytes, max)) {
		errno = ENOMEM;
		return -1;
	}
	ssize_t n = recv(l->fd, bytes.data, max, MSG_DONTWAIT);
	if (n > 0) {
		bytes.len = (size_t)n;
		l->data_left -= (uint64_t)n;
		file_call_data(l->call, &bytes);
	}
	int saved = errno;
	buf_finish(&bytes);
	errno = saved;
	return n;
}

static ssize_t file_link_receive(struct file_link *l)
{
	if (l->started && l->data_left > READ_SIZE && l->in.len == 0 && l->call)
		return receive_chunk(l);
	if (!buf_reserve(&l->in, READ_SIZE)) {
		errno = ENOMEM;
		return -1;
	}
	ssize_t n = recv(l->fd, l->in.data + l->in.len, l->in.cap - l->in.len, MSG_DONTWAIT);
	if (n > 0) {
		l->in.len += (size_t)n;
		handle_received(l);
	}
	return n;
}

void file_link_read(struct file_link *l)
{
	if (l->closed || l->fd < 0)
		return;
	if (l->in.len > 0)
		handle_received(l);
	if (l->closed)
		return;
	if (!l->call || !file_call_is_paused(l->call)) {
		uv_timer_again(&l->timer);
		ssize_t n = file_link_receive(l);
		if (l->closed)
			return;
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			file_link_lost(l);
			return;
		}
	}
	update_poll(l);
}

/* ---- writing ---- */

void file_link_send(struct file_link *l, const void *bytes, size_t len)
{
	if (l->closed)
		return;
	struct iovec parts[2] = {{l->out.data, l->out.len}, {(void *)(uintptr_t)bytes, len}};
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
	bool anything = l->out.len + len > 0;
	ssize_t n = l->fd < 0 || !anything ? 0 : sendmsg(l->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* A worker that has stopped reading is noticed by its end, which may say why. */
	size_t sent = n > 0 ? (size_t)n : 0, waiting = l->out.len;
	if (sent < waiting) {
		buf_consume(&l->out, sent);
		buf_append(&l->out, bytes, len);
	} else {
		l->out.len = 0;
		buf_append(&l->out, (const char *)bytes + (sent - waiting), len - (sent - waiting));
	}
	if (l->out.len == 0)
		buf_finish(&l->out);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		buf_finish(&l->out);
	if (l->fd >= 0)
		update_poll(l);
}

/*
 * A worker that ends while input is on the way leaves an error on the socket, behind what it said
 * last. The loop has stopped polling then.
 */
static void read_last_words(struct file_link *l)
{
	l->reading = l->writable_wanted = false;
	for (int i = 0; i < LAST_READS; i++) {
		if (l->closed || (l->call && file_call_is_paused(l->call)))
			return;
		file_link_read(l);
	}
	file_link_lost(l);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
	struct file_link *l = poll->data;
	if (status < 0) {
		read_last_words(l);
		return;
	}
	if (events & UV_WRITABLE) {
		file_link_send(l, NULL, 0);
		if (!l->closed && l->call)
			file_call_has_room(l->call);
	}
	if (events & UV_READABLE)
		file_link_read(l);
}

/* ---- connecting ---- */

int file_link_connect(struct file_link *l)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (l->fd >= 0)
		return 0;
	int n = snprintf(address.sun_path, sizeof address.sun_path, "%s/%s.sock",
		l->sandbox->box->config.run_dir, l->sandbox->id);
	if (n < 0 || (size_t)n >= sizeof address.sun_path)
		return -ENAMETOOLONG;
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	fd_widen(fd);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return -errno;
	int r = uv_poll_init(l->sandbox->box->loop, &l->poll, fd);
	if (r < 0)
		return r;
	l->polled = true;
	l->handles_open++;
	l->poll.data = l;
	l->fd = take_fd(&fd);
	update_poll(l);
	return 0;
}
