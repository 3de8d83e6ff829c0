/* Certificates of ours in a sandbox's own stores. */
#pragma once

#include "base/error.h"

struct sandbox;

/* As struct box_hooks says. Of a sandbox whose init is connected. */
void trust_put(struct sandbox *s, const char *section,
	void (*done)(void *arg, const struct error *e), void *arg);
