/*
 * What does not depend on how many there are: creates, a restart and an idle server with 10, 100,
 * 1,000 and, with --large, 3,000 sandboxes alive; a list, creates beside it and creates during the
 * expiry with 100,000 that have ended. A server of its own, without a pool: every create is a boot.
 * And an exec in a sandbox whose own processes use up its processor time.
 */
#include "bench.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

#define PAST_PATH "/v1/sandboxes?status=deleted&limit=100"
#define EXPIRY_US 60000000ll

static const char *const growth_options[] = {"--pool", "0", "--max-sandboxes", "4000", NULL};

/* ---- the processor time of a server ---- */

/* Of a process and of those that it has waited for, in milliseconds; 0 when it is gone. */
static double process_cpu_ms(pid_t pid)
{
	char path[64];
	autobuf text = {0};
	unsigned long ticks[4] = {0};
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if (fd_read_file_at(AT_FDCWD, path, &text, 4096) < 0)
		return 0;
	buf_append_char(&text, '\0');
	const char *at = text.failed ? NULL : strrchr(text.data, ')');
	if (at)
		sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu",
			&ticks[0], &ticks[1], &ticks[2], &ticks[3]);
	return (double)(ticks[0] + ticks[1] + ticks[2] + ticks[3]) * 1000 /
	       (double)sysconf(_SC_CLK_TCK);
}

static double server_cpu_ms(const struct server *s)
{
	static const char *const names[] = {
		"bunker-front", "bunker-keeper", "bunker-sweeper", "bunker-wire"};
	double sum = process_cpu_ms(s->pid);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		pid_t pid;
		if (server_children(s, names[i], &pid, 1) == 1)
			sum += process_cpu_ms(pid);
	}
	return sum;
}

static double idle_ms_per_s(const struct bench *b, const struct server *s)
{
	usleep(b->options.idle_us);
	double before = server_cpu_ms(s);
	int64_t began = clock_monotonic_us();
	usleep(b->options.idle_us);
	return (server_cpu_ms(s) - before) * 1e6 / (double)(clock_monotonic_us() - began);
}

/* ---- with so many alive ---- */

static int time_creates(struct http *h, unsigned count, struct samples *out)
{
	char id[ID_SIZE];
	for (unsigned i = 0; i < count; i++) {
		int64_t began = clock_monotonic_us();
		if (http_create(h, id) < 0)
			return -1;
		samples_add(out, clock_monotonic_us() - began);
		if (http_destroy(h, id) < 0)
			return -1;
	}
	return 0;
}

/* It dies at once, as by a crash, and its sandboxes live on. */
static int server_restart(struct bench *b, struct server *s, struct http *h, int64_t *took_us)
{
	http_close(h);
	kill(s->pid, SIGKILL);
	while (waitpid(s->pid, NULL, 0) < 0)
		;
	int64_t began = clock_monotonic_us();
	if (server_start_with(s, b->options.bunker, b->dir, "growth", growth_options) < 0 ||
		http_open(h, s) < 0)
		return -1;
	int64_t settled = clock_monotonic_us() - began - s->start_us; /* by server_start_with */
	if (http_send(h, "GET", "/health", NULL) < 0 || http_receive(h, 200) < 0)
		return -1;
	*took_us = clock_monotonic_us() - began - settled;
	return 0;
}

static int measure_level(
	struct bench *b, struct server *s, struct http *h, unsigned *alive, struct growth_level *l)
{
	char id[ID_SIZE];
	for (; *alive < l->alive; (*alive)++)
		if (http_create(h, id) < 0)
			return -1;
	if (time_creates(h, b->options.growth_samples, &l->create) < 0)
		return -1;
	l->idle_ms_per_s = idle_ms_per_s(b, s);
	return server_restart(b, s, h, &l->restart_us);
}

/* ---- with so many that have ended ---- */

static int past_fail(sqlite3 *db, const char *what)
{
	bench_fail("cannot %s: %s", what, sqlite3_errmsg(db));
	sqlite3_close(db);
	return -1;
}

/* The columns of a table, with what each has in a copy. */
static void past_columns(sqlite3 *db, struct buf *names, struct buf *values)
{
	sqlite3_stmt *st;
	sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info('sandboxes')", -1, &st, NULL);
	while (sqlite3_step(st) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(st, 0);
		const char *value = strcmp(name, "id") == 0           ? "printf('p%019d', n)"
				    : strcmp(name, "created_ms") == 0 ? "n"
				    : strcmp(name, "ended_ms") == 0   ? "n + 1"
								      : name;
		buf_printf(names, "%s%s", names->len ? ", " : "", name);
		buf_printf(values, "%s%s", values->len ? ", " : "", value);
	}
	sqlite3_finalize(st);
	buf_append_char(names, '\0');
	buf_append_char(values, '\0');
}

/* Copies of a sandbox that was deleted, with times of long ago: the next start forgets them. */
static int past_make(const struct server *s, const char *model, unsigned count)
{
	char path[BENCH_PATH_MAX + 32];
	autobuf names = {0}, values = {0}, sql = {0};
	sqlite3 *db;
	snprintf(path, sizeof path, "%s/front/bunker.db", s->data);
	if (sqlite3_open(path, &db) != SQLITE_OK)
		return past_fail(db, "open the database");
	sqlite3_busy_timeout(db, 10000);
	past_columns(db, &names, &values);
	buf_printf(&sql,
		"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < %u)"
		" INSERT INTO sandboxes (%s) SELECT %s FROM c, sandboxes WHERE id = '%s'",
		count, names.data, values.data, model);
	buf_append_char(&sql, '\0');
	if (sqlite3_exec(db, sql.data, NULL, NULL, NULL) != SQLITE_OK)
		return past_fail(db, "make rows");
	sqlite3_close(db);
	return 0;
}

static int time_lists(struct http *h, unsigned count, struct samples *out)
{
	for (unsigned i = 0; i < count; i++) {
		int64_t began = clock_monotonic_us();
		if (http_send(h, "GET", PAST_PATH, NULL) < 0 || http_receive(h, 200) < 0)
			return -1;
		samples_add(out, clock_monotonic_us() - began);
	}
	return 0;
}

struct lister {
	struct http http;
	atomic_bool stop;
	pthread_t thread;
};

static void *lister_main(void *arg)
{
	struct lister *l = arg;
	struct samples unused = {0};
	while (!l->stop && time_lists(&l->http, 1, &unused) == 0)
		;
	samples_finish(&unused);
	return NULL;
}

static int time_creates_beside_lists(
	struct bench *b, const struct server *s, struct http *h, struct samples *out)
{
	struct lister l = {.stop = false};
	if (http_open(&l.http, s) < 0 || pthread_create(&l.thread, NULL, lister_main, &l) != 0)
		return bench_fail("cannot start a client");
	int r = time_creates(h, b->options.growth_samples, out);
	l.stop = true;
	pthread_join(l.thread, NULL);
	http_close(&l.http);
	return r;
}

/* Those that were made by past_make come first: nothing is older. */
static bool past_is_there(struct http *h)
{
	return http_send(h, "GET", "/v1/sandboxes?status=deleted&limit=1", NULL) == 0 &&
	       http_receive(h, 200) == 0 && strstr(h->in.data + h->body_at, "\"p0000");
}

static int time_creates_during_expiry(struct http *h, struct samples *out)
{
	int64_t end = clock_monotonic_us() + EXPIRY_US;
	do {
		if (time_creates(h, 1, out) < 0)
			return -1;
	} while (past_is_there(h) && clock_monotonic_us() < end);
	return 0;
}

static int measure_past(struct bench *b, struct server *s, struct http *h)
{
	struct growth *g = &b->growth;
	char model[ID_SIZE];
	int64_t unused;
	if (http_create(h, model) < 0 || http_destroy(h, model) < 0 ||
		time_creates(h, b->options.growth_samples, &g->create) < 0 ||
		time_lists(h, b->options.growth_samples, &g->list_few) < 0 ||
		past_make(s, model, b->options.past) < 0 ||
		time_lists(h, b->options.growth_samples, &g->list_many) < 0 ||
		time_creates_beside_lists(b, s, h, &g->create_beside_lists) < 0)
		return -1;
	if (server_restart(b, s, h, &unused) < 0)
		return -1;
	return time_creates_during_expiry(h, &g->create_during_expiry);
}

/* ---- in a sandbox that uses up its quota ---- */

static int start_burning(struct http *h, const char *id)
{
	char path[ID_SIZE + 32];
	snprintf(path, sizeof path, "/v1/sandboxes/%s/processes", id);
	return http_send(h, "POST", path, "{\"command\": \"while :; do :; done\"}") < 0
		       ? -1
		       : http_receive(h, 201);
}

static int time_execs(struct http *h, const char *id, unsigned count, struct samples *out)
{
	for (unsigned i = 0; i < count; i++) {
		int64_t began = clock_monotonic_us();
		if (http_exec(h, id) < 0)
			return -1;
		samples_add(out, clock_monotonic_us() - began);
	}
	return 0;
}

/* By turns, so that both see the same machine. */
static int measure_quota(struct bench *b, struct http *h)
{
	char quiet[ID_SIZE], burning[ID_SIZE];
	if (http_create(h, quiet) < 0 || http_create(h, burning) < 0)
		return -1;
	for (int i = 0; i < 2; i++)
		if (start_burning(h, burning) < 0)
			return -1;
	for (unsigned i = 0; i < 3 * b->options.growth_samples; i++)
		if (time_execs(h, quiet, 1, &b->growth.exec) < 0 ||
			time_execs(h, burning, 1, &b->growth.exec_burning) < 0)
			return -1;
	return http_destroy(h, quiet) < 0 ? -1 : http_destroy(h, burning);
}

/* ---- the whole ---- */

double growth_exponent(const struct growth *g, double (*value)(const struct growth_level *l))
{
	double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
	for (unsigned i = 0; i < g->count; i++) {
		double x = log(g->levels[i].alive), v = value(&g->levels[i]);
		double y = log(v > 0.01 ? v : 0.01);
		n++, sx += x, sy += y, sxx += x * x, sxy += x * y;
	}
	return n > 1 ? (n * sxy - sx * sy) / (n * sxx - sx * sx) : 0;
}

int growth_run(struct bench *b)
{
	static const unsigned alive[GROWTH_LEVELS] = {10, 100, 1000, 3000};
	struct server s;
	struct http h = {.fd = -1};
	unsigned now = 0;
	if (server_start_with(&s, b->options.bunker, b->dir, "growth", growth_options) < 0 ||
		http_open(&h, &s) < 0)
		return -1;
	int r = measure_quota(b, &h);
	if (r == 0)
		r = measure_past(b, &s, &h);
	for (unsigned i = 0; r == 0 && i < GROWTH_LEVELS && alive[i] <= b->options.alive; i++) {
		b->growth.levels[i].alive = alive[i];
		b->growth.count = i + 1;
		r = measure_level(b, &s, &h, &now, &b->growth.levels[i]);
	}
	http_close(&h);
	return server_stop(&s) < 0 ? -1 : r;
}
