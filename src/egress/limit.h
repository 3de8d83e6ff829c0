/*
 * How much of something a sandbox may have in a second: a bucket of tokens that fills with time.
 * What finds it empty waits for a tick of the loop, and does not fail.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stream/loop.h"

struct limit_rate {
	int64_t per_second;
	int64_t burst; /* what may be had at once */
};

struct limit {
	int64_t thousandths; /* of tokens; below 0: more was taken than was there */
	int64_t filled_ms;   /* 0: never, so that it is full */
};

/* Returns how many tokens there are now. */
int64_t limit_left(struct limit *l, const struct limit_rate *rate, int64_t now_ms);
/* What was taken may be more than was left: it is missing later. */
void limit_use(struct limit *l, int64_t tokens);
/* Takes one. Returns false if there is none. */
bool limit_take(struct limit *l, const struct limit_rate *rate, int64_t now_ms);
/* Leaves a socket alone until the next tick: it would be told of again at once. */
void limit_rest(const struct source *s, bool *resting);
