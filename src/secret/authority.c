#include "secret/authority.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/id.h"
#include "base/mem.h"

#define DAY_S      (24L * 3600)
#define VALID_DAYS 3650
#define ORGANIZER  "Bunker"

static void authority_free_key(EVP_PKEY **key)
{
	EVP_PKEY_free(*key);
}

static void authority_free_certificate(X509 **certificate)
{
	X509_free(*certificate);
}

static bool authority_add_extension(X509 *c, int nid, const char *value)
{
	X509V3_CTX context;
	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, c, c, NULL, NULL, 0);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	bool added = extension && X509_add_ext(c, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return added;
}

/* Two authorities of one name would be mistaken for each other: the name has the sandbox's id. */
static bool authority_name(X509 *c, const char *sandbox)
{
	char name[64];
	X509_NAME *subject = X509_get_subject_name(c);
	snprintf(name, sizeof name, "Bunker sandbox %.20s", sandbox);
	return X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC,
		       (const unsigned char *)ORGANIZER, -1, -1, 0) == 1 &&
	       X509_NAME_add_entry_by_txt(
		       subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0) == 1 &&
	       X509_set_issuer_name(c, subject) == 1;
}

static bool authority_number(X509 *c)
{
	unsigned char random[16];
	id_random(random, sizeof random);
	random[0] = (unsigned char)((random[0] & 0x7f) | 0x40); /* positive, and always as long */
	BIGNUM *number = BN_bin2bn(random, sizeof random, NULL);
	bool set = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(c));
	BN_free(number);
	return set;
}

/* Valid since a day before: clocks inside a sandbox may be behind. */
static bool authority_fill(X509 *c, EVP_PKEY *key, const char *sandbox)
{
	return X509_set_version(c, 2) == 1 && authority_number(c) &&
	       X509_gmtime_adj(X509_getm_notBefore(c), -DAY_S) &&
	       X509_time_adj_ex(X509_getm_notAfter(c), VALID_DAYS, 0, NULL) &&
	       X509_set_pubkey(c, key) == 1 && authority_name(c, sandbox) &&
	       authority_add_extension(c, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	       authority_add_extension(c, NID_key_usage, "critical,keyCertSign,cRLSign") &&
	       authority_add_extension(c, NID_subject_key_identifier, "hash") &&
	       X509_sign(c, key, EVP_sha256()) > 0;
}

static int authority_copy(struct strings *ret, unsigned char *der, int len)
{
	if (len <= 0)
		return -EIO;
	*ret = (struct strings){mem_copy(der, (size_t)len), (size_t)len};
	OPENSSL_clear_free(der, (size_t)len);
	return 0;
}

static int authority_encode(EVP_PKEY *key, X509 *certificate, struct authority *ret)
{
	unsigned char *key_der = NULL, *certificate_der = NULL;
	PKCS8_PRIV_KEY_INFO *info = EVP_PKEY2PKCS8(key);
	int key_len = info ? i2d_PKCS8_PRIV_KEY_INFO(info, &key_der) : -1;
	PKCS8_PRIV_KEY_INFO_free(info);
	if (authority_copy(&ret->key, key_der, key_len) < 0)
		return -EIO;
	int len = i2d_X509(certificate, &certificate_der);
	return authority_copy(&ret->certificate, certificate_der, len);
}

int authority_make(const char *sandbox, struct authority *ret)
{
	__attribute__((cleanup(authority_free_key))) EVP_PKEY *key = EVP_EC_gen("P-256");
	__attribute__((cleanup(authority_free_certificate))) X509 *certificate = X509_new();
	*ret = (struct authority){0};
	if (!key || !certificate || !authority_fill(certificate, key, sandbox) ||
		authority_encode(key, certificate, ret) < 0) {
		authority_finish(ret);
		return -EIO;
	}
	return 0;
}

void authority_finish(struct authority *a)
{
	if (a->key.data)
		sodium_memzero(a->key.data, a->key.len);
	free(a->key.data);
	free(a->certificate.data);
	*a = (struct authority){0};
}

char *authority_pem(const struct authority *a)
{
	const unsigned char *at = (const unsigned char *)a->certificate.data;
	__attribute__((cleanup(authority_free_certificate))) X509 *certificate =
		d2i_X509(NULL, &at, (long)a->certificate.len);
	BIO *out = BIO_new(BIO_s_mem());
	char *data, *pem = NULL;
	if (certificate && out && PEM_write_bio_X509(out, certificate) == 1) {
		long len = BIO_get_mem_data(out, &data);
		pem = mem_copy_text_n(data, (size_t)len);
	}
	BIO_free(out);
	return pem;
}

/* ---- in one piece: the key's length, the key, the certificate ---- */

struct strings authority_pack(const struct authority *a)
{
	uint32_t key_len = (uint32_t)a->key.len;
	size_t len = sizeof key_len + a->key.len + a->certificate.len;
	struct strings packed = {mem_new(len), len};
	memcpy(packed.data, &key_len, sizeof key_len);
	memcpy(packed.data + sizeof key_len, a->key.data, a->key.len);
	memcpy(packed.data + sizeof key_len + a->key.len, a->certificate.data, a->certificate.len);
	return packed;
}

int authority_unpack(const struct strings *packed, struct authority *ret)
{
	uint32_t key_len;
	if (packed->len < sizeof key_len)
		return -EBADMSG;
	memcpy(&key_len, packed->data, sizeof key_len);
	size_t rest = packed->len - sizeof key_len;
	if (key_len == 0 || key_len >= rest)
		return -EBADMSG;
	const char *key = packed->data + sizeof key_len;
	ret->key = (struct strings){mem_copy(key, key_len), key_len};
	ret->certificate =
		(struct strings){mem_copy(key + key_len, rest - key_len), rest - key_len};
	return 0;
}
