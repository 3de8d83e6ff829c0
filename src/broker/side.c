#include "broker/side.h"

#include <errno.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include "base/cleanup.h"

/* What a call of OpenSSL that returned `r` means here. */
static ssize_t side_result(const struct side *s, int r)
{
	int error = SSL_get_error(s->ssl, r);
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	if (error == SSL_ERROR_ZERO_RETURN)
		return 0;
	if (error == SSL_ERROR_SYSCALL)
		return errno ? -errno : -EPIPE;
	return ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING ? -EPIPE
										      : -EPROTO;
}

static void side_forget_errors(void)
{
	ERR_clear_error();
	errno = 0;
}

bool side_is_greeted(const struct side *s)
{
	return s->is_greeted || !s->ssl;
}

int side_greet(struct side *s)
{
	if (side_is_greeted(s))
		return 1;
	side_forget_errors();
	int r = SSL_do_handshake(s->ssl);
	s->is_greeted = r == 1;
	if (s->is_greeted)
		return 1;
	return side_result(s, r) == -EAGAIN ? 0 : -EPROTO;
}

ssize_t side_read(struct side *s, void *to, size_t len)
{
	if (s->ssl) {
		side_forget_errors();
		int r = SSL_read(s->ssl, to, (int)len);
		return r > 0 ? r : side_result(s, r);
	}
	ssize_t n = recv(s->source.fd, to, len, MSG_DONTWAIT);
	if (n > 0)
		s->taken += (uint64_t)n;
	return n < 0 ? (errno == EINTR ? -EAGAIN : -errno) : n;
}

ssize_t side_write(struct side *s, const void *from, size_t len)
{
	if (s->ssl) {
		side_forget_errors();
		int r = SSL_write(s->ssl, from, (int)len);
		if (r > 0)
			return r;
		ssize_t result = side_result(s, r);
		return result == 0 ? -EPIPE : result;
	}
	ssize_t n = send(s->source.fd, from, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0)
		s->given += (uint64_t)n;
	return n < 0 ? (errno == EINTR ? -EAGAIN : -errno) : n;
}

void side_shut(struct side *s, bool in_order)
{
	if (s->is_shut)
		return;
	s->is_shut = true;
	side_forget_errors();
	if (s->ssl && s->is_greeted && in_order)
		SSL_shutdown(s->ssl);
	shutdown(s->source.fd, SHUT_WR);
}

/* The socket is egress's, too: it ends when both have closed it. */
void side_close(struct side *s, bool in_order)
{
	const struct linger value = {.l_onoff = !in_order};
	if (s->source.fd >= 0)
		setsockopt(s->source.fd, SOL_SOCKET, SO_LINGER, &value, sizeof value);
	SSL_free(take_ptr(s->ssl));
	loop_remove(&s->source);
}

uint64_t side_given(const struct side *s)
{
	return s->ssl ? BIO_number_written(SSL_get_wbio(s->ssl)) : s->given;
}

uint64_t side_taken(const struct side *s)
{
	return s->ssl ? BIO_number_read(SSL_get_rbio(s->ssl)) : s->taken;
}
