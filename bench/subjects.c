/*
 * The interleaved run. In every round each subject gets one turn, in an order that is shuffled
 * anew, so that a noisy moment of the machine hits all of them alike. A turn is a few samples in a
 * row after a short pause: what a subject leaves to the background (a pool to refill, a disk to
 * sweep) falls on its own next samples and not on its neighbour's.
 */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define TURN_SAMPLES   5
#define TURN_PAUSE_US  20000
#define IDLE_PAUSE_US  100000
#define WARM_UP_ROUNDS 3

static int run_floor(struct bench *b, enum row row);
static int run_exec(struct bench *b, enum row row);
static int run_pooled_cycle(struct bench *b, enum row row);
static int run_cold_cycle(struct bench *b, enum row row);
static int run_run(struct bench *b, enum row row);
static int run_peer(struct bench *b, enum row row);

struct subject {
	enum row row;
	int (*run)(struct bench *b, enum row row);
	unsigned share; /* a slow one takes one sample for this many of the others */
};

static const struct subject busy_subjects[] = {
	{ROW_FLOOR, run_floor, 1},
	{ROW_EXEC, run_exec, 1},
	{ROW_CYCLE, run_pooled_cycle, 1},
	{ROW_COLD, run_cold_cycle, 1},
	{ROW_RUN, run_run, 1},
	{ROW_BWRAP, run_peer, 1},
	{ROW_CRUN, run_peer, 2},
	{ROW_RUNC, run_peer, 5},
	{ROW_PODMAN, run_peer, 15},
};

static const struct subject idle_subjects[] = {
	{ROW_IDLE_FLOOR, run_floor, 1},
	{ROW_IDLE_EXEC, run_exec, 1},
	{ROW_IDLE_CYCLE, run_pooled_cycle, 1},
};

/* ---- one sample ---- */

static int spawn_logged(pid_t *pid, const char *const *argv, const char *log)
{
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(
		&actions, STDERR_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int r = posix_spawn(pid, argv[0], &actions, NULL, (char **)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

int spawn_and_wait(const char *const *argv, const char *log)
{
	pid_t pid;
	int status = 0;
	int r = log ? spawn_logged(&pid, argv, log)
		    : posix_spawn(&pid, argv[0], NULL, NULL, (char **)(uintptr_t)argv, environ);
	if (r != 0)
		return bench_fail("cannot run %s: %s", argv[0], strerror(r));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0 ? 0 : -1;
}

static int run_floor(struct bench *b, enum row row)
{
	const char *const argv[] = {"/bin/true", NULL};
	int64_t began = clock_monotonic_us();
	if (spawn_and_wait(argv, NULL) < 0)
		return bench_fail("/bin/true failed");
	samples_add(&b->rows[row], clock_monotonic_us() - began);
	return 0;
}

static int run_exec(struct bench *b, enum row row)
{
	int64_t began = clock_monotonic_us();
	if (http_exec(&b->pooled_http, b->live) < 0)
		return -1;
	samples_add(&b->rows[row], clock_monotonic_us() - began);
	return 0;
}

static int run_cycle(struct bench *b, struct http *h, enum row row)
{
	char id[ID_SIZE];
	int64_t at[4] = {clock_monotonic_us()};
	if (http_create(h, id) < 0)
		return -1;
	at[1] = clock_monotonic_us();
	if (http_exec(h, id) < 0)
		return -1;
	at[2] = clock_monotonic_us();
	if (http_destroy(h, id) < 0)
		return -1;
	at[3] = clock_monotonic_us();
	samples_add(&b->rows[row], at[3] - at[0]);
	for (unsigned i = 0; i < 3; i++)
		samples_add(&b->rows[row + 1 + i], at[i + 1] - at[i]);
	return 0;
}

static int run_pooled_cycle(struct bench *b, enum row row)
{
	return run_cycle(b, &b->pooled_http, row);
}

static int run_cold_cycle(struct bench *b, enum row row)
{
	return run_cycle(b, &b->cold_http, row);
}

static int run_run(struct bench *b, enum row row)
{
	int64_t began = clock_monotonic_us();
	if (http_run(&b->pooled_http) < 0)
		return -1;
	samples_add(&b->rows[row], clock_monotonic_us() - began);
	return 0;
}

static int run_peer(struct bench *b, enum row row)
{
	if (b->skipped[row][0])
		return 0;
	int64_t began = clock_monotonic_us();
	if (peer_run(b, row) < 0)
		return 0;
	samples_add(&b->rows[row], clock_monotonic_us() - began);
	return 0;
}

/* ---- rounds ---- */

void shuffle(size_t *order, size_t count, unsigned *seed)
{
	for (size_t i = 0; i < count; i++)
		order[i] = i;
	for (size_t i = count; i > 1; i--) {
		size_t j = (size_t)rand_r(seed) % i, swapped = order[i - 1];
		order[i - 1] = order[j];
		order[j] = swapped;
	}
}

/* Up to TURN_SAMPLES in a row; `wanted` is what this subject should have in the end. */
static int take_turn(struct bench *b, const struct subject *s, unsigned wanted)
{
	usleep(TURN_PAUSE_US);
	for (unsigned i = 0; i < TURN_SAMPLES && b->rows[s->row].count < wanted; i++)
		if (s->run(b, s->row) < 0)
			return -1;
	return 0;
}

static int busy_round(struct bench *b, unsigned round, unsigned samples, unsigned *seed)
{
	size_t order[ARRAY_LEN(busy_subjects)];
	shuffle(order, ARRAY_LEN(order), seed);
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		const struct subject *s = &busy_subjects[order[i]];
		unsigned wanted = (samples + s->share - 1) / s->share;
		if (round % s->share == 0 && take_turn(b, s, wanted) < 0)
			return -1;
	}
	return 0;
}

static int run_busy(struct bench *b, unsigned samples)
{
	unsigned seed = SHUFFLE_SEED, rounds = (samples + TURN_SAMPLES - 1) / TURN_SAMPLES;
	for (unsigned round = 0; round < rounds; round++)
		if (busy_round(b, round, samples, &seed) < 0)
			return -1;
	return 0;
}

static int run_idle(struct bench *b)
{
	for (unsigned n = 0; n < b->options.idle_samples; n++) {
		for (size_t i = 0; i < ARRAY_LEN(idle_subjects); i++) {
			usleep(IDLE_PAUSE_US);
			if (idle_subjects[i].run(b, idle_subjects[i].row) < 0)
				return -1;
		}
	}
	return 0;
}

/* Caches and lazily made things are nobody's price. */
static int warm_up(struct bench *b)
{
	int r = 0;
	for (unsigned n = 0; r == 0 && n < WARM_UP_ROUNDS; n++)
		for (size_t i = 0; r == 0 && i < ARRAY_LEN(busy_subjects); i++)
			if (busy_subjects[i].run != run_peer)
				r = busy_subjects[i].run(b, busy_subjects[i].row);
	for (size_t i = 0; i < ROW_COUNT; i++)
		samples_finish(&b->rows[i]);
	return r;
}

int subjects_run(struct bench *b)
{
	if (http_create(&b->pooled_http, b->live) < 0 || warm_up(b) < 0)
		return -1;
	if (run_busy(b, b->options.samples) < 0 || run_idle(b) < 0)
		return -1;
	return http_destroy(&b->pooled_http, b->live);
}
