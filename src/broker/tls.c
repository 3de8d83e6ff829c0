#include "broker/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

static const unsigned char http[] = "\x08http/1.1";
static SSL_CTX *server_context, *client_context;

/* ---- towards sandboxes ---- */

static int tls_check_name(SSL *ssl, int *alert, void *arg)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	const char *host = SSL_get_app_data(ssl);
	size_t len = name ? strlen(name) : 0;
	(void)arg;
	if (len > 0 && name[len - 1] == '.')
		len--;
	if (len > 0 && len == strlen(host) && strncasecmp(name, host, len) == 0)
		return SSL_TLSEXT_ERR_OK;
	*alert = SSL_AD_UNRECOGNIZED_NAME;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* A client that offers HTTP/2 alone gets no other protocol under its name. */
static int tls_select_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
	const unsigned char *in, unsigned in_len, void *arg)
{
	unsigned char *selected;
	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto(&selected, out_len, http, sizeof http - 1, in, in_len) !=
		OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = selected;
	return SSL_TLSEXT_ERR_OK;
}

/* ---- contexts ---- */

static SSL_CTX *tls_new_context(const SSL_METHOD *method)
{
	SSL_CTX *c = SSL_CTX_new(method);
	if (!c)
		return NULL;
	SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
	SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				    SSL_MODE_RELEASE_BUFFERS);
	return c;
}

/* Returns how many the context trusts. */
static int tls_load_trusted(SSL_CTX *c, const char *file)
{
	if (SSL_CTX_load_verify_file(c, file) != 1)
		return -ENOENT;
	return sk_X509_OBJECT_num(X509_STORE_get0_objects(SSL_CTX_get_cert_store(c)));
}

/* Without the host's configuration of OpenSSL, which is a file, too. */
static void tls_start_library(void)
{
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_LOAD_SSL_STRINGS |
				 OPENSSL_INIT_LOAD_CRYPTO_STRINGS,
		NULL);
}

int tls_count_trusted(const char *trust_file)
{
	tls_start_library();
	SSL_CTX *c = tls_new_context(TLS_client_method());
	int count = c ? tls_load_trusted(c, trust_file) : -ENOMEM;
	SSL_CTX_free(c);
	ERR_clear_error();
	return count;
}

int tls_open(const char *trust_file)
{
	tls_start_library();
	server_context = tls_new_context(TLS_server_method());
	client_context = tls_new_context(TLS_client_method());
	if (!server_context || !client_context)
		return -ENOMEM;
	SSL_CTX_set_num_tickets(server_context, 0);
	SSL_CTX_set_tlsext_servername_callback(server_context, tls_check_name);
	SSL_CTX_set_alpn_select_cb(server_context, tls_select_protocol, NULL);
	SSL_CTX_set_verify(client_context, SSL_VERIFY_PEER, NULL);
	if (SSL_CTX_set_alpn_protos(client_context, http, sizeof http - 1) != 0)
		return -EINVAL;
	/* It runs without one: every host is refused then, and says why. */
	if (tls_load_trusted(client_context, trust_file) < 0)
		log_error("the trust store cannot be read", "file", trust_file);
	ERR_clear_error();
	return 0;
}

/* ---- connections ---- */

SSL *tls_new_server(int fd, const char *host)
{
	SSL *ssl = SSL_new(server_context);
	if (!ssl || SSL_set_fd(ssl, fd) != 1) {
		SSL_free(ssl);
		return NULL;
	}
	SSL_set_app_data(ssl, (void *)(uintptr_t)host);
	SSL_set_accept_state(ssl);
	return ssl;
}

SSL *tls_new_client(int fd, const char *host)
{
	SSL *ssl = SSL_new(client_context);
	if (!ssl || SSL_set_fd(ssl, fd) != 1 || SSL_set_tlsext_host_name(ssl, host) != 1 ||
		SSL_set1_host(ssl, host) != 1) {
		SSL_free(ssl);
		return NULL;
	}
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	SSL_set_connect_state(ssl);
	return ssl;
}

void tls_describe_failure(const SSL *ssl, char *out, size_t size)
{
	long verified = SSL_get_verify_result(ssl);
	const char *reason = ERR_reason_error_string(ERR_peek_error());
	if (verified != X509_V_OK)
		snprintf(out, size, "its certificate was not accepted: %s",
			X509_verify_cert_error_string(verified));
	else
		snprintf(out, size, "TLS failed: %s", reason ? reason : "the connection ended");
}
