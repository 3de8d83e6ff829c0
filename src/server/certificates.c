#include "server/certificates.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "http/http.h"
#include "http/tls.h"

#define PEM_MAX (64 * 1024) /* of the chain, and of the key */

/* A message to the front: this, the chain, the key. */
struct certificates_head {
	uint32_t chain_len, key_len;
};

/* ---- root ---- */

static void certificates_drop(struct certificates *c)
{
	if (c->key.data)
		sodium_memzero(c->key.data, c->key.cap);
	buf_finish(&c->chain);
	buf_finish(&c->key);
}

/* Changes when one of the files is another one, or was written. 0: one is not there. */
static int64_t certificates_stamp(const struct certificates *c)
{
	const char *const paths[] = {c->chain_path, c->key_path};
	uint64_t stamp = 0;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct stat st;
		if (stat(paths[i], &st) < 0)
			return 0;
		uint64_t changed =
			(uint64_t)st.st_ctim.tv_sec * 1000000000 + (uint64_t)st.st_ctim.tv_nsec;
		stamp = stamp * 31 + (changed ^ ((uint64_t)st.st_ino << 20));
	}
	return (int64_t)(stamp | 1);
}

static int certificates_read_file(const char *path, struct buf *ret, struct error *e)
{
	int r = fd_read_file_at(AT_FDCWD, path, ret, PEM_MAX);
	if (r < 0)
		return error_set_errno(e, r, "cannot read %s", path);
	return 0;
}

static int certificates_check(const struct buf *chain, const struct buf *key, struct error *e)
{
	struct http_tls_context *context = NULL;
	int r = http_tls_context_create(&context, chain->data, chain->len, key->data, key->len, e);
	http_tls_context_destroy(context);
	return r;
}

/* Keeps what it has if the files cannot be used. */
static int certificates_read(struct certificates *c, struct error *e)
{
	struct certificates fresh = {.chain_path = c->chain_path, .key_path = c->key_path};
	fresh.stamp = certificates_stamp(c);
	if (certificates_read_file(c->chain_path, &fresh.chain, e) < 0 ||
		certificates_read_file(c->key_path, &fresh.key, e) < 0 ||
		certificates_check(&fresh.chain, &fresh.key, e) < 0) {
		certificates_drop(&fresh);
		return -1;
	}
	certificates_drop(c);
	c->chain = fresh.chain;
	c->key = fresh.key;
	c->stamp = fresh.stamp;
	return 0;
}

int certificates_open(
	struct certificates *c, const char *chain_path, const char *key_path, struct error *e)
{
	*c = (struct certificates){.pair = {-1, -1}};
	if (!chain_path && !key_path)
		return 0;
	if (!chain_path || !key_path)
		return error_set(
			e, ERROR_INVALID_REQUEST, "--tls-cert and --tls-key need each other");
	c->chain_path = chain_path;
	c->key_path = key_path;
	if (certificates_read(c, e) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, c->pair) < 0)
		return error_set_errno(e, errno, "cannot make a socket pair");
	return 0;
}

static void certificates_tell(const struct certificates *c)
{
	const struct certificates_head head = {(uint32_t)c->chain.len, (uint32_t)c->key.len};
	const struct iovec parts[] = {{(void *)(uintptr_t)&head, sizeof head},
		{c->chain.data, c->chain.len}, {c->key.data, c->key.len}};
	const struct msghdr message = {
		.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = ARRAY_LEN(parts)};
	if (sendmsg(c->pair[0], &message, MSG_NOSIGNAL) < 0)
		log_error("the new certificate did not reach the front", "error", strerror(errno));
}

void certificates_look(struct certificates *c)
{
	struct error e = {0};
	int64_t stamp = c->chain_path ? certificates_stamp(c) : c->stamp;
	if (stamp == c->stamp || stamp == 0)
		return;
	if (certificates_read(c, &e) < 0) {
		c->stamp = stamp; /* said once for each change */
		log_error("the new certificate cannot be used; the old one stays", "error",
			e.message);
		return;
	}
	log_info("the certificate has changed", "file", c->chain_path);
	certificates_tell(c);
}

/* ---- the front ---- */

static void link_take(struct certificates_link *link, const char *message, size_t len)
{
	struct certificates_head head;
	struct http_tls_context *context = NULL;
	struct error e = {0};
	if (len < sizeof head)
		return;
	memcpy(&head, message, sizeof head);
	const char *chain = message + sizeof head;
	if ((uint64_t)head.chain_len + head.key_len != len - sizeof head)
		return;
	if (http_tls_context_create(
		    &context, chain, head.chain_len, chain + head.chain_len, head.key_len, &e) < 0)
		log_error("the certificate cannot be used", "error", e.message);
	else
		http_server_set_tls(link->http, context);
}

static void link_ready(uv_poll_t *poll, int status, int events)
{
	struct certificates_link *link = poll->data;
	size_t size = sizeof(struct certificates_head) + 2 * (size_t)PEM_MAX;
	uv_os_fd_t fd;
	(void)events;
	if (status < 0 || uv_fileno((uv_handle_t *)poll, &fd) < 0)
		return;
	autofree char *message = mem_new(size);
	ssize_t n = recv(fd, message, size, MSG_DONTWAIT);
	if (n == 0)
		uv_poll_stop(poll); /* root is gone, and so are we in a moment */
	else if (n > 0)
		link_take(link, message, (size_t)n);
	sodium_memzero(message, size);
}

int certificates_serve(const struct certificates *c, struct certificates_link *link,
	uv_loop_t *loop, struct http_server *http, struct error *e)
{
	struct http_tls_context *context = NULL;
	if (!c->chain_path)
		return 0;
	if (http_tls_context_create(
		    &context, c->chain.data, c->chain.len, c->key.data, c->key.len, e) < 0)
		return -1;
	http_server_set_tls(http, context);
	link->http = http;
	link->poll.data = link;
	if (uv_poll_init(loop, &link->poll, c->pair[1]) < 0 ||
		uv_poll_start(&link->poll, UV_READABLE, link_ready) < 0)
		return error_set(e, ERROR_INTERNAL, "certificates cannot be waited for");
	return 0;
}

void certificates_leave(const struct certificates *c, struct certificates_link *link)
{
	if (c->chain_path && link->http)
		uv_close((uv_handle_t *)&link->poll, NULL);
}
