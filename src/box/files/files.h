/*
 * File work inside a sandbox, with the rights of a user of it: one interface for every dialect.
 *
 * A call is one operation (wire/record.h tells what each of them takes and answers). It tells what
 * it finds by its events, as it comes, and ends with `done`, exactly once; or it is cancelled, and
 * then nothing more is called. Nothing is called before file_begin has returned.
 *
 * Bytes flow with windows both ways: while the call is paused nothing is read, and who gives input
 * looks at file_room first and goes on when `room` is called.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/file.h"

struct sandbox;
struct file_call;

struct file_events {
	void (*entry)(void *arg, const struct file_entry *entry);
	void (*content)(void *arg, uint64_t length, uint64_t offset); /* before the first data */
	void (*data)(void *arg, struct buf *bytes);                   /* to be taken, or left */
	void (*match)(void *arg, const struct file_match *match);
	void (*change)(void *arg, const struct file_change *change);
	void (*attribute)(void *arg, const struct file_attribute *attribute);
	void (*ready)(void *arg); /* what happens from now on is told */
	void (*notice)(void *arg, const struct file_notice *notice);
	void (*synced)(void *arg); /* what had happened before file_put_sync has been told */
	void (*room)(void *arg);
	/* e: why it failed; result is there in both cases. */
	void (*done)(void *arg, const struct file_result *result, const struct error *e);
};

/*
 * user NULL: the sandbox's. Of the request, FILE_CWD NULL is the sandbox's working directory, and
 * everything is copied. Events that an operation does not have may be NULL.
 */
int file_begin(struct sandbox *s, const char *user, const struct file_request *request,
	const struct file_events *events, void *arg, struct file_call **ret, struct error *e);
/* The same of a sandbox that is being booted, for who boots it: its init is connected, but it does
 * not count as awake yet. */
int file_begin_at_boot(struct sandbox *s, const char *user, const struct file_request *request,
	const struct file_events *events, void *arg, struct error *e);
void file_cancel(struct file_call *c);
void file_pause(struct file_call *c);
/* May call back at once. */
void file_resume(struct file_call *c);

/* ---- input: WRITE, UNPACK, ATTRIBUTES ---- */

/* Returns how many bytes are wanted now; more are accepted, and kept. */
size_t file_room(const struct file_call *c);
void file_put_target(struct file_call *c, const struct file_target *target);
/* Announces how many bytes follow, in any pieces. Otherwise each piece has its own length. */
void file_put_length(struct file_call *c, uint64_t length);
void file_put_data(struct file_call *c, const char *bytes, size_t len);
/* name without "user."; value NULL removes it. */
void file_put_attribute(struct file_call *c, const char *name, const char *value, size_t len);
/* The file is complete. */
void file_put_done(struct file_call *c);
/* WATCH, after `ready`, and not again before `synced`. */
void file_put_sync(struct file_call *c);
/* The input is complete. */
void file_put_end(struct file_call *c);

/* ---- many small files at once ---- */

/* The files' owner and the base of relative paths; NULL is the sandbox's own. */
struct files_owner {
	const char *user;
	const char *cwd;
};

/* Writes them one after the other; stops at the first that fails. Everything is copied. */
void files_write(struct sandbox *s, const struct files_owner *owner, const struct file_spec *files,
	size_t count, void (*done)(void *arg, const struct error *e), void *arg);
