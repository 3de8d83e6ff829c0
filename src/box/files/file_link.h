/*
 * The connection to one file worker of a sandbox. It carries one call at a time and waits for the
 * next one afterwards, because a new worker costs more than most calls. What comes is hostile: what
 * makes no sense ends the sandbox.
 */
#pragma once

#include "box/sandbox/object.h"

struct file_link {
	struct sandbox *sandbox;
	char *user;
	char *tenant; /* whom its descriptor is counted for */
	int fd;       /* -1: the sandbox sleeps, and is being woken */
	uv_poll_t poll;
	uv_timer_t timer; /* for who waits too long, and for who is not needed any more */
	bool polled;      /* the handle is there */
	unsigned handles_open;
	bool started; /* init has said that there is a worker */
	bool writable_wanted, reading;
	bool closed;
	struct buf in; /* [in_at, len) has not been looked at */
	size_t in_at;
	uint64_t data_left; /* of the DATA record being read */
	struct buf out;
	struct file_call *call;        /* NULL: idle */
	struct file_link *prev, *next; /* of the sandbox */
};

/* Whether there is an idle one of this user, or the tenant may have a new one. */
int file_link_check(struct sandbox *s, const char *user, struct error *e);
/* An idle one of this user, or a new one. The call is its only one until file_link_idle. */
struct file_link *file_link_take(struct sandbox *s, const char *user, struct file_call *call);
int file_link_connect(struct file_link *l);
/* The call is done, and nothing of it is on the way any more. */
void file_link_idle(struct file_link *l);
void file_link_close(struct file_link *l);

/* Bytes, behind those that wait in `out`. What the socket does not take is kept. */
void file_link_send(struct file_link *l, const void *bytes, size_t len);
/* Reads what there is and hands it on, as long as the call is not paused. */
void file_link_read(struct file_link *l);

/* ---- files.c, file_answer.c, file_input.c: what the link tells its call ---- */

/* A record that is not DATA; negative: it makes no sense here. */
int file_call_record(struct file_call *c, const struct record_header *h, const char *payload);
/* A DATA record of this size begins; its bytes come by file_call_data. Negative: as above. */
int file_call_expect_data(struct file_call *c, uint64_t size);
void file_call_data(struct file_call *c, struct buf *bytes);
/* There is no worker for it, and why. */
void file_call_refused(struct file_call *c, const struct frame_started *started);
void file_call_lost(struct file_call *c);
/* Called when nothing has come for long; returns whether to go on waiting. */
bool file_call_is_patient(const struct file_call *c);
void file_call_has_room(struct file_call *c);
bool file_call_is_paused(const struct file_call *c);
