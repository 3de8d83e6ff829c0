#include "box/sandbox/certificate.h"

#include <limits.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/trust_store.h"

/* The operator's, and a sandbox's own: both fit into a section. */
#define ENTRIES_MAX (TRUST_STORE_MAX / 2)

/* A key in the file is a mistake whose cost grows with every sandbox that gets a copy. */
static bool is_private(const char *pem, size_t len)
{
	static const char mark[] = "PRIVATE KEY-----";
	return memmem(pem, len, mark, sizeof mark - 1) != NULL;
}

/* As OpenSSL writes it: what else the text had is not passed on. */
static int certificate_append(X509 *certificate, struct buf *entries)
{
	BIO *out = BIO_new(BIO_s_mem());
	char *pem = NULL;
	int ok = out && PEM_write_bio_X509(out, certificate);
	long len = ok ? BIO_get_mem_data(out, &pem) : 0;
	if (len > 0)
		trust_store_append(entries, X509_subject_name_hash(certificate), pem, (size_t)len);
	BIO_free(out);
	return len > 0 ? 0 : -1;
}

static int certificates_take(BIO *in, struct buf *entries)
{
	int count = 0;
	X509 *certificate;
	while ((certificate = PEM_read_bio_X509(in, NULL, NULL, NULL)) != NULL) {
		int r = certificate_append(certificate, entries);
		X509_free(certificate);
		if (r < 0)
			return -1;
		count++;
	}
	return count;
}

/* How many there should be: what does not parse ends the reading. */
static int count_begins(const char *pem, size_t len)
{
	static const char mark[] = "-----BEGIN ";
	int count = 0;
	const char *at = pem, *end = pem + len;
	while ((at = memmem(at, (size_t)(end - at), mark, sizeof mark - 1)) != NULL) {
		at += sizeof mark - 1;
		count++;
	}
	return count;
}

int certificates_read(
	const char *pem, size_t len, const char *origin, struct buf *entries, struct error *e)
{
	size_t before = entries->len;
	if (is_private(pem, len))
		return error_set(e, ERROR_INVALID_REQUEST,
			"%s holds a private key: give a file with nothing but certificates",
			origin);
	/* Its configuration is about providers and engines, which nothing here needs. */
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	BIO *in = len > 0 && len <= INT_MAX ? BIO_new_mem_buf(pem, (int)len) : NULL;
	int count = in ? certificates_take(in, entries) : 0;
	BIO_free(in);
	bool all = count > 0 && count == count_begins(pem, len) && !entries->failed;
	if (all && entries->len <= ENTRIES_MAX)
		return count;
	entries->len = before;
	if (all)
		return error_set(e, ERROR_INVALID_REQUEST,
			"%s: the certificates are longer than %u bytes together", origin,
			ENTRIES_MAX);
	return error_set(e, ERROR_INVALID_REQUEST,
		count == 0 ? "%s holds no certificate in PEM"
			   : "%s holds something that is no certificate",
		origin);
}
