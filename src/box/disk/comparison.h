/*
 * Compares a disk with its origin, a checkpoint or a snapshot. The keeper walks the trees; changes
 * are told as they are found, and the walk stops while it is paused.
 */
#pragma once

#include "box/disk/checkpoint.h"
#include "box/disk/snapshot.h"
#include "model/disk.h"

struct comparison;

struct comparison_events {
	void (*change)(void *arg, const struct disk_change *c); /* of DIFF_RECORDS */
	void (*data)(void *arg, const char *bytes, size_t len); /* of the others */
	/* Once, unless it was cancelled. truncated: something was too deep to be looked at. */
	void (*done)(void *arg, bool truncated, const struct error *e);
};

/*
 * Compares a sandbox's current disk, by default with its origin. Returns NULL if the tenant has too
 * many comparisons already.
 */
struct comparison *comparison_begin(struct sandbox *s, const struct checkpoint *checkpoint,
	const struct snapshot *snapshot, enum diff_form form,
	const struct comparison_events *events, void *arg, struct error *e);
/* Compares a sandbox or a snapshot with its template's root. */
struct comparison *comparison_begin_whole(struct sandbox *s, enum diff_form form,
	const struct comparison_events *events, void *arg, struct error *e);
struct comparison *comparison_begin_snapshot(const struct snapshot *s, enum diff_form form,
	const struct comparison_events *events, void *arg, struct error *e);
/* Holds all events until comparison_resume. */
void comparison_pause(struct comparison *c);
void comparison_resume(struct comparison *c);
/* Ends the comparison without another event. Not after `done`. */
void comparison_cancel(struct comparison *c);
