/*
 * Where clients reach this server, for the addresses that it tells them.
 *
 * A proxy that is trusted says so (Forwarded, X-Forwarded-Host, -Proto, -Prefix); else the operator
 * does (--public-url); else it is the Host that the request itself has. What a proxy says and makes
 * no sense counts as not said: an address is told to the one who sent it, and to nobody else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/address.h"
#include "base/buf.h"
#include "http/http.h"

#define OWN_URL_TRUSTED_MAX 32

struct own_url {
	bool secure;
	char authority[256]; /* "HOST[:PORT]"; "": not known */
	char prefix[256];    /* of every path; "" or "/…" without a slash at its end */
};

/* Who is believed, and what is told otherwise. */
struct own_url_config {
	struct own_url public_url;
	struct address_range trusted[OWN_URL_TRUSTED_MAX];
	size_t trusted_count;
};

/* "https://bunker.example.com/sandboxes". Returns -EINVAL if it is none. */
int own_url_parse(const char *text, struct own_url *ret);
/* A list of ranges, or "none". Returns -EINVAL if one is none, -E2BIG if they are too many. */
int own_url_parse_trusted(const char *list, struct own_url_config *ret);

/* "https://bunker.example.com/sandboxes", as this client has to write it. */
void own_url_append(struct buf *out, const struct http_request *req);
/* "https://": the same for names below the sandboxes' domain; and that, with the port to name. */
void own_url_append_scheme(struct buf *out, const struct http_request *req);
void own_url_append_sandbox_domain(struct buf *out, const struct http_request *req);
