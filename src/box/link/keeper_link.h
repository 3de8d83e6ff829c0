/* Requests to the keeper of the disks and their answers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "wire/diff.h"
#include "wire/keeper.h"

typedef void keeper_reply_fn(void *arg, const struct keeper_reply *reply);
struct keeper_call;

struct keeper_link {
	int fd;
	uv_poll_t poll;
	uint32_t sequence, epoch;
	struct keeper_call *calls;  /* all that wait for an answer */
	struct keeper_call *unsent; /* the first that the socket has not taken */
	bool writing;               /* we are told when it takes more */
	void *arg;
};

int keeper_link_open(struct keeper_link *k, uv_loop_t *loop, int fd, void *arg);
/* disk and from may be NULL. */
void keeper_link_call(struct keeper_link *k, enum keeper_op op, const struct disk_name *disk,
	const struct disk_name *from, int64_t bytes, keeper_reply_fn *reply, void *arg);
/* The reply's pipe is the caller's. */
void keeper_link_diff(struct keeper_link *k, const struct disk_name *disk,
	const struct disk_name *from, const char *root, enum diff_form form, keeper_reply_fn *reply,
	void *arg);
void keeper_link_close(struct keeper_link *k, uv_close_cb closed);
