/*
 * A bunker-broker in a process of its own, with a test on all of its sides: root, the front,
 * egress, a sandbox's client and the host that it means.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "broker/broker.h"
#include "check.h"

#define BROKER_UID  65533
#define FRONT_UID   65535
#define SANDBOX     "aaaaaaaaaaaaaaaaaaaa"
#define HOST        "api.test"
#define TRUST_FILE  "/tmp/bunker-test-trust-XXXXXX"
#define PLACEHOLDER "bnkph_0123456789"

struct identity {
	EVP_PKEY *key;
	X509 *certificate;
};

/* ---- certificates ---- */

static void fixture_extend(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX context;
	X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	CHECK(extension && X509_add_ext(x, extension, -1) == 1);
	X509_EXTENSION_free(extension);
}

/* An authority of its own if `issuer` is NULL, else a certificate for the name. */
static struct identity fixture_identity(const char *name, const struct identity *issuer)
{
	static long serial = 1;
	char san[300];
	struct identity id = {EVP_EC_gen("P-256"), X509_new()};
	const struct identity *by = issuer ? issuer : &id;
	X509_set_version(id.certificate, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(id.certificate), serial++);
	X509_gmtime_adj(X509_getm_notBefore(id.certificate), -60);
	X509_gmtime_adj(X509_getm_notAfter(id.certificate), 3600);
	X509_NAME_add_entry_by_NID(X509_get_subject_name(id.certificate), NID_commonName,
		MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0);
	X509_set_pubkey(id.certificate, id.key);
	X509_set_issuer_name(id.certificate, X509_get_subject_name(by->certificate));
	fixture_extend(id.certificate, by->certificate, NID_basic_constraints,
		issuer ? "critical,CA:FALSE" : "critical,CA:TRUE");
	fixture_extend(id.certificate, by->certificate, NID_subject_key_identifier, "hash");
	snprintf(san, sizeof san, "DNS:%s", name);
	if (issuer)
		fixture_extend(id.certificate, by->certificate, NID_subject_alt_name, san);
	CHECK(X509_sign(id.certificate, by->key, EVP_sha256()) > 0);
	return id;
}

static void fixture_drop_identity(struct identity *id)
{
	EVP_PKEY_free(id->key);
	X509_free(id->certificate);
}

/* ---- entries ---- */

static void fixture_entry(
	struct buf *b, enum broker_entry_kind kind, uint16_t flags, const void *data, size_t len)
{
	const struct broker_entry entry = {(uint16_t)kind, flags, (uint32_t)len};
	buf_append(b, &entry, sizeof entry);
	buf_append(b, data, len);
}

static void fixture_pair(struct buf *b, enum broker_entry_kind kind, uint16_t flags,
	const char *name, const char *value)
{
	autobuf texts = {0};
	buf_append(&texts, name, strlen(name) + 1);
	buf_append(&texts, value, strlen(value) + 1);
	fixture_entry(b, kind, flags, texts.data, texts.len);
}

static void fixture_host(struct buf *b, const char *name)
{
	fixture_entry(b, BROKER_HOST, 0, name, strlen(name) + 1);
}

static void fixture_authority(struct buf *b, const struct identity *ca)
{
	unsigned char *key = NULL, *certificate = NULL;
	PKCS8_PRIV_KEY_INFO *info = EVP_PKEY2PKCS8(ca->key);
	int key_len = i2d_PKCS8_PRIV_KEY_INFO(info, &key);
	int len = i2d_X509(ca->certificate, &certificate);
	fixture_entry(b, BROKER_CA_KEY, 0, key, (size_t)key_len);
	fixture_entry(b, BROKER_CA, 0, certificate, (size_t)len);
	PKCS8_PRIV_KEY_INFO_free(info);
	OPENSSL_free(key);
	OPENSSL_free(certificate);
}

/* ---- the process ---- */

struct fixture {
	struct identity web, box; /* authorities: of the internet, of the sandbox */
	char trust[sizeof TRUST_FILE], socket[64];
	pid_t pid;
	int root, front, egress;
	uint64_t number;
};

static int fixture_connect(const struct fixture *f, uid_t uid)
{
	const struct timeval patience = {.tv_sec = 10};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memcpy(address.sun_path, f->socket, sizeof f->socket);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	CHECK(seteuid(uid) == 0);
	int r = connect(fd, (struct sockaddr *)&address, sizeof address);
	CHECK(seteuid(0) == 0 && r == 0);
	return fd;
}

static void fixture_trust(struct fixture *f)
{
	memcpy(f->trust, TRUST_FILE, sizeof TRUST_FILE);
	int fd = mkstemp(f->trust);
	FILE *file = fdopen(fd, "w");
	PEM_write_X509(file, f->web.certificate);
	fclose(file);
}

static int fixture_listen(struct fixture *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(f->socket, sizeof f->socket, "%s.sock", f->trust);
	memcpy(address.sun_path, f->socket, sizeof f->socket);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
	CHECK(chmod(f->socket, 0666) == 0 && listen(fd, 8) == 0);
	return fd;
}

static void fixture_say(int fd, uint32_t op, const char *id)
{
	struct broker_head head = {.op = op};
	memcpy(head.id, id, strlen(id));
	CHECK(send(fd, &head, sizeof head, MSG_NOSIGNAL) > 0);
}

static void fixture_start(struct fixture *f)
{
	int pair[2];
	*f = (struct fixture){
		.web = fixture_identity("web", NULL), .box = fixture_identity("box", NULL)};
	fixture_trust(f);
	int listener = fixture_listen(f);
	f->pid = fork();
	if (f->pid == 0) {
		char uid[16];
		snprintf(uid, sizeof uid, "%d", BROKER_UID);
		char *argv[] = {(char *)BROKER_NAME, uid, (char *)"0", f->trust, NULL};
		listener = fcntl(listener, F_DUPFD, 4);
		dup2(listener, 3);
		close_range(4, ~0u, 0);
		_exit(broker_main(4, argv));
	}
	close(listener);
	f->root = fixture_connect(f, 0);
	f->front = fixture_connect(f, FRONT_UID);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	const struct timeval patience = {.tv_sec = 10};
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	const struct broker_head head = {.op = BROKER_EGRESS};
	CHECK(fd_send(f->root, &head, sizeof head, pair[1], 0) == 0);
	close(pair[1]);
	f->egress = pair[0];
}

static void fixture_stop(struct fixture *f)
{
	int status = 0;
	CHECK(waitpid(f->pid, &status, WNOHANG) == 0); /* nothing has ended it */
	kill(f->pid, SIGKILL);
	waitpid(f->pid, &status, 0);
	close(f->root);
	close(f->front);
	close(f->egress);
	unlink(f->trust);
	unlink(f->socket);
	fixture_drop_identity(&f->web);
	fixture_drop_identity(&f->box);
}

/* In parts of 1,000 bytes. Returns false if the broker did not take them. */
static bool fixture_tell(struct fixture *f, const char *id, const struct buf *entries)
{
	struct broker_head done;
	for (size_t at = 0; at < entries->len || at == 0; at += 1000) {
		autobuf message = {0};
		size_t left = entries->len - at;
		struct broker_sandbox part = {.head = {.op = BROKER_SANDBOX},
			.entries_size = (uint32_t)entries->len,
			.part_at = (uint32_t)at,
			.part_size = (uint32_t)(left < 1000 ? left : 1000)};
		memcpy(part.head.id, id, ID_LEN);
		part.head.sequence = at + part.part_size == entries->len ? 7 : 0;
		buf_append(&message, &part, sizeof part);
		buf_append(&message, entries->data + at, part.part_size);
		if (send(f->front, message.data, message.len, MSG_NOSIGNAL) < 0)
			return false;
	}
	return recv(f->front, &done, sizeof done, 0) == (ssize_t)sizeof done &&
	       done.op == BROKER_DONE && done.sequence == 7;
}

/* ---- both ends of a connection ---- */

/* One end, with TLS or without; reading what is not there in ten seconds fails the test. */
struct end {
	int fd;
	SSL *ssl;
	SSL_CTX *context;
};

static void end_close(struct end *e)
{
	if (e->ssl)
		SSL_shutdown(e->ssl);
	SSL_free(e->ssl);
	SSL_CTX_free(e->context);
	if (e->fd >= 0)
		close(e->fd);
	*e = (struct end){.fd = -1};
}

static ssize_t end_read(struct end *e, void *to, size_t len)
{
	return e->ssl ? SSL_read(e->ssl, to, (int)len) : recv(e->fd, to, len, 0);
}

static void end_write(struct end *e, const void *from, size_t len)
{
	while (len > 0) {
		ssize_t n = e->ssl ? SSL_write(e->ssl, from, (int)len)
				   : send(e->fd, from, len, MSG_NOSIGNAL);
		if (n <= 0)
			return;
		from = (const char *)from + n;
		len -= (size_t)n;
	}
}

static void end_say(struct end *e, const char *text)
{
	end_write(e, text, strlen(text));
}

/* Appends up to what ends with `until`, or to the end of the data if that is NULL. */
static void end_hear(struct end *e, struct buf *out, const char *until)
{
	char c;
	size_t len = until ? strlen(until) : 0;
	while (end_read(e, &c, 1) == 1) {
		buf_append_char(out, c);
		if (len && out->len >= len && memcmp(out->data + out->len - len, until, len) == 0)
			break;
	}
	buf_append_char(out, '\0');
	out->len--;
}

/* Brings a connection; the sandbox's end and the host's are returned. */
static void fixture_open(
	struct fixture *f, const char *id, const char *host, bool is_tls, struct end ends[2])
{
	const struct timeval patience = {.tv_sec = 10};
	struct broker_connection c = {.head = {.op = BROKER_CONNECTION},
		.number = ++f->number,
		.port = 443,
		.is_tls = is_tls};
	int inner[2], outer[2];
	memcpy(c.head.id, id, ID_LEN);
	snprintf(c.host, sizeof c.host, "%s", host);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, inner) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, outer) == 0);
	const int fds[] = {inner[1], outer[1]};
	for (int i = 0; i < 2; i++) {
		fcntl(fds[i], F_SETFL, O_NONBLOCK);
		ends[i] = (struct end){.fd = i ? outer[0] : inner[0]};
		setsockopt(ends[i].fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	}
	CHECK(fd_send_many(f->egress, &c, sizeof c, fds, 2, 0) == 0);
	close(inner[1]);
	close(outer[1]);
}

/* The host's end of TLS; its handshake is the thread's that serves it. */
static void end_serve_tls(struct end *e, const struct identity *id)
{
	e->context = SSL_CTX_new(TLS_server_method());
	SSL_CTX_use_certificate(e->context, id->certificate);
	SSL_CTX_use_PrivateKey(e->context, id->key);
	e->ssl = SSL_new(e->context);
	SSL_set_fd(e->ssl, e->fd);
}

/* The sandbox's end of TLS, which trusts its own authority alone. Returns whether it got through.
 */
static bool end_ask_tls(struct end *e, const char *host, const struct identity *trusted)
{
	e->context = SSL_CTX_new(TLS_client_method());
	X509_STORE_add_cert(SSL_CTX_get_cert_store(e->context), trusted->certificate);
	e->ssl = SSL_new(e->context);
	SSL_set_fd(e->ssl, e->fd);
	SSL_set_verify(e->ssl, SSL_VERIFY_PEER, NULL);
	SSL_set_tlsext_host_name(e->ssl, host);
	SSL_set1_host(e->ssl, host);
	return SSL_connect(e->ssl) == 1;
}
