/*
 * What the files of the benchmark share. One run fills one struct bench: samples per row of the
 * table, and the single numbers of the sections below it; report.c then only reads.
 *
 * Functions return 0, or -1 after they have said on stderr what went wrong.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/id.h"

#define BENCH_PATH_MAX 256

/* ---- samples.c: times of one row, in microseconds ---- */

struct samples {
	int64_t *us;
	size_t count, capacity;
};

void samples_add(struct samples *s, int64_t us);
/* The value below which `percent` of the samples lie; 0 when there are none. */
int64_t samples_percentile(const struct samples *s, unsigned percent);
void samples_finish(struct samples *s);

/* ---- server.c: a server of our own ---- */

struct server {
	pid_t pid; /* the warden; 0: not running */
	uint16_t port;
	char data[BENCH_PATH_MAX];
	char log[BENCH_PATH_MAX];
	char key[160];
	int64_t start_us; /* from its exec to its port */
};

/* pool: as --pool takes it, NULL for the default. Returns when its pool is full. */
int server_start(
	struct server *s, const char *bunker, const char *dir, const char *name, const char *pool);
/* The same with options of its own, up to a NULL. */
int server_start_with(struct server *s, const char *bunker, const char *dir, const char *name,
	const char *const *options);
/* Ends it with everything it made. */
int server_stop(struct server *s);
/* Wait until it has booted, for a while, as many sandboxes as it wants to. */
void server_settle(const struct server *s);
/* Its children called `name`, at most max of them. */
size_t server_children(const struct server *s, const char *name, pid_t *out, size_t max);

/* ---- http.c: one keep-alive connection ---- */

struct http {
	int fd;
	const struct server *server;
	struct buf out;
	struct buf in;
	size_t body_at; /* of the last answer, in `in` */
};

int http_open(struct http *h, const struct server *server);
void http_close(struct http *h);
int http_send(struct http *h, const char *method, const char *path, const char *body);
/* A body of bytes; with a length but without bytes, only the head. */
int http_send_bytes(
	struct http *h, const char *method, const char *path, const void *bytes, size_t len);
/* The next answer; -1 also when its status is another one. */
int http_receive(struct http *h, int expected_status);
/* The same, but the body is counted and thrown away. */
int http_drain(struct http *h, int expected_status, uint64_t *length);
/* Whatever comes next, without looking for an end: bytes read, 0 at the end, -1. */
ssize_t http_read_some(struct http *h);
/* The "id" of the JSON in the last answer. */
int http_read_id(const struct http *h, char id[ID_SIZE]);

/* The calls that are measured. */
int http_send_create(struct http *h);
int http_send_exec(struct http *h, const char *id);
int http_send_destroy(struct http *h, const char *id);
int http_create(struct http *h, char id[ID_SIZE]);
int http_exec(struct http *h, const char *id);
int http_destroy(struct http *h, const char *id);
int http_run(struct http *h);

/* ---- the result ---- */

/* The rows of a cycle stand together: the whole, then its three calls. */
enum row {
	ROW_FLOOR,
	ROW_EXEC,
	ROW_CYCLE,
	ROW_CYCLE_CREATE,
	ROW_CYCLE_EXEC,
	ROW_CYCLE_DESTROY,
	ROW_COLD,
	ROW_COLD_CREATE,
	ROW_COLD_EXEC,
	ROW_COLD_DESTROY,
	ROW_RUN,
	ROW_BWRAP,
	ROW_CRUN,
	ROW_RUNC,
	ROW_PODMAN,
	ROW_IDLE_FLOOR,
	ROW_IDLE_EXEC,
	ROW_IDLE_CYCLE,
	ROW_IDLE_CYCLE_CREATE,
	ROW_IDLE_CYCLE_EXEC,
	ROW_IDLE_CYCLE_DESTROY,
	ROW_E2B_CYCLE,
	ROW_E2B_CREATE,
	ROW_E2B_RUN,
	ROW_E2B_KILL,
	ROW_E2B_FLOOR,
	ROW_COUNT
};

struct burst {
	unsigned count, failed;
	int64_t create_us, exec_us, destroy_us;
};

struct density {
	unsigned count;
	double kib_each;        /* by MemAvailable, with all of them there */
	double kib_freed_each;  /* by MemAvailable, after they went */
	double kernel_kib_each; /* by the kernel's own counters, which others disturb less */
	double init_pss_kib;    /* one init, on average */
	int64_t create_p50_us;
};

#define THROUGHPUT_COUNT 3

struct throughput {
	unsigned clients;
	double per_second;
};

struct memory {
	long rss_kib, pss_kib;
};

struct footprint {
	struct memory front, warden, keeper, sweeper;
	long binary_kib, init_kib;
	int64_t first_start_us; /* makes the pool and the base template */
	struct samples start;
};

struct sdk {
	unsigned parallel; /* cycles at once; 0: not measured */
	int64_t parallel_us;
};

/* Against sandbox-agent, in turns: each call of ours with the same of the peer's. */
enum duel_row {
	DUEL_HEALTH,
	DUEL_READ_1K,
	DUEL_READ_1M,
	DUEL_WRITE_1K,
	DUEL_WRITE_1M,
	DUEL_RUN,
	DUEL_COUNT
};

struct duel {
	char skipped[256]; /* why there is no peer */
	struct samples ours[DUEL_COUNT], peer[DUEL_COUNT];
	/* One large file, bytes per second, the best of a few; 0: not possible. */
	double up, down, peer_down;
	uint64_t size;
};

struct streams {
	struct samples latency; /* from a write inside to its byte at the client */
	struct samples many;    /* the same, with `count` streams at once */
	unsigned count, ended;
	int64_t longest_gap_us; /* between two lines of one of them */
	char skipped[256];
};

/* Of a workspace, in several sizes: p50 must not depend on them. */
enum disk_row {
	DISK_CHECKPOINT,
	DISK_SNAPSHOT,
	DISK_CREATE,
	DISK_FORK,
	DISK_COUNT
};

#define DISK_SIZES 3

struct disks {
	unsigned files;
	uint64_t bytes[DISK_SIZES];
	struct samples took[DISK_SIZES][DISK_COUNT];
	unsigned fork_count;
	struct samples forks; /* that many in one call */
	struct samples pause, resume;
	struct samples suspend, boot; /* the same without memory */
};

/* With so many sandboxes alive. */
struct growth_level {
	unsigned alive;
	struct samples create;
	double idle_ms_per_s; /* processor time */
	int64_t restart_us;   /* after a crash, until it serves */
};

#define GROWTH_LEVELS 4

struct growth {
	struct growth_level levels[GROWTH_LEVELS];
	unsigned count;
	/* With many that have ended: a page of them, and creates beside those who read them. */
	struct samples list_few, list_many, create, create_beside_lists, create_during_expiry;
	/* In a sandbox that does nothing else, and in one that uses up its quota. */
	struct samples exec, exec_burning;
};

struct options {
	char bunker[BENCH_PATH_MAX];
	FILE *json; /* NULL: not wanted */
	unsigned samples;
	unsigned idle_samples;
	unsigned burst;
	unsigned density;
	unsigned sdk_parallel;
	uint64_t large_file; /* bytes */
	unsigned streams;
	uint64_t workspace; /* bytes, of the largest */
	unsigned disk_samples;
	unsigned forks;
	unsigned starts;
	int64_t throughput_us;
	unsigned settle_us; /* before memory is read */
	bool growth_only;
	unsigned alive; /* the most sandboxes at once, for their growth */
	unsigned growth_samples;
	unsigned past;    /* sandboxes that have ended */
	unsigned idle_us; /* for which processor time is counted */
};

#define PEER_ARGUMENTS 40

struct peer_state {
	int home_fd;   /* our own mount namespace */
	int mounts_fd; /* the one in which the container runtimes work, and leave nothing */
	bool podman_was_there;
	char *argv[ROW_COUNT][PEER_ARGUMENTS]; /* NULL-terminated; empty for whoever is no peer */
};

struct bench {
	struct options options;
	char dir[BENCH_PATH_MAX]; /* everything we make is below it */
	struct server pooled, cold;
	struct http pooled_http, cold_http;
	char live[ID_SIZE]; /* the sandbox in which exec is measured */
	struct peer_state peers;

	double load[2]; /* of the machine, before and after */
	struct samples rows[ROW_COUNT];
	char skipped[ROW_COUNT][256]; /* why a peer has no row */
	struct burst burst;
	struct density density;
	struct throughput throughput[THROUGHPUT_COUNT];
	struct footprint footprint;
	struct sdk sdk;
	struct duel duel;
	struct streams streams;
	struct disks disks;
	struct growth growth;
};

/* Set by SIGINT and SIGTERM; the next request then fails, and we leave in good order. */
extern volatile bool bench_interrupted;

int bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- subjects.c: the interleaved run ---- */

int subjects_run(struct bench *b);

#define SHUFFLE_SEED 20261115

/* 0, 1, … in another order each time. */
void shuffle(size_t *order, size_t count, unsigned *seed);
/* Runs a program without any isolation. With a log it has that as stderr, and nothing else of ours.
 */
int spawn_and_wait(const char *const *argv, const char *log);

/* ---- peers.c: the others ---- */

/* Makes what they need and tries each once. */
int peers_open(struct bench *b);
void peers_close(struct bench *b);
/* One run. A peer that fails is in b->skipped from then on, with the reason, and has no row. */
int peer_run(struct bench *b, enum row row);

/* ---- scale.c: many at once ---- */

int scale_footprint(struct bench *b);
int scale_start(struct bench *b);
int scale_burst(struct bench *b);
int scale_throughput(struct bench *b);
int scale_density(struct bench *b);

/* ---- growth.c: what should not depend on how many there are ---- */

int growth_run(struct bench *b);
/* By which power of the number of sandboxes a value grows. */
double growth_exponent(const struct growth *g, double (*value)(const struct growth_level *l));

/* ---- sdk.c: somebody else's SDK, in Node ---- */

int sdk_run(struct bench *b);

/* ---- duel.c: files and commands against sandbox-agent ---- */

int duel_run(struct bench *b);

/* ---- streams.c: output as it comes ---- */

int streams_run(struct bench *b);

/* ---- disks.c: copies of disks, pause and resume ---- */

int disks_run(struct bench *b);

/* ---- report.c, report_json.c ---- */

void report_print(const struct bench *b);
int report_write_json(const struct bench *b);
