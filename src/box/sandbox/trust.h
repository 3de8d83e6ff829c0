/*
 * Whom a sandbox trusts besides whom its image does: the operator's CAs, which all sandboxes and
 * builds have, and a CA of its own. In the base template's root the former are already; into
 * images, and for the latter, certificates are written after each boot, if they are not there.
 */
#pragma once

#include "box/sandbox/part.h"
#include "box/sandbox/sandbox.h"

extern const struct sandbox_part trust_part;

/*
 * Has a CA of the sandbox's own trusted inside, beside the operator's, until the next call; NULL:
 * none. Of a sandbox whose init is connected, in a turn. What was changed inside so that nothing
 * can be written there is logged, and is no failure.
 */
void trust_apply(struct sandbox *s, const char *own_pem, sandbox_done_fn *done, void *arg);
/* Whether trust_renew has something to write. */
bool trust_is_needed(const struct sandbox *s);
/* The same for a boot: puts what the last trust_apply said. */
void trust_renew(struct sandbox *s, sandbox_done_fn *done, void *arg);
/* The certificates of this sandbox as a section (base/trust_store.h); "": none. Owned. */
char *trust_section(const struct sandbox *s);
/* Whether it trusts anybody besides. */
bool trust_is_extended(const struct sandbox *s);
