/*
 * The loop of bunker-egress and bunker-broker: epoll, a tick for what takes time, and memory that
 * events may still name.
 */
#pragma once

#include <stdint.h>

#define TICK_MS 100

/* Something that epoll tells of. */
struct source {
	int fd; /* -1: none */
	void (*ready)(struct source *s, uint32_t events);
};

struct loop {
	int epoll_fd;
	int64_t now_ms;
};

extern struct loop loop;

int loop_open(void);
typedef void loop_tick_fn(void);
/* The functions, closed by NULL, are called every TICK_MS. */
void loop_run(loop_tick_fn *const *ticks) __attribute__((noreturn));
/* Closes the source's descriptor when it cannot be watched. */
int loop_add(struct source *s, uint32_t events);
void loop_change(struct source *s, uint32_t events);
/* Closes it. */
void loop_remove(struct source *s);
/* Keeps the descriptor open, and tells nothing of it any more. */
void loop_leave(struct source *s);
/* Frees when no event of this turn can name it any more. */
void loop_free_later(void *memory);
