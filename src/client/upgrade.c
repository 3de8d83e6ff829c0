/*
 * Upgrades, from the client's side: to a WebSocket by its opening handshake (RFC 6455, section
 * 4.1), or to another protocol, which needs none. A server that answers something else is read to
 * the end like any other, so that its reason is known.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sha1.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "client/failure.h"
#include "client/transport.h"

#define HEAD_MAX   (16u << 10)
#define NONCE_SIZE 25 /* 16 bytes in base64, and NUL */
#define PROOF_SIZE 29 /* 20 bytes */

static void make_nonce(char nonce[NONCE_SIZE])
{
	unsigned char random[16];
	randombytes_buf(random, sizeof random);
	sodium_bin2base64(nonce, NONCE_SIZE, random, sizeof random, sodium_base64_VARIANT_ORIGINAL);
}

/* Computes the proof that only a WebSocket server answers. */
static void make_proof(const char *nonce, char proof[PROOF_SIZE])
{
	static const char magic[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	unsigned char digest[SHA1_DIGEST_LENGTH];
	SHA1_CTX sha;
	SHA1Init(&sha);
	SHA1Update(&sha, (const unsigned char *)nonce, strlen(nonce));
	SHA1Update(&sha, (const unsigned char *)magic, sizeof magic - 1);
	SHA1Final(digest, &sha);
	sodium_bin2base64(proof, PROOF_SIZE, digest, sizeof digest, sodium_base64_VARIANT_ORIGINAL);
}

static bool is_websocket(const char *protocol)
{
	return strcmp(protocol, "websocket") == 0;
}

static int send_head(int fd, const struct transport_url *url, const char *target,
	const char *api_key, const char *protocol, const char *nonce)
{
	autobuf head = {0};
	buf_printf(&head, "GET %s%s HTTP/1.1\r\nHost: %s\r\n", url->prefix, target, url->authority);
	buf_append_str(&head, "User-Agent: libbunker/" BUNKER_VERSION "\r\n");
	if (api_key)
		buf_printf(&head, "Authorization: Bearer %s\r\n", api_key);
	buf_printf(&head, "Connection: Upgrade\r\nUpgrade: %s\r\n", protocol);
	if (is_websocket(protocol))
		buf_printf(&head, "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n", nonce);
	buf_append_str(&head, "\r\n");
	return head.failed ? -ENOMEM : client_transport_send(fd, head.data, head.len, 0);
}

/* Receives up to the empty line and nothing behind it. Returns 0, or -errno. */
static int receive_head(int fd, struct buf *out)
{
	while (out->len < HEAD_MAX) {
		char data[4096];
		size_t before = out->len;
		ssize_t n = recv(fd, data, sizeof data, MSG_PEEK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ECONNRESET;
		buf_append(out, data, (size_t)n);
		if (out->failed)
			return -ENOMEM;
		const char *end = memmem(out->data, out->len, "\r\n\r\n", 4);
		if (end)
			out->len = (size_t)(end - out->data) + 4;
		if (recv(fd, data, out->len - before, MSG_WAITALL) < 0)
			return -errno;
		if (end)
			return 0;
	}
	return -EMSGSIZE;
}

static bool has_proof(const struct buf *head, const char *proof)
{
	static const char name[] = "Sec-WebSocket-Accept:";
	const char *line = head->data, *stop = head->data + head->len;
	while (line < stop) {
		const char *newline = memchr(line, '\n', (size_t)(stop - line));
		if (!newline)
			break;
		size_t len = (size_t)(newline - line);
		if (len > sizeof name && strncasecmp(line, name, sizeof name - 1) == 0)
			return memmem(line, len, proof, strlen(proof)) != NULL;
		line = newline + 1;
	}
	return false;
}

static int upgrade_collect(void *arg, int status, const char *data, size_t len)
{
	struct buf *text = arg;
	(void)status;
	if (text->len + len > HEAD_MAX)
		return -1;
	buf_append(text, data, len);
	return 0;
}

/* No WebSocket: the whole answer, as of any other request. */
static int receive_refusal(int fd, const struct transport_url *url, const struct buf *begun,
	struct buf *text, int *status, struct bunker_error *e)
{
	struct response response;
	client_response_init(&response, upgrade_collect, text);
	int r = client_response_feed(&response, begun->data, begun->len, e);
	if (r == 0)
		r = client_transport_receive(fd, url, &response, e);
	*status = response.status;
	client_response_finish(&response);
	return r;
}

int client_transport_upgrade(const struct transport_url *url, const char *target,
	const char *api_key, const char *protocol, int *ret_fd, struct buf *refusal, int *status,
	struct bunker_error *e)
{
	char nonce[NONCE_SIZE], proof[PROOF_SIZE];
	autobuf head = {0};
	autoclose int fd = client_transport_connect(url, e);
	if (fd < 0)
		return -1;
	const int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* keys are sent one by one */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	make_nonce(nonce);
	make_proof(nonce, proof);
	int r = send_head(fd, url, target, api_key, protocol, nonce);
	if (r == 0)
		r = receive_head(fd, &head);
	if (r < 0)
		return client_fail(e, BUNKER_CONNECTION_LOST, "no answer from %s: %s",
			url->authority, strerror(-r));
	if (!head.data || strncmp(head.data, "HTTP/1.1 101", 12) != 0)
		return receive_refusal(fd, url, &head, refusal, status, e);
	if (is_websocket(protocol) && !has_proof(&head, proof))
		return client_fail(e, BUNKER_INVALID_RESPONSE,
			"the server's answer to the upgrade is not that of a WebSocket server");
	*status = 101;
	*ret_fd = take_fd(&fd);
	return 0;
}
