/*
 * The authority of one sandbox, which trusts it for hosts with rules: it signs a certificate for
 * each of them when it is first asked for. All of them have one key, which never leaves us.
 */
#pragma once

#include <openssl/ssl.h>

#include "broker/entries.h"

#define AUTHORITY_LEAVES_MAX 64 /* kept; the one that was asked for longest ago goes */

struct authority;

/* Returns -EINVAL if key and certificate cannot be used. */
int authority_open(struct authority **ret, const struct entries *e);
void authority_close(struct authority *a); /* takes NULL */
/* Answers as this host. Returns 0, or -EIO. */
int authority_use(struct authority *a, SSL *ssl, const char *host);
