/* One operation of the life cycle at a time. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct sandbox;

/* e: it is being deleted, and nothing may be done or released. */
typedef void sandbox_claimed_fn(void *arg, struct sandbox *s, const struct error *e);
/* Calls back when it is one's turn, perhaps at once. */
void sandbox_claim(struct sandbox *s, sandbox_claimed_fn *claimed, void *arg);
/*
 * Takes back the claim that was made with this arg, which is then told a refusal. False: there is
 * none that waits.
 */
bool sandbox_withdraw_claim(struct sandbox *s, const void *arg);
/* The next one's turn; or its end, when it was deleted meanwhile. */
void sandbox_release(struct sandbox *s);
/* Those that wait are told that it is being deleted. */
void sandbox_refuse_claims(struct sandbox *s);
