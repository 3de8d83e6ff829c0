/* Many sandboxes: at once, one after the other as fast as it goes, and idle. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

#define MEMORY_READINGS 9
#define INITS_MAX       2048

/* ---- what the kernel says ---- */

/* The number behind "NAME:" in a file of such lines; -1 when it is not there. */
static long read_kib(const char *path, const char *name)
{
	autobuf text = {0};
	if (fd_read_file_at(AT_FDCWD, path, &text, 1 << 20) < 0)
		return -1;
	buf_append_char(&text, '\0');
	const char *at = text.failed ? NULL : strstr(text.data, name);
	return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

static struct memory process_memory(pid_t pid)
{
	char path[64];
	struct memory m;
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	m.rss_kib = read_kib(path, "VmRSS:");
	snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
	m.pss_kib = read_kib(path, "\nPss:");
	return m;
}

static struct memory child_memory(const struct server *s, const char *name)
{
	pid_t pid = 0;
	server_children(s, name, &pid, 1);
	return process_memory(pid);
}

static long file_kib(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? (long)((st.st_size + 1023) / 1024) : -1;
}

/* Init is part of the binary; a running one tells how large it is. */
static long init_kib(const struct server *s)
{
	pid_t pid = 0;
	char path[64];
	if (server_children(s, "bunker-init", &pid, 1) == 0)
		return -1;
	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	return file_kib(path);
}

int scale_footprint(struct bench *b)
{
	struct footprint *f = &b->footprint;
	f->front = child_memory(&b->pooled, "bunker-front");
	f->keeper = child_memory(&b->pooled, "bunker-keeper");
	f->sweeper = child_memory(&b->pooled, "bunker-sweeper");
	f->warden = process_memory(b->pooled.pid);
	f->binary_kib = file_kib(b->options.bunker);
	f->init_kib = init_kib(&b->pooled);
	f->first_start_us = b->pooled.start_us;
	if (f->front.rss_kib < 0 || f->warden.rss_kib < 0 || f->keeper.rss_kib < 0)
		return bench_fail("cannot read the memory of the server's processes");
	return 0;
}

/* A server that has been there before: its pool and its template are made. */
int scale_start(struct bench *b)
{
	struct server s;
	for (unsigned i = 0; i <= b->options.starts; i++) {
		if (server_start(&s, b->options.bunker, b->dir, "again", "0") < 0 ||
			server_stop(&s) < 0)
			return -1;
		if (i > 0)
			samples_add(&b->footprint.start, s.start_us);
	}
	return 0;
}

/* ---- at once ---- */

struct crowd {
	struct http *http;
	char (*ids)[ID_SIZE];
	bool *failed;
	unsigned count;
};

/* Answers are short and wait in the kernel, so collecting them in order costs no time. */
static int64_t all_create(struct crowd *c)
{
	int64_t began = clock_monotonic_us();
	for (unsigned i = 0; i < c->count; i++)
		c->failed[i] = http_send_create(&c->http[i]) < 0;
	for (unsigned i = 0; i < c->count; i++)
		if (!c->failed[i])
			c->failed[i] = http_receive(&c->http[i], 201) < 0 ||
				       http_read_id(&c->http[i], c->ids[i]) < 0;
	return clock_monotonic_us() - began;
}

static int64_t all_call(
	struct crowd *c, int (*send)(struct http *h, const char *id), int expected_status)
{
	int64_t began = clock_monotonic_us();
	for (unsigned i = 0; i < c->count; i++)
		if (!c->failed[i])
			c->failed[i] = send(&c->http[i], c->ids[i]) < 0;
	for (unsigned i = 0; i < c->count; i++)
		if (!c->failed[i])
			c->failed[i] = http_receive(&c->http[i], expected_status) < 0;
	return clock_monotonic_us() - began;
}

int scale_burst(struct bench *b)
{
	unsigned count = b->options.burst;
	autofree struct http *http = calloc(count, sizeof *http);
	autofree char(*ids)[ID_SIZE] = calloc(count, sizeof *ids);
	autofree bool *failed = calloc(count, sizeof *failed);
	struct crowd crowd = {http, ids, failed, count};
	int r = 0;
	if (!http || !ids || !failed)
		return bench_fail("out of memory");
	for (unsigned i = 0; r == 0 && i < count; i++)
		r = http_open(&http[i], &b->pooled);
	if (r == 0) {
		b->burst.count = count;
		b->burst.create_us = all_create(&crowd);
		b->burst.exec_us = all_call(&crowd, http_send_exec, 200);
		b->burst.destroy_us = all_call(&crowd, http_send_destroy, 204);
	}
	for (unsigned i = 0; i < count; i++) {
		b->burst.failed += failed[i];
		http_close(&http[i]);
	}
	return r;
}

/* ---- one after the other ---- */

struct client {
	pthread_t thread;
	const struct server *server;
	int64_t until_us;
	unsigned cycles;
	int result;
};

static void *client_main(void *arg)
{
	struct client *c = arg;
	struct http h;
	c->result = http_open(&h, c->server);
	while (c->result == 0 && clock_monotonic_us() < c->until_us) {
		char id[ID_SIZE];
		if (http_create(&h, id) < 0 || http_exec(&h, id) < 0 || http_destroy(&h, id) < 0)
			c->result = -1;
		else
			c->cycles++;
	}
	http_close(&h);
	return NULL;
}

static int measure_throughput(struct bench *b, struct throughput *t)
{
	struct client clients[16] = {0};
	int64_t began = clock_monotonic_us();
	unsigned cycles = 0, started = 0;
	int result = 0;
	for (; started < t->clients && started < ARRAY_LEN(clients); started++) {
		clients[started].server = &b->pooled;
		clients[started].until_us = began + b->options.throughput_us;
		if (pthread_create(
			    &clients[started].thread, NULL, client_main, &clients[started]) != 0)
			break;
	}
	for (unsigned i = 0; i < started; i++) {
		pthread_join(clients[i].thread, NULL);
		cycles += clients[i].cycles;
		result |= clients[i].result;
	}
	t->per_second = cycles * 1e6 / (double)(clock_monotonic_us() - began);
	return result;
}

int scale_throughput(struct bench *b)
{
	static const unsigned clients[THROUGHPUT_COUNT] = {1, 2, 8};
	for (size_t i = 0; i < THROUGHPUT_COUNT; i++) {
		b->throughput[i].clients = clients[i];
		if (measure_throughput(b, &b->throughput[i]) < 0)
			return -1;
		server_settle(&b->pooled);
	}
	return 0;
}

/* ---- idle ---- */

struct reading {
	int64_t available_kib;
	int64_t kernel_kib; /* what the kernel holds and cannot give back on demand */
};

static int64_t kernel_kib(void)
{
	static const char *const names[] = {
		"SUnreclaim:", "KernelStack:", "PageTables:", "Percpu:"};
	int64_t sum = 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		sum += read_kib("/proc/meminfo", names[i]);
	return sum;
}

/* The median of a few readings: others use the machine, too. */
static struct reading read_memory(const struct bench *b)
{
	struct samples available = {0}, kernel = {0};
	server_settle(&b->pooled);
	usleep(b->options.settle_us);
	for (int i = 0; i < MEMORY_READINGS; i++) {
		samples_add(&available, read_kib("/proc/meminfo", "MemAvailable:"));
		samples_add(&kernel, kernel_kib());
		usleep(b->options.settle_us / MEMORY_READINGS);
	}
	struct reading r = {samples_percentile(&available, 50), samples_percentile(&kernel, 50)};
	samples_finish(&available);
	samples_finish(&kernel);
	return r;
}

static double average_init_pss(const struct server *s)
{
	static pid_t inits[INITS_MAX];
	size_t count = server_children(s, "bunker-init", inits, INITS_MAX);
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += (double)process_memory(inits[i]).pss_kib;
	return count ? sum / (double)count : 0;
}

static int create_all(struct bench *b, char (*ids)[ID_SIZE], unsigned count)
{
	struct samples creates = {0};
	int r = 0;
	for (unsigned i = 0; r == 0 && i < count; i++) {
		int64_t began = clock_monotonic_us();
		r = http_create(&b->pooled_http, ids[i]);
		samples_add(&creates, clock_monotonic_us() - began);
	}
	b->density.create_p50_us = samples_percentile(&creates, 50);
	samples_finish(&creates);
	return r;
}

int scale_density(struct bench *b)
{
	unsigned count = b->options.density;
	autofree char(*ids)[ID_SIZE] = calloc(count, sizeof *ids);
	if (!ids)
		return bench_fail("out of memory");
	struct reading before = read_memory(b);
	if (create_all(b, ids, count) < 0)
		return -1;
	struct reading during = read_memory(b);
	b->density.init_pss_kib = average_init_pss(&b->pooled);
	for (unsigned i = 0; i < count; i++)
		if (http_destroy(&b->pooled_http, ids[i]) < 0)
			return -1;
	struct reading after = read_memory(b);
	b->density.count = count;
	b->density.kib_each = (double)(before.available_kib - during.available_kib) / count;
	b->density.kib_freed_each = (double)(after.available_kib - during.available_kib) / count;
	b->density.kernel_kib_each = (double)(during.kernel_kib - before.kernel_kib) / count;
	return 0;
}
