#include "client/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/failure.h"

#define HANDSHAKE_S 10
#define PIECE       (64 << 10)

/* ---- handshake ---- */

static int tls_fail(SSL *ssl, const struct transport_url *url, struct bunker_error *e)
{
	long verified = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());
	if (verified != X509_V_OK)
		reason = X509_verify_cert_error_string(verified);
	ERR_clear_error();
	return client_fail(e, BUNKER_TLS_FAILED, "TLS with %s failed: %s%s", url->authority,
		reason ? reason : "the server ended the connection",
		verified == X509_V_OK
			? ""
			: "; SSL_CERT_FILE names a file with the authority to be trusted");
}

/* An address is compared with the addresses that a certificate has, a name with its names. */
static bool tls_expect_host(SSL *ssl, const char *host)
{
	uint8_t address[16];
	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

static SSL *tls_new(const char *host)
{
	static const unsigned char protocol[] = "\x08http/1.1";
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	SSL *ssl = NULL;
	if (context && SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
		SSL_CTX_set_default_verify_paths(context) == 1)
		ssl = SSL_new(context);
	SSL_CTX_free(context); /* `ssl` keeps it */
	if (!ssl)
		return NULL;
	SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
	SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	if (tls_expect_host(ssl, host) &&
		SSL_set_alpn_protos(ssl, protocol, sizeof protocol - 1) == 0)
		return ssl;
	SSL_free(ssl);
	return NULL;
}

/* ---- relay ---- */

/* Bytes on their way in one direction. */
struct piece {
	char data[PIECE];
	size_t at, end;
	bool ended; /* nothing more will come */
};

struct relay {
	SSL *ssl;
	int tcp, plain;
	bool ssl_wants_write;
	struct piece up, down;
};

static void relay_free(struct relay *r)
{
	SSL_free(r->ssl);
	close(r->tcp);
	close(r->plain);
	free(r);
}

/* Returns false when the connection is of no use any more. */
static bool relay_settle(struct relay *r, int result)
{
	int error = SSL_get_error(r->ssl, result);
	r->ssl_wants_write |= error == SSL_ERROR_WANT_WRITE;
	return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

static bool piece_is_empty(const struct piece *p)
{
	return p->at == p->end;
}

static bool relay_up(struct relay *r)
{
	struct piece *p = &r->up;
	if (piece_is_empty(p) && !p->ended) {
		ssize_t n = recv(r->plain, p->data, PIECE, MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		p->at = 0;
		p->end = n > 0 ? (size_t)n : 0;
		p->ended = n == 0;
		if (p->ended)
			SSL_shutdown(r->ssl);
	}
	while (!piece_is_empty(p)) {
		size_t n = 0;
		int result = SSL_write_ex(r->ssl, p->data + p->at, p->end - p->at, &n);
		p->at += n;
		if (result != 1)
			return relay_settle(r, result);
	}
	return true;
}

static bool relay_down(struct relay *r)
{
	struct piece *p = &r->down;
	if (piece_is_empty(p) && !p->ended) {
		size_t n = 0;
		int result = SSL_read_ex(r->ssl, p->data, PIECE, &n);
		p->at = 0;
		p->end = n;
		p->ended = result != 1 && !relay_settle(r, result);
		if (p->ended)
			shutdown(r->plain, SHUT_WR);
	}
	while (!piece_is_empty(p)) {
		ssize_t n = send(
			r->plain, p->data + p->at, p->end - p->at, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		p->at += (size_t)n;
	}
	return true;
}

static void relay_wait(struct relay *r)
{
	bool down_waits = !piece_is_empty(&r->down), up_waits = !piece_is_empty(&r->up);
	struct pollfd p[] = {{.fd = r->plain}, {.fd = r->tcp}};
	if (!up_waits && !r->up.ended)
		p[0].events |= POLLIN;
	if (down_waits)
		p[0].events |= POLLOUT;
	else
		p[1].events |= POLLIN;
	if (up_waits || r->ssl_wants_write)
		p[1].events |= POLLOUT;
	r->ssl_wants_write = false;
	if (!down_waits && SSL_pending(r->ssl) > 0)
		return;
	poll(p, ARRAY_LEN(p), -1);
	/* Nobody holds the other end. */
	if (p[0].revents & (POLLHUP | POLLERR) && r->up.ended)
		r->down.ended = true;
}

static void *relay_run(void *arg)
{
	struct relay *r = arg;
	while (relay_up(r) && relay_down(r) && !(r->down.ended && piece_is_empty(&r->down)))
		relay_wait(r);
	relay_free(r);
	return NULL;
}

/* Signals are for the threads of the caller. */
static int relay_start(struct relay *r)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&thread, &attributes, relay_run, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -error;
}

/* ---- both ---- */

static int tls_relay(SSL *ssl, int fd, struct bunker_error *e)
{
	const struct timeval none = {0};
	struct relay *r = calloc(1, sizeof *r);
	int pair[2] = {-1, -1};
	if (!r || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ||
		fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
		free(r);
		SSL_free(ssl);
		close(fd);
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "TLS: %s", strerror(errno));
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
	r->ssl = ssl;
	r->tcp = fd;
	r->plain = pair[0];
	int error = relay_start(r);
	if (error == 0)
		return pair[1];
	relay_free(r);
	close(pair[1]);
	return client_fail(e, BUNKER_OUT_OF_MEMORY, "TLS: %s", strerror(-error));
}

/* OpenSSL writes with write(2): a server that is gone must not end the caller. */
static bool tls_connect(SSL *ssl)
{
	const struct timespec at_once = {0};
	sigset_t pipe_signal, before;
	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
	bool connected = SSL_connect(ssl) == 1;
	if (!sigismember(&before, SIGPIPE))
		sigtimedwait(&pipe_signal, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return connected;
}

int client_tls_begin(int fd, const struct transport_url *url, struct bunker_error *e)
{
	const struct timeval patience = {.tv_sec = HANDSHAKE_S};
	SSL *ssl = tls_new(url->host);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	if (ssl && SSL_set_fd(ssl, fd) == 1 && tls_connect(ssl))
		return tls_relay(ssl, fd, e);
	int r = tls_fail(ssl, url, e);
	SSL_free(ssl);
	close(fd);
	return r;
}
