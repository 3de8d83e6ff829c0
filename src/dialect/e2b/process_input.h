/* Writing to a process's stdin, as it makes room. */
#pragma once

#include "dialect/e2b/process.h"

/* A message's "input": {"stdin": base64} or {"pty": base64}. */
int input_decode(const cJSON *input, struct buf *data, struct error *e);

/*
 * Whoever writes. `written` is called once for each write, perhaps within it: when all of it is
 * taken, or with what prevented that.
 */
struct input_writer {
	struct execution *execution; /* NULL: closed */
	struct execution_watcher watcher;
	struct buf data;
	size_t done;
	bool busy;
	void (*written)(void *arg, const struct error *e);
	void *arg;
};

void input_writer_open(struct input_writer *w, struct execution *x);
/* Takes the data. Not while another write is under way. */
void input_writer_write(struct input_writer *w, struct buf *data);
/* Fine if it is not open. */
void input_writer_close(struct input_writer *w);
