/*
 * Files and commands beside the npm binary of sandbox-agent, which does the same without any
 * isolation: its handlers touch the host's files and start the host's processes. Each sample of
 * ours has one of the peer's as its neighbour, in turns that change who is first.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

#define PEER_BINARY                                                                                \
	BENCH_SOURCE                                                                               \
	"/../tests/sdk/sandbox-agent/node_modules/@sandbox-agent/cli-linux-x64/bin/sandbox-agent"
#define START_TIMEOUT_US (20 * 1000000)
#define LARGE_TURNS      3
#define BLOCK            (1u << 20)
#define SMALL            1024u

/* The two that are compared: how each is asked for the same. */
struct side {
	struct http http;
	bool is_peer;
	char health[64];
	char read[2][BENCH_PATH_MAX];  /* 1 KiB, 1 MiB */
	char write[2][BENCH_PATH_MAX]; /* the same */
	char large[BENCH_PATH_MAX];
	char run[BENCH_PATH_MAX];
	const char *run_body;
};

static char block[BLOCK];

static int skip(struct bench *b, const char *reason)
{
	snprintf(b->duel.skipped, sizeof b->duel.skipped, "%s", reason);
	return 0;
}

/* ---- the peer ---- */

static uint16_t free_port(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof address;
	autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) < 0 ||
		getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return 0;
	return ntohs(address.sin_port);
}

static void __attribute__((noreturn)) peer_exec(const char *home, uint16_t port)
{
	char text[8];
	snprintf(text, sizeof text, "%u", port);
	int null = open("/dev/null", O_RDWR);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	setenv("HOME", home, 1);
	unsetenv("XDG_DATA_HOME");
	unsetenv("XDG_STATE_HOME");
	if (null >= 0 && chdir(home) == 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 &&
		dup2(null, 2) >= 0)
		execl(PEER_BINARY, "sandbox-agent", "server", "--host", "127.0.0.1", "--port", text,
			"--no-token", "--no-telemetry", (char *)NULL);
	_exit(127);
}

static bool peer_listens(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
}

static int peer_start(struct bench *b, struct server *peer)
{
	int64_t deadline = clock_monotonic_us() + START_TIMEOUT_US;
	*peer = (struct server){.port = free_port()};
	snprintf(peer->data, sizeof peer->data, "%.200s/agent", b->dir);
	if (peer->port == 0 || mkdir(peer->data, 0755) < 0)
		return bench_fail("cannot make %s: %s", peer->data, strerror(errno));
	peer->pid = fork();
	if (peer->pid == 0)
		peer_exec(peer->data, peer->port);
	while (peer->pid > 0 && !peer_listens(peer->port)) {
		if (waitpid(peer->pid, NULL, WNOHANG) != 0 || clock_monotonic_us() > deadline)
			return bench_fail("sandbox-agent does not start");
		usleep(5000);
	}
	return peer->pid > 0 ? 0 : -1;
}

static void peer_stop(struct server *peer)
{
	if (peer->pid <= 0)
		return;
	kill(peer->pid, SIGKILL);
	waitpid(peer->pid, NULL, 0);
	peer->pid = 0;
}

/* ---- the same questions to both ---- */

static int open_peer(struct side *s, const struct server *peer)
{
	static const char *const names[] = {"1k", "1m"};
	s->is_peer = true;
	s->run_body = "{\"command\":\"/bin/true\"}";
	snprintf(s->health, sizeof s->health, "/v1/health");
	snprintf(s->run, sizeof s->run, "/v1/processes/run");
	for (int i = 0; i < 2; i++) {
		snprintf(s->read[i], sizeof s->read[i], "/v1/fs/file?path=%.160s/read-%s",
			peer->data, names[i]);
		snprintf(s->write[i], sizeof s->write[i], "/v1/fs/file?path=%.160s/write-%s",
			peer->data, names[i]);
	}
	snprintf(s->large, sizeof s->large, "/v1/fs/file?path=%.160s/large", peer->data);
	return http_open(&s->http, peer);
}

static int open_ours(struct side *s, const struct bench *b, const char *id)
{
	static const char *const names[] = {"1k", "1m"};
	s->run_body = "{\"command\":[\"/bin/true\"]}";
	snprintf(s->health, sizeof s->health, "/health");
	snprintf(s->run, sizeof s->run, "/v1/sandboxes/%s/exec", id);
	for (int i = 0; i < 2; i++) {
		snprintf(s->read[i], sizeof s->read[i], "/v1/sandboxes/%s/files/home/user/read-%s",
			id, names[i]);
		snprintf(s->write[i], sizeof s->write[i],
			"/v1/sandboxes/%s/files/home/user/write-%s", id, names[i]);
	}
	snprintf(s->large, sizeof s->large, "/v1/sandboxes/%s/files/home/user/large", id);
	return http_open(&s->http, &b->pooled);
}

static int put(struct side *s, const char *path, size_t len)
{
	return http_send_bytes(&s->http, "PUT", path, block, len) < 0 ? -1
								      : http_receive(&s->http, 200);
}

static int get(struct side *s, const char *path, size_t len)
{
	if (http_send(&s->http, "GET", path, NULL) < 0 || http_receive(&s->http, 200) < 0)
		return -1;
	size_t got = s->http.in.len - s->http.body_at;
	return len == 0 || got == len ? 0 : bench_fail("a file of %zu bytes has %zu", len, got);
}

static int ask(struct side *s, enum duel_row row)
{
	switch (row) {
	case DUEL_HEALTH:
		return get(s, s->health, 0);
	case DUEL_READ_1K:
		return get(s, s->read[0], SMALL);
	case DUEL_READ_1M:
		return get(s, s->read[1], BLOCK);
	case DUEL_WRITE_1K:
		return put(s, s->write[0], SMALL);
	case DUEL_WRITE_1M:
		return put(s, s->write[1], BLOCK);
	default:
		return http_send(&s->http, "POST", s->run, s->run_body) < 0
			       ? -1
			       : http_receive(&s->http, 200);
	}
}

static int sample(struct side *s, enum duel_row row, struct samples *out)
{
	int64_t began = clock_monotonic_us();
	if (ask(s, row) < 0)
		return -1;
	if (out)
		samples_add(out, clock_monotonic_us() - began);
	return 0;
}

/* In an order that is shuffled anew: what ran before makes a row quicker or slower. */
static int compare(struct bench *b, struct side *ours, struct side *peer)
{
	struct duel *d = &b->duel;
	size_t order[DUEL_COUNT];
	unsigned seed = SHUFFLE_SEED;
	for (unsigned i = 0; i < b->options.samples; i++) {
		shuffle(order, DUEL_COUNT, &seed);
		for (size_t n = 0; n < DUEL_COUNT; n++) {
			enum duel_row row = (enum duel_row)order[n];
			bool first = (i + row) % 2;
			if ((first && sample(peer, row, &d->peer[row]) < 0) ||
				sample(ours, row, &d->ours[row]) < 0 ||
				(!first && sample(peer, row, &d->peer[row]) < 0))
				return -1;
		}
	}
	return 0;
}

static int prepare(struct side *s)
{
	if (put(s, s->read[0], SMALL) < 0 || put(s, s->read[1], BLOCK) < 0)
		return -1;
	for (int i = 0; i < 10; i++)
		for (enum duel_row row = 0; row < DUEL_COUNT; row++)
			if (sample(s, row, NULL) < 0)
				return -1;
	return 0;
}

/* ---- one large file ---- */

static double per_second(uint64_t bytes, int64_t began)
{
	int64_t took = clock_monotonic_us() - began;
	return took > 0 ? (double)bytes * 1e6 / (double)took : 0;
}

static int upload(struct side *s, uint64_t size, double *best)
{
	int64_t began = clock_monotonic_us();
	if (http_send_bytes(&s->http, "PUT", s->large, NULL, size) < 0)
		return -1;
	for (uint64_t at = 0; at < size; at += BLOCK) {
		int r = fd_write_all(s->http.fd, block, BLOCK);
		if (r < 0)
			return bench_fail("cannot send a large file: %s", strerror(-r));
	}
	if (http_receive(&s->http, 200) < 0)
		return -1;
	double rate = per_second(size, began);
	*best = rate > *best ? rate : *best;
	return 0;
}

static int download(struct side *s, uint64_t size, double *best)
{
	uint64_t length;
	int64_t began = clock_monotonic_us();
	if (http_send(&s->http, "GET", s->large, NULL) < 0 ||
		http_drain(&s->http, 200, &length) < 0)
		return -1;
	if (length != size)
		return bench_fail("a large file came with %llu bytes", (unsigned long long)length);
	double rate = per_second(size, began);
	*best = rate > *best ? rate : *best;
	return 0;
}

/* The peer takes no more than 2 MB in a request: its large file is put there without it. */
static int make_large(const struct server *peer, uint64_t size)
{
	char path[BENCH_PATH_MAX + 16];
	snprintf(path, sizeof path, "%s/large", peer->data);
	autoclose int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	for (uint64_t at = 0; fd >= 0 && at < size; at += BLOCK)
		if (fd_write_all(fd, block, BLOCK) < 0)
			return bench_fail("cannot write %s", path);
	return fd < 0 ? bench_fail("cannot write %s", path) : 0;
}

static int transfer(struct bench *b, struct side *ours, struct side *peer)
{
	struct duel *d = &b->duel;
	d->size = b->options.large_file;
	if (make_large(peer->http.server, d->size) < 0)
		return -1;
	for (int i = 0; i < LARGE_TURNS; i++)
		if (upload(ours, d->size, &d->up) < 0 || download(ours, d->size, &d->down) < 0 ||
			download(peer, d->size, &d->peer_down) < 0)
			return -1;
	return 0;
}

int duel_run(struct bench *b)
{
	struct server agent;
	struct side ours = {0}, peer = {0};
	char id[ID_SIZE];
	if (access(PEER_BINARY, X_OK) < 0 && chmod(PEER_BINARY, 0755) < 0)
		return skip(b, "sandbox-agent is not installed (tests/sdk/install)");
	for (size_t i = 0; i < sizeof block; i++)
		block[i] = (char)(i * 2654435761u >> 13);
	int r = peer_start(b, &agent);
	if (r == 0)
		r = http_create(&b->pooled_http, id);
	if (r == 0)
		r = open_peer(&peer, &agent) < 0 || open_ours(&ours, b, id) < 0 ? -1 : 0;
	if (r == 0 && (prepare(&ours) < 0 || prepare(&peer) < 0 || compare(b, &ours, &peer) < 0 ||
			      transfer(b, &ours, &peer) < 0))
		r = -1;
	http_close(&ours.http);
	http_close(&peer.http);
	peer_stop(&agent);
	return r < 0 ? r : http_destroy(&b->pooled_http, id);
}
