/*
 * The head of a request as it goes on: without the client's headers that a rule replaces, with
 * those of the rules behind the others, and with secrets where placeholders were. Everything else
 * stays as it came. A parser without sockets; what it adds was checked when it was unpacked.
 */
#pragma once

#include "base/buf.h"
#include "broker/entries.h"

#define REWRITE_MAX (128 * 1024) /* bytes of a head that goes on */

/* `head` was taken by request_read, `out` is empty. Returns 0, or -E2BIG; then it stays so. */
int rewrite_head(struct buf *out, const uint8_t *head, size_t len, const struct entries_host *host,
	bool is_tls);
