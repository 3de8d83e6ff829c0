/*
 * How templates come about. A build is made first, and has a name then; it is started with what it
 * is to do: steps on top of another template, or an archive to take in. Both happen in a throwaway
 * sandbox, whose disk is kept after each step, so that the next build with the same beginning goes
 * on from there.
 *
 * A build ends ready, failed or cancelled. One that the server did not survive is failed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "box/sandbox/sandbox.h"
#include "box/template/template.h"
#include "model/build.h"

typedef void build_made_fn(void *arg, struct build *build, const struct error *e);
int build_create(struct box *b, const struct build_new *what, build_made_fn *made, void *arg,
	struct error *e);
/* By id; of this tenant. */
struct build *build_find(struct box *b, const char *tenant, const char *id);
/* The list of tags is in the scratch, the texts are the build's. */
void build_view(const struct build *build, struct scratch *memory, struct build_view *out);
/* Deletes a build that was never started. */
void build_discard(struct build *build);
/* Cancels a build that is under way or was never started. Does nothing to one that has ended. */
void build_cancel(struct build *build);

/* ---- from steps ---- */

/* Once per build. What is wrong with the spec itself is told at once; everything else is in the
 * build's end. */
int build_start(struct build *build, const struct build_spec *spec, struct error *e);
/* Calls back when what is known of it now has been stored: only then is it acknowledged. */
void build_when_stored(struct build *build, void (*stored)(void *arg), void *arg);

/* ---- files for COPY: tar archives, plain or compressed by gzip or zstd ---- */

/* Known by a hash that the client made, per tenant; kept for a while after its last use. */
bool build_archive_exists(struct box *b, const char *tenant, const char *hash);

struct build_archive;

struct build_archive_spec {
	const char *tenant, *hash;
	bool verify;       /* the hash must be the SHA-256 of the bytes */
	int64_t announced; /* how many bytes will come; -1: unknown */
};

/* Both come from the loop, never inside a call of the owner's. */
struct build_archive_events {
	void (*room)(void *arg); /* after build_archive_room was 0 */
	/* Once, as the last: it is kept, or *e. The upload is gone. */
	void (*done)(void *arg, const struct error *e);
};

/*
 * Begins an upload. Its announced size counts against the tenant's limit from now on. A thread
 * hashes and writes the data.
 */
int build_archive_begin(struct box *b, const struct build_archive_spec *spec,
	const struct build_archive_events *events, void *arg, struct build_archive **ret,
	struct error *e);
/* Returns how many bytes are wanted now. More are accepted, and kept. */
size_t build_archive_room(const struct build_archive *u);
void build_archive_write(struct build_archive *u, const char *data, size_t len);
/* That was all of it. */
void build_archive_end(struct build_archive *u);
/* Discards the archive without calling `done`. */
void build_archive_cancel(struct build_archive *u);

/* ---- from an archive: a root, what `docker save` writes, or an OCI layout ---- */

/*
 * A tar archive, plain or compressed by gzip or zstd, is given as it comes. `room` is called after
 * build_import_room was 0. When the build has ended, by itself or by build_cancel, nothing of this
 * may be called any more.
 */
int build_import(struct build *build, const struct import_spec *spec, void (*room)(void *arg),
	void *arg, struct error *e);
size_t build_import_room(const struct build *build);
void build_import_data(struct build *build, const char *data, size_t len);
void build_import_end(struct build *build);

/* ---- what happens ---- */

/*
 * Gives up to max entries to `each`, beginning with entry number `from` (the first one is 0).
 * Returns the number of the entry after the last one given.
 */
uint64_t build_log_read(struct build *build, uint64_t from, size_t max,
	void (*each)(void *arg, const struct build_log_entry *entry), void *arg);

/* `changed` is called when there are new entries and when the status has changed, from the loop. */
struct build_watcher {
	void (*changed)(void *arg);
	void *arg;
	struct build_watcher *prev, *next;
};
/* A build that is watched stays, also when its template is deleted. */
void build_watch(struct build *build, struct build_watcher *w);
void build_unwatch(struct build *build, struct build_watcher *w);
