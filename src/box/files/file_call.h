/* One file call, as the files about them see it. */
#pragma once

#include "box/files/file_link.h"
#include "box/files/files.h"

struct file_call {
	struct sandbox *sandbox;
	struct file_link *link;
	struct file_events events;
	void *arg;
	enum file_op op;
	char *path; /* for errors */
	bool paused;
	bool input_ended;
	bool wants_room;
	uint64_t announced; /* of the DATA record that is being sent, what is left */
};

/* ---- files.c ---- */

/* RECORD_END: it is over, one way or the other, and freed. */
int file_call_end(struct file_call *c, const struct record_header *h, const char *payload);
