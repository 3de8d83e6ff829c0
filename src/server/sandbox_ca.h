/*
 * The CAs that the operator wants trusted in every sandbox and build: of a file, or those that were
 * added to this host's own.
 */
#pragma once

#include "base/error.h"

#define SANDBOX_CA_DIRECTORY "/usr/local/share/ca-certificates"

struct sandbox_ca {
	char *entries; /* of a section (base/trust_store.h); "": none */
	char *section; /* the entries, framed */
	int count;
};

/*
 * Reads a file, or with NULL the files of SANDBOX_CA_DIRECTORY that end with .crt, in the order of
 * their names; "" is none at all. What the host has there and is no certificate is left out with a
 * line in the log; in a file that was named it is an error.
 */
int sandbox_ca_load(struct sandbox_ca *ca, const char *file, struct error *e);
void sandbox_ca_finish(struct sandbox_ca *ca);
