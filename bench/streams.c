/*
 * Output as it comes: how long a line takes from its write inside to the client, and whether many
 * streams at once all go on. A program inside prints the clock's time, which is the same inside and
 * outside, again and again.
 */
#include "bench.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define ALONE_LINES    300
#define ALONE_PAUSE_MS 5
#define MANY_LINES     30
#define MANY_PAUSE_MS  100
#define STREAMS_MAX    256
#define PER_SANDBOX    20
#define STALL_US       (10 * 1000000)

static int start(
	struct http *h, const struct bench *b, const char *id, unsigned lines, unsigned pause_ms)
{
	autobuf body = {0}, request = {0};
	buf_printf(&body,
		"{\"command\":[\"python3\",\"-Sc\",\"import time,sys\\nfor i in range(%u):\\n"
		" sys.stdout.write('%%d\\\\n' %% (time.monotonic_ns()//1000)); sys.stdout.flush();"
		" time.sleep(%u/1000)\"]}",
		lines, pause_ms);
	buf_printf(&request,
		"POST /v1/sandboxes/%s/exec HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
		"Accept: application/x-ndjson\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
		id, b->pooled.key, body.len);
	buf_append(&request, body.data, body.len);
	if (http_open(h, &b->pooled) < 0)
		return -1;
	ssize_t n = write(h->fd, request.data, request.len);
	return n == (ssize_t)request.len ? 0 : bench_fail("cannot start a stream");
}

/* The times in what has come: "data":"TIME\n", perhaps several in one. */
static unsigned take_lines(struct http *h, struct samples *out, int64_t *last)
{
	static const char mark[] = "\"data\":\"";
	int64_t now = clock_monotonic_us();
	unsigned count = 0;
	char *at = h->in.data, *newline, *rest = at;
	while (at && (newline = strchr(at, '\n')) != NULL) {
		char *data = strstr(at, mark);
		for (data = data && data < newline ? data + strlen(mark) : NULL;
			data && *data >= '0' && *data <= '9';
			data += strspn(data, "0123456789") + 2) {
			samples_add(out, now - strtoll(data, NULL, 10));
			count++;
		}
		at = rest = newline + 1;
	}
	buf_consume(&h->in, (size_t)(rest - h->in.data));
	h->in.data[h->in.len] = '\0';
	if (count > 0)
		*last = now;
	return count;
}

/* ---- one ---- */

static int measure_one(struct bench *b, const char *id)
{
	struct http h = {0};
	unsigned got = 0;
	int64_t last;
	int r = start(&h, b, id, ALONE_LINES, ALONE_PAUSE_MS);
	while (r == 0 && got < ALONE_LINES) {
		if (http_read_some(&h) <= 0)
			r = bench_fail("a stream ended after %u lines", got);
		else
			got += take_lines(&h, &b->streams.latency, &last);
	}
	http_close(&h);
	return r;
}

/* ---- many ---- */

struct many {
	struct http http[STREAMS_MAX];
	struct pollfd polls[STREAMS_MAX];
	int64_t last[STREAMS_MAX];
	unsigned got[STREAMS_MAX];
	unsigned count, open;
};

static void read_one(struct bench *b, struct many *m, unsigned i)
{
	int64_t before = m->last[i];
	if (http_read_some(&m->http[i]) <= 0) {
		m->polls[i].fd = -1;
		m->open--;
		return;
	}
	unsigned n = take_lines(&m->http[i], &b->streams.many, &m->last[i]);
	/* The first line is behind the program's start. */
	if (n > 0 && m->got[i] > 0 && m->last[i] - before > b->streams.longest_gap_us)
		b->streams.longest_gap_us = m->last[i] - before;
	m->got[i] += n;
	if (m->got[i] < MANY_LINES)
		return;
	b->streams.ended++;
	m->polls[i].fd = -1;
	m->open--;
}

static int read_many(struct bench *b, struct many *m)
{
	int64_t deadline = clock_monotonic_us() + STALL_US + MANY_LINES * MANY_PAUSE_MS * 1000;
	while (m->open > 0 && clock_monotonic_us() < deadline) {
		int n = poll(m->polls, m->count, 1000);
		if (bench_interrupted || (n < 0 && errno != EINTR))
			return bench_fail("interrupted");
		for (unsigned i = 0; n > 0 && i < m->count; i++)
			if (m->polls[i].fd >= 0 && m->polls[i].revents)
				read_one(b, m, i);
	}
	return 0;
}

static int measure_many(struct bench *b, char ids[][ID_SIZE])
{
	static struct many m;
	int r = 0;
	unsigned count = b->options.streams < STREAMS_MAX ? b->options.streams : STREAMS_MAX;
	for (; r == 0 && m.count < count; m.count++) {
		r = start(
			&m.http[m.count], b, ids[m.count / PER_SANDBOX], MANY_LINES, MANY_PAUSE_MS);
		m.polls[m.count] = (struct pollfd){.fd = m.http[m.count].fd, .events = POLLIN};
		m.open++;
	}
	b->streams.count = m.count;
	if (r == 0)
		r = read_many(b, &m);
	for (unsigned i = 0; i < m.count; i++)
		http_close(&m.http[i]);
	return r;
}

int streams_run(struct bench *b)
{
	const char *const python[] = {"/usr/bin/python3", "-c", "", NULL};
	if (access(python[0], X_OK) < 0) {
		snprintf(b->streams.skipped, sizeof b->streams.skipped, "there is no python3");
		return 0;
	}
	static char ids[STREAMS_MAX / PER_SANDBOX + 1][ID_SIZE];
	unsigned count = (b->options.streams + PER_SANDBOX - 1) / PER_SANDBOX;
	for (unsigned i = 0; i < count && i < ARRAY_LEN(ids); i++)
		if (http_create(&b->pooled_http, ids[i]) < 0)
			return -1;
	if (measure_one(b, ids[0]) < 0 || measure_many(b, ids) < 0)
		return -1;
	for (unsigned i = 0; i < count && i < ARRAY_LEN(ids); i++)
		if (http_destroy(&b->pooled_http, ids[i]) < 0)
			return -1;
	return 0;
}
