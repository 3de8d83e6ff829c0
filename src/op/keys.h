/*
 * API keys. Whoever begins these has shown a key of the scope `admin`: it has the keys of its own
 * tenant, and those of all tenants if its own is KEY_SERVER_TENANT. A key that it does not have is
 * one that does not exist.
 */
#pragma once

#include "op/op.h"

/*
 * Creates a key from the request's name, tenant ("": the caller's), scope and life_ms. OP_DONE:
 * key, with its text.
 */
struct op *op_key_create(const struct op_call *call, const struct key_record *request);
/* OP_ROW: key, each. tenant: only its; NULL: all that the caller has. */
struct op *op_key_list(const struct op_call *call, const char *tenant);

struct op_key {
	const char *key;           /* its id; or its name, of the caller's tenant */
	int64_t grace_ms, life_ms; /* of a rotation: see box/key/keys.h */
};
/* OP_DONE: key. */
struct op *op_key_get(const struct op_call *call, const struct op_key *request);
/* OP_DONE: key, with its new text. Carried through. */
struct op *op_key_rotate(const struct op_call *call, const struct op_key *request);
/* Holds at once; OP_DONE when it is stored. Carried through. */
struct op *op_key_revoke(const struct op_call *call, const struct op_key *request);
