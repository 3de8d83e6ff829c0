/*
 * Placeholders: what a sandbox's environment has in the place of a secret. They are random, of one
 * sandbox and its forks; bunker-broker replaces them in requests to hosts whose rules name that
 * secret, and nobody does elsewhere.
 */
#pragma once

#include "box/sandbox/sandbox.h"
#include "model/secret.h"

#define PLACEHOLDER_PREFIX "bnkph_"
#define PLACEHOLDER_SIZE   (sizeof PLACEHOLDER_PREFIX + ID_LEN)

/* Returns -1 with a sentence if a variable names a secret that the tenant does not have. */
int placeholder_check(
	struct box *b, const char *tenant, const struct strings *env, struct error *e);
/*
 * Puts placeholders into an environment that was checked, in the place of "${secret:NAME}", and
 * makes those that the sandbox does not have yet. Returns whether it did either.
 */
bool placeholder_settle(struct sandbox *s, struct strings *env);
/* Takes an entry of sandbox.placeholders apart: the secret's name, and its text, or NULL. */
const char *placeholder_split(const char *entry, char secret[SECRET_NAME_MAX + 1]);
