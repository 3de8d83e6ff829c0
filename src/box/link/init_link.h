/* The connection to the init of one sandbox. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "wire/frame.h"

struct init_link;

struct init_events {
	void (*frame)(void *arg, const struct frame_header *h, const char *payload);
	void (*ready)(void *arg); /* every PROCESS has been given to frame */
	void (*lost)(void *arg);  /* not after init_link_close */
};

/* Without a connection yet: what is to be sent waits for one. */
struct init_link *init_link_new(uv_loop_t *loop, const struct init_events *events, void *arg);
int init_link_connect(struct init_link *l, const char *path);
/* Bytes appended to the returned buffer are sent by the next flush. */
struct buf *init_link_buffer(struct init_link *l);
void init_link_flush(struct init_link *l);
/* While it is held nothing is sent: the other side stands in the freezer. */
void init_link_hold(struct init_link *l, bool hold);
bool init_link_is_connected(const struct init_link *l);
/* Sets the receiver of events. */
void init_link_set_arg(struct init_link *l, void *arg);
void init_link_close(struct init_link *l);
