/*
 * Code contexts: interpreters that remember what they ran, and runs of code in them.
 *
 * A context is a name for one long-lived process in a sandbox, an interpreter. The interpreter is
 * started with the first run, and again after it has died; the context stays until it is deleted or
 * its sandbox is. Runs in one context happen one after the other, contexts work side by side. Each
 * language has one context per user that is its default, made when it is first asked for.
 *
 * The caller that started a run pulls its events, so a slow reader slows the code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/code.h"

struct sandbox;
struct code_context;
struct code_run;

/* ---- contexts ---- */

typedef void code_context_fn(void *arg, struct code_context *c, const struct error *e);

/* Made when its interpreter answers. */
int code_context_create(struct sandbox *s, enum code_language language,
	const struct code_place *place, code_context_fn *created, void *arg, struct error *e);
/*
 * The default one of a language and a user (NULL: the sandbox's), which is made if need be; its
 * interpreter starts with its first run.
 */
struct code_context *code_context_default(
	struct sandbox *s, enum code_language language, const char *user, struct error *e);
struct code_context *code_context_find(const struct sandbox *s, const char *id);
/* In the order of their creation. */
struct code_context *code_context_first(const struct sandbox *s);
struct code_context *code_context_next(const struct code_context *c);
void code_context_view(const struct code_context *c, struct code_context_view *out);
/* Deletes a context: ends its interpreter, everything that this started, and its runs. */
void code_context_delete(
	struct code_context *c, void (*done)(void *arg, const struct error *e), void *arg);
/* With a new interpreter, that knows nothing. What runs ends; what waits runs in the new one. */
void code_context_restart(
	struct code_context *c, void (*done)(void *arg, const struct error *e), void *arg);
/* Interrupts the run that is under way. Returns false if none is. */
bool code_context_interrupt(struct code_context *c);

/* ---- runs ---- */

/* `changed` is called when there may be a next event. */
int code_run_start(struct code_context *c, const struct code_run_spec *spec,
	void (*changed)(void *arg), void *arg, struct code_run **ret, struct error *e);
/* false: not yet. Not after the last one. */
bool code_run_next(struct code_run *r, struct code_event *ret);
/* The last call on a run. One that has not ended is interrupted, or never begins. */
void code_run_close(struct code_run *r);
