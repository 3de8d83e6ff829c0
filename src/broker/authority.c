#include "broker/authority.h"

#include <errno.h>
#include <openssl/ec.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/id.h"
#include "base/mem.h"
#include "stream/loop.h"
#include "stream/request.h"

#define LEAF_S          (7 * 24 * 3600)
#define LEAF_RENEW_MS   (INT64_C(24) * 3600 * 1000) /* then another one is made */
#define CLOCK_SKEW_S    3600
#define COMMON_NAME_MAX 64

struct leaf {
	struct leaf *prev, *next;
	char host[REQUEST_HOST_SIZE];
	X509 *certificate;
	int64_t made_ms;
};

struct authority {
	EVP_PKEY *key, *leaf_key;
	X509 *certificate;
	struct leaf *leaves; /* the one that was used last comes first */
	unsigned leaf_count;
};

/* ---- the certificate of a host ---- */

static bool leaf_add_extension(X509 *leaf, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX context;
	X509V3_set_ctx(&context, issuer, leaf, NULL, NULL, 0);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	bool ok = extension && X509_add_ext(leaf, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return ok;
}

/* The host's name goes in as it is, past the language that describes other extensions. */
static bool leaf_add_name(X509 *leaf, const char *host)
{
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_IA5STRING *text = ASN1_IA5STRING_new();
	bool ok = names && name && text && ASN1_STRING_set(text, host, -1) == 1;
	if (ok) {
		GENERAL_NAME_set0_value(name, GEN_DNS, text);
		text = NULL;
		ok = sk_GENERAL_NAME_push(names, name) > 0;
		name = ok ? NULL : name;
	}
	ok = ok && X509_add1_ext_i2d(leaf, NID_subject_alt_name, names, 0, 0) == 1;
	ASN1_IA5STRING_free(text);
	GENERAL_NAME_free(name);
	GENERAL_NAMES_free(names);
	return ok;
}

static bool leaf_set_serial(X509 *leaf)
{
	uint8_t bytes[16];
	id_random(bytes, sizeof bytes);
	bytes[0] = (uint8_t)((bytes[0] & 0x7f) | 0x40); /* positive, and never short */
	BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
	bool ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(leaf)) != NULL;
	BN_free(number);
	return ok;
}

/* Not longer than the authority itself. */
static bool leaf_set_times(X509 *leaf, const X509 *issuer)
{
	if (!X509_gmtime_adj(X509_getm_notBefore(leaf), -CLOCK_SKEW_S) ||
		!X509_gmtime_adj(X509_getm_notAfter(leaf), LEAF_S))
		return false;
	return ASN1_TIME_compare(X509_get0_notAfter(leaf), X509_get0_notAfter(issuer)) <= 0 ||
	       X509_set1_notAfter(leaf, X509_get0_notAfter(issuer)) == 1;
}

static bool leaf_set_subject(X509 *leaf, const char *host)
{
	return strlen(host) > COMMON_NAME_MAX ||
	       X509_NAME_add_entry_by_NID(X509_get_subject_name(leaf), NID_commonName,
		       MBSTRING_UTF8, (const unsigned char *)host, -1, -1, 0) == 1;
}

static X509 *leaf_sign(const struct authority *a, const char *host)
{
	X509 *leaf = X509_new(), *issuer = a->certificate;
	if (leaf && X509_set_version(leaf, X509_VERSION_3) == 1 && leaf_set_serial(leaf) &&
		leaf_set_times(leaf, issuer) && leaf_set_subject(leaf, host) &&
		X509_set_issuer_name(leaf, X509_get_subject_name(issuer)) == 1 &&
		X509_set_pubkey(leaf, a->leaf_key) == 1 && leaf_add_name(leaf, host) &&
		leaf_add_extension(leaf, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
		leaf_add_extension(leaf, issuer, NID_key_usage, "critical,digitalSignature") &&
		leaf_add_extension(leaf, issuer, NID_ext_key_usage, "serverAuth") &&
		leaf_add_extension(leaf, issuer, NID_subject_key_identifier, "hash") &&
		leaf_add_extension(leaf, issuer, NID_authority_key_identifier, "keyid,issuer") &&
		X509_sign(leaf, a->key, EVP_sha256()) > 0)
		return leaf;
	X509_free(leaf);
	return NULL;
}

/* ---- those that are kept ---- */

static void leaf_drop(struct authority *a, struct leaf *l)
{
	DL_DELETE(a->leaves, l);
	a->leaf_count--;
	X509_free(l->certificate);
	free(l);
}

static struct leaf *leaf_find(struct authority *a, const char *host)
{
	struct leaf *l;
	DL_FOREACH (a->leaves, l)
		if (strcmp(l->host, host) == 0)
			break;
	if (l && loop.now_ms - l->made_ms > LEAF_RENEW_MS) {
		leaf_drop(a, l);
		l = NULL;
	}
	if (l) {
		DL_DELETE(a->leaves, l);
		DL_PREPEND(a->leaves, l);
	}
	return l;
}

static struct leaf *leaf_make(struct authority *a, const char *host)
{
	X509 *certificate = leaf_sign(a, host);
	if (!certificate)
		return NULL;
	struct leaf *l = mem_new(sizeof *l);
	memcpy(l->host, host, strnlen(host, sizeof l->host - 1));
	l->certificate = certificate;
	l->made_ms = loop.now_ms;
	DL_PREPEND(a->leaves, l);
	if (++a->leaf_count > AUTHORITY_LEAVES_MAX)
		leaf_drop(a, a->leaves->prev);
	return l;
}

int authority_use(struct authority *a, SSL *ssl, const char *host)
{
	struct leaf *l = leaf_find(a, host);
	l = l ? l : leaf_make(a, host);
	return l && SSL_use_certificate(ssl, l->certificate) == 1 &&
			       SSL_use_PrivateKey(ssl, a->leaf_key) == 1
		       ? 0
		       : -EIO;
}

/* ---- beginning and end ---- */

int authority_open(struct authority **ret, const struct entries *e)
{
	const unsigned char *key = e->key.data, *certificate = e->certificate.data;
	struct authority *a = mem_new(sizeof *a);
	a->key = d2i_AutoPrivateKey(NULL, &key, (long)e->key.len);
	a->certificate = d2i_X509(NULL, &certificate, (long)e->certificate.len);
	a->leaf_key = EVP_EC_gen("P-256");
	if (!a->key || !a->certificate || !a->leaf_key ||
		X509_check_private_key(a->certificate, a->key) != 1) {
		authority_close(a);
		return -EINVAL;
	}
	*ret = a;
	return 0;
}

void authority_close(struct authority *a)
{
	if (!a)
		return;
	while (a->leaves)
		leaf_drop(a, a->leaves);
	EVP_PKEY_free(a->key);
	EVP_PKEY_free(a->leaf_key);
	X509_free(a->certificate);
	free(a);
}
