/*
 * Refused: anything but a GET of HTTP/1.1 without a body that has "upgrade" among its Connection
 * and "websocket" among its Upgrade tokens (426), versions other than 13 (426, with the right one),
 * and keys that are not 16 bytes in base64 or come twice (400). Extensions are not agreed to; of
 * the protocols the server's favourite among those that the client offers.
 */
#include "http/handshake.h"

#include <sha1.h>
#include <sodium.h>
#include <string.h>
#include <strings.h>

#define KEY_BYTES  16
#define KEY_LEN    24
#define DIGEST_LEN 20
#define ACCEPT_LEN sodium_base64_ENCODED_LEN(DIGEST_LEN, sodium_base64_VARIANT_ORIGINAL)

static int check_version(struct http_request *req, struct error *e);
static int check_key(const struct http_request *req, const char **key, struct error *e);
static void make_accept(const char *key, char out[ACCEPT_LEN]);
static const char *handshake_only(const struct http_request *req, const char *name);

int http_accept_websocket(struct http_request *req, const char *const *protocols,
	const char **protocol, struct error *e)
{
	const char *key;
	char accept[ACCEPT_LEN];
	if (!http_wants_upgrade(req, "websocket")) {
		http_add_header(req, "Upgrade", "websocket");
		return error_set(
			e, ERROR_UPGRADE_REQUIRED, "a WebSocket can be opened here, by a GET");
	}
	int r = check_version(req, e);
	if (r < 0)
		return r;
	r = check_key(req, &key, e);
	if (r < 0)
		return r;
	make_accept(key, accept);
	http_add_header(req, "Sec-WebSocket-Accept", accept);
	*protocol = NULL;
	for (; protocols && *protocols && !*protocol; protocols++)
		if (http_header_has_token(req, "Sec-WebSocket-Protocol", *protocols))
			*protocol = *protocols;
	if (*protocol)
		http_add_header(req, "Sec-WebSocket-Protocol", *protocol);
	return 0;
}

static int check_version(struct http_request *req, struct error *e)
{
	const char *version = handshake_only(req, "Sec-WebSocket-Version");
	if (version && strcmp(version, "13") == 0)
		return 0;
	http_add_header(req, "Upgrade", "websocket");
	http_add_header(req, "Sec-WebSocket-Version", "13");
	return error_set(e, ERROR_UPGRADE_REQUIRED, "only version 13 of WebSocket is spoken");
}

static int check_key(const struct http_request *req, const char **key, struct error *e)
{
	unsigned char bytes[KEY_BYTES];
	size_t len;
	*key = handshake_only(req, "Sec-WebSocket-Key");
	if (*key && strlen(*key) == KEY_LEN &&
		sodium_base642bin(bytes, sizeof bytes, *key, KEY_LEN, NULL, &len, NULL,
			sodium_base64_VARIANT_ORIGINAL) == 0 &&
		len == KEY_BYTES)
		return 0;
	return error_set(e, ERROR_INVALID_REQUEST, "Sec-WebSocket-Key is missing or malformed");
}

static void make_accept(const char *key, char out[ACCEPT_LEN])
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	unsigned char digest[DIGEST_LEN];
	SHA1_CTX sha;
	SHA1Init(&sha);
	SHA1Update(&sha, (const unsigned char *)key, KEY_LEN);
	SHA1Update(&sha, (const unsigned char *)guid, sizeof guid - 1);
	SHA1Final(digest, &sha);
	sodium_bin2base64(out, ACCEPT_LEN, digest, sizeof digest, sodium_base64_VARIANT_ORIGINAL);
}

/* The header's value if it is there once. */
static const char *handshake_only(const struct http_request *req, const char *name)
{
	const char *found = NULL, *key, *value;
	for (size_t i = 0; http_header_at(req, i, &key, &value); i++) {
		if (strcasecmp(key, name) != 0)
			continue;
		if (found)
			return NULL;
		found = value;
	}
	return found;
}
