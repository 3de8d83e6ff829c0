/*
 * TLS on a connection: whether it has it, and the bytes between it and the socket. One port takes
 * both: the first byte of a connection tells. Where the server has a certificate, plain HTTP is
 * for loopback only; others are told to use https.
 *
 * An answer is encrypted in slices, each when the socket has taken the one before, so that a large
 * one is never held twice.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/address.h"
#include "base/cleanup.h"
#include "http/connection.h"
#include "http/server.h"
#include "http/tls.h"

#define HANDSHAKE_RECORD 0x16
#define RECORD_MAX       16384 /* plain bytes */
#define SLICE            (16 * RECORD_MAX)

/* ---- first byte ---- */

static bool peer_is_loopback(const struct http_connection *c)
{
	struct sockaddr_storage name = {0};
	struct address_port peer;
	int len = sizeof name;
	return uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&name, &len) == 0 &&
	       address_from_socket(&name, &peer) && address_is_loopback(&peer.address);
}

enum http_transport http_secure_begin(struct http_connection *c, const char *data)
{
	if (!c->server->tls)
		return HTTP_PLAIN;
	if ((unsigned char)data[0] != HANDSHAKE_RECORD)
		return peer_is_loopback(c) ? HTTP_PLAIN : HTTP_PLAIN_REFUSED;
	c->tls = http_tls_begin(c->server->tls);
	return c->tls ? HTTP_SECURE : HTTP_PLAIN_REFUSED;
}

/* ---- bytes in ---- */

/* What TLS itself has to say: a hello, an alert, a new key. Small, so the socket takes it. */
static bool secure_flush(struct http_connection *c)
{
	if (c->writing)
		return true; /* it goes with the rest */
	http_tls_take_output(c->tls, &c->sealed);
	uv_buf_t bytes = uv_buf_init(c->sealed.data, (unsigned)c->sealed.len);
	if (c->sealed.failed)
		return false;
	if (c->sealed.len == 0)
		return true;
	bool sent = uv_try_write((uv_stream_t *)&c->tcp, &bytes, 1) == (int)bytes.len;
	buf_finish(&c->sealed);
	return sent;
}

int http_secure_receive(struct http_connection *c, const char *data, size_t len)
{
	return http_tls_receive(c->tls, data, len);
}

ssize_t http_secure_read(struct http_connection *c, char *out, size_t size)
{
	ssize_t n = http_tls_read(c->tls, out, size);
	return secure_flush(c) ? n : -EPROTO;
}

/* ---- bytes out ---- */

/* Seals the next bytes of what is to be sent, many small pieces as one record. */
static int seal_record(struct http_connection *c, size_t *sealed)
{
	char gathered[RECORD_MAX];
	size_t used = 0;
	uv_buf_t *first = &c->unsealed[0];
	if (first->len >= RECORD_MAX) {
		int r = http_tls_write(c->tls, first->base, RECORD_MAX);
		first->base += RECORD_MAX;
		first->len -= RECORD_MAX;
		*sealed += RECORD_MAX;
		return r;
	}
	for (unsigned i = 0; i < c->unsealed_count; i++) {
		uv_buf_t *piece = &c->unsealed[i];
		size_t n = piece->len < RECORD_MAX - used ? piece->len : RECORD_MAX - used;
		memcpy(gathered + used, piece->base, n);
		used += n;
		piece->base += n;
		piece->len -= n;
	}
	*sealed += used;
	return http_tls_write(c->tls, gathered, used);
}

/* Drops the pieces that are sealed. */
static void forget_sealed(struct http_connection *c)
{
	unsigned done = 0;
	while (done < c->unsealed_count && c->unsealed[done].len == 0)
		done++;
	c->unsealed_count -= done;
	memmove(c->unsealed, c->unsealed + done, c->unsealed_count * sizeof *c->unsealed);
}

static int seal_slice(struct http_connection *c)
{
	size_t sealed = 0;
	int r = 0;
	forget_sealed(c);
	while (r == 0 && c->unsealed_count > 0 && sealed < SLICE) {
		r = seal_record(c, &sealed);
		forget_sealed(c);
	}
	http_tls_take_output(c->tls, &c->sealed);
	return r < 0 || c->sealed.failed ? -EPROTO : 0;
}

enum http_sent http_secure_go_on(struct http_connection *c)
{
	uv_stream_t *stream = (uv_stream_t *)&c->tcp;
	for (;;) {
		buf_finish(&c->sealed);
		if (seal_slice(c) < 0)
			return HTTP_BROKEN;
		if (c->sealed.len == 0)
			return HTTP_SENT;
		uv_buf_t bytes = uv_buf_init(c->sealed.data, (unsigned)c->sealed.len);
		int n = uv_try_write(stream, &bytes, 1);
		if (n < 0 && n != UV_EAGAIN)
			return HTTP_BROKEN;
		size_t sent = n < 0 ? 0 : (size_t)n;
		if (sent == c->sealed.len)
			continue;
		bytes = uv_buf_init(c->sealed.data + sent, (unsigned)(c->sealed.len - sent));
		return uv_write(&c->write, stream, &bytes, 1, c->written) < 0 ? HTTP_BROKEN
									      : HTTP_QUEUED;
	}
}

enum http_sent http_secure_send(struct http_connection *c, const uv_buf_t *bufs, unsigned count)
{
	assert(count <= HTTP_PIECES_MAX && !c->writing);
	memcpy(c->unsealed, bufs, count * sizeof *bufs);
	c->unsealed_count = count;
	return http_secure_go_on(c);
}

bool http_secure_put(struct http_connection *c, const char *data, size_t len)
{
	return http_tls_write(c->tls, data, len) == 0 && secure_flush(c);
}

void http_secure_end(struct http_connection *c)
{
	http_tls_say_end(c->tls);
	secure_flush(c);
}

/* ---- the server ---- */

void http_server_set_tls(struct http_server *s, struct http_tls_context *context)
{
	http_tls_context_destroy(s->tls);
	s->tls = context;
}

bool http_is_secure(const struct http_request *req)
{
	return req->connection->tls != NULL;
}
