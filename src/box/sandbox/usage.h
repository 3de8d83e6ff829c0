/* The usage of a sandbox, in total and now. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/usage.h"

struct box;
struct sandbox;

/* usage is NULL when the sandbox has gone meanwhile. */
typedef void usage_fn(void *arg, const struct usage_view *usage);
/* Measures current usage: the kernel is asked. */
void usage_measure(struct sandbox *s, usage_fn *measured, void *arg);
/* Copies the samples, oldest first, and returns how many there are. */
size_t usage_samples(const struct sandbox *s, struct usage_sample out[USAGE_SAMPLES_MAX]);

struct usage_state {
	int64_t cpu_before_us;      /* of the boots that have ended */
	int64_t cpu_us;             /* of this one, as it was seen last */
	int64_t memory, pids, disk; /* as they were seen last */
	double memory_byte_seconds;
	int64_t sampled_us, due_us; /* monotonic; 0: nothing runs */
	unsigned samples;
	bool idle; /* it did next to nothing since the sample before */
	enum usage_pace {
		USAGE_UNSAMPLED,
		USAGE_OFTEN,
		USAGE_SELDOM
	} pace;
	struct usage_sample *history;
	size_t history_len, history_cap, history_next;
};

/* From now on it is sampled, until usage_end. */
void usage_begin(struct sandbox *s);
/* Something begins in it: it is sampled often again. */
void usage_stir(struct sandbox *s);
/* Returns whether the last sample may be old: who wants to know measures first. */
bool usage_is_stale(const struct sandbox *s);
void usage_end(struct sandbox *s);
void usage_boot_began(struct usage_state *u);
/* Called when the processes are dead; `memory` is what they had before. */
void usage_boot_ends(struct usage_state *u, int64_t memory);
/* Adds the boot's last figure of the kernel, if there was one. */
void usage_boot_ended(struct usage_state *u, int64_t cpu_us);
