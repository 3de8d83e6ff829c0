/*
 * Header rules of a sandbox (model/rules.h) as bunker-broker carries them out: its authority, which
 * is made when it first has rules, and the rules with the secrets filled in.
 */
#pragma once

#include "box/sandbox/sandbox.h"

/* Which secrets rules name, and whether they fit, with the values as they are. */
int brokering_check(
	struct box *b, const char *tenant, const struct strings *rules, struct error *e);
/* The same with a value of `len` bytes for one of them. */
int brokering_check_value(struct box *b, const char *tenant, const struct strings *rules,
	const char *secret, size_t len, struct error *e);
/* Sees to it that a sandbox with rules has an authority. Its row is to be stored then. */
int brokering_prepare(struct sandbox *s, struct error *e);

/* The broker of its tenant while it has rules, else "". */
const char *brokering_broker(const struct sandbox *s, char id[ID_SIZE]);
/* Tells the broker what its row says; `done` when that is in force, at once if nothing is to be
 * told.
 */
void brokering_apply(struct sandbox *s, sandbox_done_fn *done, void *arg);
/* The certificate that it is to trust while it has rules, as PEM, to be freed; else NULL. */
char *brokering_pem(struct sandbox *s);
/* The broker is to forget it. */
void brokering_end(struct sandbox *s);
