/* Certificates of CAs, as operators and brokers give them: PEM, checked, and named by OpenSSL's
 * hash. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/*
 * Appends the certificates of a text as entries of a section (base/trust_store.h). Comments between
 * them are left out. `origin` names the text in errors: it holds a private key, something that is
 * no certificate, or no certificate at all. Returns how many there were, or -1.
 */
int certificates_read(
	const char *pem, size_t len, const char *origin, struct buf *entries, struct error *e);
