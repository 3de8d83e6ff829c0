/*
 * Hooks of the rooms above for events of a sandbox. Each has a const table of its own; core.c lists
 * them, and they are told in the order of that list. Every function may be NULL.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "wire/frame.h"

struct box;
struct execution;
struct sandbox;

struct sandbox_part {
	/* A frame of its init has come. Returns whether it is this part's. */
	bool (*frame)(struct sandbox *s, const struct frame_header *h, const char *payload);
	/*
	 * Its processes are lost, because it failed or because it is being stopped. Calls under way
	 * end with e; without e only those that would not hear of it otherwise.
	 */
	void (*ended)(struct sandbox *s, bool failed, const struct error *e);
	/* Calls that have waited for it to wake go on, or are refused. */
	void (*awake)(struct sandbox *s);
	void (*refused)(struct sandbox *s, const struct error *e);
	/* The sandbox's row has ended, and its disk goes. */
	void (*destroyed)(struct sandbox *s);
	/* The object is freed: it has ended, or the server does. */
	void (*free)(struct sandbox *s);
	/* Init had the interpreter of a code context from an earlier front. */
	void (*interpreter_found)(struct execution *x);
};

bool sandbox_parts_frame(struct sandbox *s, const struct frame_header *h, const char *payload);
void sandbox_parts_ended(struct sandbox *s, bool failed, const struct error *e);
void sandbox_parts_awake(struct sandbox *s);
void sandbox_parts_refused(struct sandbox *s, const struct error *e);
void sandbox_parts_destroyed(struct sandbox *s);
void sandbox_parts_free(struct sandbox *s);
void sandbox_parts_interpreter_found(struct sandbox *s, struct execution *x);

/* Hooks by which the rooms below call core, one table for the whole server. */
struct box_hooks {
	/* The server is closing, and something that it may be waiting for has happened. */
	void (*check_closed)(struct box *b);
	/* The time of at least one sandbox may be up. */
	void (*clock)(struct box *b);
	/* A sandbox is gone: there is room for another one. */
	void (*sandbox_gone)(struct box *b);
	/* Tells of every snapshot on which build and which root layer it stands; "" for none. */
	void (*each_snapshot)(struct box *b,
		void (*each)(void *arg, const char *build, const char *root), void *arg);
	/* The name of a volume, or NULL when there is none of that id. */
	const char *(*volume_name)(struct box *b, const char *id);
	/* The init of one in the pool has died. */
	void (*pooled_lost)(struct sandbox *s);
	/* Puts a section of certificates (base/trust_store.h) into its stores, also during a boot.
	 */
	void (*put_trust)(struct sandbox *s, const char *section,
		void (*done)(void *arg, const struct error *e), void *arg);
};
