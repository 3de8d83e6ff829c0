/* One file call, as the files about them see it. */
#pragma once

#include "box/files/file_link.h"
#include "box/files/files.h"

/* The progress of the answer; file_answer.c has the table of allowed records. */
struct file_answer {
	unsigned step;
	uint64_t taken;    /* records of that step */
	uint64_t promised; /* bytes that CONTENT has announced and no DATA has brought yet */
};

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
	bool with_attributes; /* of entries */
	bool syncing;         /* a SYNC is out */
	uint64_t limit;       /* of answers */
	uint64_t files_given; /* to be written */
	struct file_answer answer;
	uint64_t announced; /* of the DATA record that is being sent, what is left */
};

/* ---- files.c ---- */

/*
 * Returns whether the input has ended or need not have: bytes behind an archive's end are not read.
 */
bool file_call_is_given_all(const struct file_call *c);
/* Ends and frees the call. path: the path that an error is about; may be empty. */
void file_call_end(
	struct file_call *c, const struct record_end *end, const struct record_text *path);
