/*
 * A certificate authority for one sandbox: in its name bunker-broker vouches, to that sandbox
 * alone, for the hosts that the sandbox has rules for. Its key never enters the sandbox.
 */
#pragma once

#include "base/field.h"

/* In DER: the key as PKCS #8, and its certificate. */
struct authority {
	struct strings key, certificate;
};

/* Returns -EIO if OpenSSL fails. */
int authority_make(const char *sandbox, struct authority *ret);
/* Overwrites the key before it is freed. */
void authority_finish(struct authority *a);
/* The certificate as PEM, owned by the caller; NULL if it is none. */
char *authority_pem(const struct authority *a);

/* Key and certificate in one piece, as they are sealed. The caller overwrites and frees it. */
struct strings authority_pack(const struct authority *a);
/* Returns -EBADMSG if it is not what authority_pack makes. */
int authority_unpack(const struct strings *packed, struct authority *ret);
