/*
 * What is made of a sandbox's disk: checkpoints, snapshots, sandboxes from snapshots, forks, of
 * workspaces with the same number of files in several sizes; then pause and resume. Sizes and
 * operations take turns. Before each sample a little is written inside, so that there is something
 * to keep.
 */
#include "bench.h"

#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define FILES     10000
#define BUDGET_US (60 * 1000000) /* where copies are not quick, fewer will do */

static int call(struct http *h, const char *method, const char *body, int status,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

static int call(
	struct http *h, const char *method, const char *body, int status, const char *format, ...)
{
	char path[BENCH_PATH_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(path, sizeof path, format, args);
	va_end(args);
	return http_send(h, method, path, body) < 0 ? -1 : http_receive(h, status);
}

static int run_inside(struct http *h, const char *id, const char *command)
{
	autobuf body = {0};
	buf_printf(&body, "{\"command\":\"%s\",\"timeout\":\"5m\"}", command);
	buf_append_char(&body, '\0');
	if (call(h, "POST", body.data, 200, "/v1/sandboxes/%s/exec", id) < 0)
		return -1;
	return strstr(h->in.data + h->body_at, "\"exitCode\":0")
		       ? 0
		       : bench_fail("inside a sandbox: %s", h->in.data + h->body_at);
}

static int make_workspace(struct http *h, uint64_t bytes, char id[ID_SIZE])
{
	char command[256];
	snprintf(command, sizeof command,
		"mkdir work && cd work && head -c %llu /dev/urandom | split -b %llu -a 5 -d - && sync",
		(unsigned long long)bytes, (unsigned long long)bytes / FILES);
	return http_create(h, id) < 0 ? -1 : run_inside(h, id, command);
}

/* ---- one sample of each ---- */

static int64_t began_us;

static void start_clock(void)
{
	began_us = clock_monotonic_us();
}

static void stop_clock(struct samples *out)
{
	samples_add(out, clock_monotonic_us() - began_us);
}

static int take_checkpoint(struct http *h, const char *id, struct samples *took)
{
	start_clock();
	if (call(h, "POST", "{\"name\":\"bench\"}", 201, "/v1/sandboxes/%s/checkpoints", id) < 0)
		return -1;
	stop_clock(took);
	return call(h, "DELETE", NULL, 204, "/v1/sandboxes/%s/checkpoints/bench", id);
}

static int take_snapshot(
	struct http *h, const char *id, struct samples *took, struct samples *created)
{
	char snapshot[ID_SIZE], copy[ID_SIZE], body[64];
	start_clock();
	if (call(h, "POST", "{}", 201, "/v1/sandboxes/%s/snapshots", id) < 0)
		return -1;
	stop_clock(took);
	if (http_read_id(h, snapshot) < 0)
		return -1;
	snprintf(body, sizeof body, "{\"snapshot\":\"%s\"}", snapshot);
	start_clock();
	if (call(h, "POST", body, 201, "/v1/sandboxes") < 0)
		return -1;
	stop_clock(created);
	if (http_read_id(h, copy) < 0 || http_destroy(h, copy) < 0)
		return -1;
	return call(h, "DELETE", NULL, 204, "/v1/snapshots/%s", snapshot);
}

static int destroy_forks(struct http *h)
{
	cJSON *json = cJSON_Parse(h->in.data + h->body_at), *item;
	int r = 0;
	cJSON_ArrayForEach(item, cJSON_GetObjectItem(json, "sandboxes"))
	{
		const char *id = cJSON_GetStringValue(cJSON_GetObjectItem(item, "id"));
		if (!id || http_destroy(h, id) < 0)
			r = -1;
	}
	cJSON_Delete(json);
	return r;
}

static int take_fork(struct http *h, const char *id, unsigned count, struct samples *took)
{
	char body[32];
	snprintf(body, sizeof body, "{\"count\":%u}", count);
	start_clock();
	if (call(h, "POST", body, 201, "/v1/sandboxes/%s/fork", id) < 0)
		return -1;
	stop_clock(took);
	return destroy_forks(h);
}

static int touch(struct http *h, const char *id)
{
	return run_inside(h, id, "echo $RANDOM >> work/note");
}

/* took: a column of the table, or with NULL nobody's time. */
static int take_turn(struct http *h, const char *id, struct samples took[DISK_COUNT])
{
	if (touch(h, id) < 0 || take_checkpoint(h, id, &took[DISK_CHECKPOINT]) < 0 ||
		touch(h, id) < 0 ||
		take_snapshot(h, id, &took[DISK_SNAPSHOT], &took[DISK_CREATE]) < 0 ||
		touch(h, id) < 0 || take_fork(h, id, 1, &took[DISK_FORK]) < 0)
		return -1;
	return 0;
}

/* ---- pause and resume ---- */

static int take_pause(struct http *h, const char *id, const char *body, struct samples *pause,
	struct samples *resume)
{
	start_clock();
	if (call(h, "POST", body, 200, "/v1/sandboxes/%s/pause", id) < 0)
		return -1;
	stop_clock(pause);
	start_clock();
	if (call(h, "POST", "{}", 200, "/v1/sandboxes/%s/resume", id) < 0)
		return -1;
	stop_clock(resume);
	return 0;
}

static int measure_pauses(struct bench *b, struct http *h, const char *id)
{
	struct disks *d = &b->disks;
	for (unsigned i = 0; i < b->options.disk_samples * 3; i++)
		if (take_pause(h, id, "{}", &d->pause, &d->resume) < 0 ||
			take_pause(h, id, "{\"memory\":false}", &d->suspend, &d->boot) < 0)
			return -1;
	return 0;
}

/* ---- all of it ---- */

static int measure_sizes(struct bench *b, struct http *h, char ids[DISK_SIZES][ID_SIZE])
{
	struct disks *d = &b->disks;
	struct samples warm_up[DISK_COUNT] = {0};
	int r = 0;
	for (size_t size = 0; r == 0 && size < DISK_SIZES; size++)
		r = take_turn(h, ids[size], warm_up);
	for (size_t op = 0; op < DISK_COUNT; op++)
		samples_finish(&warm_up[op]);
	int64_t until = clock_monotonic_us() + BUDGET_US;
	for (unsigned i = 0; r == 0 && i < b->options.disk_samples; i++) {
		if (clock_monotonic_us() > until)
			break;
		for (size_t size = 0; r == 0 && size < DISK_SIZES; size++)
			r = take_turn(h, ids[size], d->took[size]);
	}
	return r;
}

static int measure_forks(struct bench *b, struct http *h, const char *id)
{
	struct disks *d = &b->disks;
	d->fork_count = b->options.forks;
	for (unsigned i = 0; i < b->options.disk_samples / 2; i++)
		if (touch(h, id) < 0 || take_fork(h, id, d->fork_count, &d->forks) < 0)
			return -1;
	return 0;
}

int disks_run(struct bench *b)
{
	struct disks *d = &b->disks;
	char ids[DISK_SIZES][ID_SIZE] = {{0}};
	struct http h;
	int r = http_open(&h, &b->pooled);
	d->files = FILES;
	for (size_t size = 0; r == 0 && size < DISK_SIZES; size++) {
		static const unsigned shares[DISK_SIZES] = {100, 10, 1};
		d->bytes[size] = b->options.workspace / shares[size];
		r = make_workspace(&h, d->bytes[size], ids[size]);
	}
	if (r == 0 &&
		(measure_sizes(b, &h, ids) < 0 || measure_forks(b, &h, ids[DISK_SIZES - 1]) < 0 ||
			measure_pauses(b, &h, ids[DISK_SIZES - 1]) < 0))
		r = -1;
	for (size_t size = 0; r == 0 && size < DISK_SIZES; size++)
		r = http_destroy(&h, ids[size]);
	http_close(&h);
	return r;
}
