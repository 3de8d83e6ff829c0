#include "http/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"

#define CHAIN_MAX 16 /* certificates */

struct http_tls_context {
	SSL_CTX *ssl;
};

struct http_tls {
	SSL *ssl;
	BIO *in, *out; /* of `ssl` */
	bool has_more;
};

/* ---- certificates ---- */

/* The reason that OpenSSL gave last; its queue is empty afterwards. */
static const char *tls_reason(void)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());
	ERR_clear_error();
	return reason ? reason : "unknown reason";
}

/* Keys that ask for a passphrase would ask a terminal. */
static int tls_refuse_passphrase(char *buf, int size, int rwflag, void *arg)
{
	(void)buf;
	(void)size;
	(void)rwflag;
	(void)arg;
	return -1;
}

static int tls_use_chain(SSL_CTX *ssl, BIO *pem)
{
	X509 *certificate = PEM_read_bio_X509_AUX(pem, NULL, tls_refuse_passphrase, NULL);
	int used = certificate ? SSL_CTX_use_certificate(ssl, certificate) : 0;
	X509_free(certificate);
	for (int i = 0; used == 1 && i < CHAIN_MAX; i++) {
		certificate = PEM_read_bio_X509(pem, NULL, tls_refuse_passphrase, NULL);
		if (!certificate) {
			ERR_clear_error(); /* the end of the file is an error to it */
			return 0;
		}
		used = SSL_CTX_add0_chain_cert(ssl, certificate) == 1;
		if (!used)
			X509_free(certificate);
	}
	return -EINVAL;
}

static int tls_use_key(SSL_CTX *ssl, BIO *pem)
{
	EVP_PKEY *key = PEM_read_bio_PrivateKey(pem, NULL, tls_refuse_passphrase, NULL);
	int used = key ? SSL_CTX_use_PrivateKey(ssl, key) : 0;
	EVP_PKEY_free(key);
	return used == 1 ? 0 : -EINVAL;
}

static int tls_load(SSL_CTX *ssl, const char *chain, size_t chain_len, const char *key,
	size_t key_len, struct error *e)
{
	BIO *chain_pem = BIO_new_mem_buf(chain, (int)chain_len);
	BIO *key_pem = BIO_new_mem_buf(key, (int)key_len);
	const char *failed = NULL;
	if (!chain_pem || tls_use_chain(ssl, chain_pem) < 0)
		failed = "the certificate cannot be used";
	else if (!key_pem || tls_use_key(ssl, key_pem) < 0)
		failed = "the certificate's key cannot be used";
	else if (SSL_CTX_check_private_key(ssl) != 1)
		failed = "the key is not that of the certificate";
	BIO_free(chain_pem);
	BIO_free(key_pem);
	return failed ? error_set(e, ERROR_INVALID_REQUEST, "%s: %s", failed, tls_reason()) : 0;
}

/* A client that offers other protocols only would not understand us. */
static int tls_choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
	const unsigned char *in, unsigned in_len, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";
	(void)ssl;
	(void)arg;
	unsigned char *chosen;
	if (SSL_select_next_proto(&chosen, out_len, ours, sizeof ours - 1, in, in_len) !=
		OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static int tls_configure(SSL_CTX *ssl)
{
	SSL_CTX_set_options(ssl,
		SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_alpn_select_cb(ssl, tls_choose_protocol, NULL);
	return SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) == 1 ? 0 : -ENOTSUP;
}

int http_tls_context_create(struct http_tls_context **ret, const char *chain, size_t chain_len,
	const char *key, size_t key_len, struct error *e)
{
	SSL_CTX *ssl = SSL_CTX_new(TLS_server_method());
	if (!ssl || tls_configure(ssl) < 0) {
		SSL_CTX_free(ssl);
		return error_set(e, ERROR_INTERNAL, "OpenSSL cannot be set up: %s", tls_reason());
	}
	if (tls_load(ssl, chain, chain_len, key, key_len, e) < 0) {
		SSL_CTX_free(ssl);
		return -1;
	}
	struct http_tls_context *context = mem_new(sizeof *context);
	context->ssl = ssl;
	*ret = context;
	return 0;
}

void http_tls_context_destroy(struct http_tls_context *context)
{
	if (!context)
		return;
	SSL_CTX_free(context->ssl);
	free(context);
}

/* ---- one connection ---- */

struct http_tls *http_tls_begin(const struct http_tls_context *context)
{
	SSL *ssl = SSL_new(context->ssl);
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	if (!ssl || !in || !out) {
		SSL_free(ssl);
		BIO_free(in);
		BIO_free(out);
		return NULL;
	}
	BIO_set_mem_eof_return(in, -1);
	SSL_set_bio(ssl, in, out);
	SSL_set_accept_state(ssl);
	struct http_tls *t = mem_new(sizeof *t);
	*t = (struct http_tls){.ssl = ssl, .in = in, .out = out};
	return t;
}

void http_tls_end(struct http_tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	free(t);
}

int http_tls_receive(struct http_tls *t, const char *data, size_t len)
{
	t->has_more = true;
	return BIO_write(t->in, data, (int)len) == (int)len ? 0 : -ENOMEM;
}

ssize_t http_tls_read(struct http_tls *t, char *out, size_t size)
{
	size_t used = 0, n;
	int error = SSL_ERROR_NONE;
	ERR_clear_error();
	while (used < size && error == SSL_ERROR_NONE) {
		int r = SSL_read_ex(t->ssl, out + used, size - used, &n);
		if (r == 1)
			used += n;
		else
			error = SSL_get_error(t->ssl, r);
	}
	/* An end that follows bytes is told by the next read. */
	t->has_more = used == size || (used > 0 && error != SSL_ERROR_WANT_READ);
	if (used > 0 || error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return (ssize_t)used;
	t->has_more = false;
	return error == SSL_ERROR_ZERO_RETURN ? -ENODATA : -EPROTO;
}

bool http_tls_has_more(const struct http_tls *t)
{
	return t->has_more;
}

int http_tls_write(struct http_tls *t, const char *data, size_t len)
{
	size_t n;
	ERR_clear_error();
	/* Memory takes all of it. */
	return len == 0 || (SSL_write_ex(t->ssl, data, len, &n) == 1 && n == len) ? 0 : -EPROTO;
}

void http_tls_say_end(struct http_tls *t)
{
	ERR_clear_error();
	if (SSL_is_init_finished(t->ssl))
		SSL_shutdown(t->ssl);
}

void http_tls_take_output(struct http_tls *t, struct buf *out)
{
	char *data;
	long len = BIO_get_mem_data(t->out, &data);
	if (len <= 0)
		return;
	buf_append(out, data, (size_t)len);
	BIO_reset(t->out);
}
