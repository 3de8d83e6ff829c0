/*
 * Connect's words: the codes of its errors, and the envelopes that messages of a stream come in.
 *
 *     flags (1 byte)   length (4 bytes, big-endian)   JSON
 *     0x00             a message
 *     0x02             the end: {} or {"error":{"code","message"}}
 *
 * Compressed envelopes (0x01) are refused.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "json/json.h"

#define ENVELOPE_MAX (4u << 20) /* of a message */

enum rpc_code {
	RPC_INVALID_ARGUMENT,
	RPC_DEADLINE_EXCEEDED,
	RPC_NOT_FOUND,
	RPC_ALREADY_EXISTS,
	RPC_PERMISSION_DENIED,
	RPC_RESOURCE_EXHAUSTED,
	RPC_UNIMPLEMENTED,
	RPC_INTERNAL,
	RPC_UNAVAILABLE,
	RPC_UNAUTHENTICATED
};

const char *rpc_code_name(enum rpc_code code);
int rpc_http_status(enum rpc_code code);
/* What our own codes are called there. */
enum rpc_code rpc_code_of(enum error_code code);

/* A message by itself; nothing at all is one without fields. */
int envelope_parse(const char *text, size_t len, cJSON **ret, struct error *e);
/* {"code","message"} */
void envelope_put_error(struct json_writer *w, const struct error *e);

/*
 * Takes the next message off what has come of a stream of envelopes: 1, and it is to be deleted by
 * the caller; 0 when it is not complete; negative when it never will be.
 */
int envelope_take(struct buf *in, cJSON **ret, struct error *e);

/* A message in an envelope; begin's result goes to end. */
size_t envelope_begin(struct buf *out);
void envelope_end(struct buf *out, size_t begin);

/* The end of a stream; e: why it has failed, or NULL. */
void envelope_put_end(struct buf *out, const struct error *e);
