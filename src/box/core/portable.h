/*
 * Sandboxes as one JSON object (image/portable.h): what they have changed over their template, and
 * their variables. An import makes a sandbox, whose own init unpacks what comes; if anything is
 * wrong with it nothing is left.
 */
#pragma once

#include "box/sandbox/sandbox.h"

#define PORTABLE_IMPORTS_MAX 8 /* at once, of all tenants */

struct portable_import;

struct portable_import_events {
	void (*room)(void *arg); /* after portable_import_room was 0 */
	/* Once, unless it was cancelled; never inside a call of the owner's. s: NULL if it failed.
	 */
	void (*done)(void *arg, struct sandbox *s, const struct error *e);
};

/* spec: how the sandbox shall be; its template goes before the object's. Strings are copied. */
int portable_import_begin(struct box *b, const struct sandbox_spec *spec,
	const struct portable_import_events *events, void *arg, struct portable_import **ret,
	struct error *e);
size_t portable_import_room(const struct portable_import *i);
void portable_import_write(struct portable_import *i, const char *data, size_t len);
void portable_import_end(struct portable_import *i);
void portable_import_cancel(struct portable_import *i);
