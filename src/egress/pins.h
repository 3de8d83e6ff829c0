/*
 * Which addresses a sandbox was told for which names: what it connects to without saying a name is
 * taken for one of those. Its own, so that nobody profits from what others asked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"

#define PINS_MAX 256              /* of a sandbox; the oldest goes */
#define PIN_MS   (60 * 60 * 1000) /* since the last answer that told it */

struct pin;

struct pins {
	struct pin *list; /* the newest first */
	unsigned count;
};

void pins_add(struct pins *pins, const char *name, const struct address *a, int64_t now_ms);
bool pins_have(const struct pins *pins, const char *name, const struct address *a, int64_t now_ms);
/* Calls `is` with each name of an address until it returns true; that one, or NULL. */
const char *pins_find(const struct pins *pins, const struct address *a, int64_t now_ms,
	bool (*is)(void *arg, const char *name), void *arg);
void pins_finish(struct pins *pins);
