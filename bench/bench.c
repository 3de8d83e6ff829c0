/*
 * bunker-bench: what Bunker costs, as multiples of what starting the same program costs without any
 * isolation, and beside what else people use. Everything is measured by one program in one run, in
 * turns, because on a shared machine only ratios of neighbours mean anything.
 *
 * It starts servers of its own in a directory of its own, and leaves neither behind.
 */
#include "bench.h"

#include <err.h>
#include <errno.h>
#include <ftw.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static const struct options full = {.samples = 300,
	.idle_samples = 60,
	.burst = 100,
	.density = 500,
	.sdk_parallel = 50,
	.large_file = UINT64_C(1) << 30,
	.streams = 200,
	.workspace = 500000000,
	.disk_samples = 20,
	.forks = 10,
	.starts = 10,
	.throughput_us = 3000000,
	.settle_us = 1500000,
	.alive = 1000,
	.growth_samples = 100,
	.past = 100000,
	.idle_us = 15000000};
static const struct options quick = {.samples = 10,
	.idle_samples = 5,
	.burst = 20,
	.density = 40,
	.sdk_parallel = 10,
	.large_file = UINT64_C(64) << 20,
	.streams = 20,
	.workspace = 10000000,
	.disk_samples = 2,
	.forks = 3,
	.starts = 2,
	.throughput_us = 300000,
	.settle_us = 200000,
	.alive = 10,
	.growth_samples = 5,
	.past = 5000,
	.idle_us = 300000};

static const char usage[] =
	"usage: bunker-bench [--quick] [--samples N] [--growth] [--large] [--json FILE] [--bunker PATH]\n\n"
	"  --quick        few samples: shows that the benchmark works, not how fast anything is\n"
	"  --samples N    samples of each subject of the interleaved run [300]\n"
	"  --growth       only what should not depend on how many sandboxes there are\n"
	"  --large        that with up to 3,000 of them alive, instead of 1,000\n"
	"  --json FILE    write the results there, too\n"
	"  --bunker PATH  the binary to measure [the one of the same build]\n";

#define LARGE 3000

volatile bool bench_interrupted;

int bench_fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vwarnx(format, args);
	va_end(args);
	return -1;
}

/* ---- options ---- */

/* Beside us: build/bench/bunker-bench measures build/bunker. */
static int find_bunker(const char *given, char out[BENCH_PATH_MAX])
{
	char self[PATH_MAX], path[PATH_MAX + 16], full_path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	snprintf(path, sizeof path, "%s/../bunker", self);
	if (!realpath(given ? given : path, full_path))
		return bench_fail("there is no %s: %s", given ? given : path, strerror(errno));
	if (strlen(full_path) >= BENCH_PATH_MAX)
		return bench_fail("the path %s is too long", full_path);
	memcpy(out, full_path, strlen(full_path) + 1);
	return 0;
}

static int parse_samples(const char *text, unsigned *ret)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || value < 1 || value > 100000)
		return bench_fail("--samples must be a number from 1 to 100000, not '%s'", text);
	*ret = (unsigned)value;
	return 0;
}

/* 0, 1 for --help, or -1. */
static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option names[] = {{"quick", no_argument, NULL, 'q'},
		{"samples", required_argument, NULL, 's'}, {"json", required_argument, NULL, 'j'},
		{"bunker", required_argument, NULL, 'b'}, {"growth", no_argument, NULL, 'g'},
		{"large", no_argument, NULL, 'l'}, {"help", no_argument, NULL, 'h'}, {0}};
	const char *json = NULL, *bunker = NULL;
	unsigned samples = 0;
	bool growth = false, large = false;
	int c;
	*o = full;
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'q')
			*o = quick;
		else if (c == 'j')
			json = optarg;
		else if (c == 'b')
			bunker = optarg;
		else if (c == 'g')
			growth = true;
		else if (c == 'l')
			large = true;
		else if (c == 'h')
			return 1;
		else if (c != 's' || parse_samples(optarg, &samples) < 0)
			return -1;
	}
	if (optind < argc)
		return bench_fail("what is '%s'?\n%s", argv[optind], usage);
	o->samples = samples ? samples : o->samples;
	o->growth_only = growth;
	o->alive = large ? LARGE : o->alive;
	o->json = json ? fopen(json, "we") : NULL;
	if (json && !o->json)
		return bench_fail("cannot write %s: %s", json, strerror(errno));
	return find_bunker(bunker, o->bunker);
}

/* ---- our directory ---- */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

static int make_directory(struct bench *b)
{
	/* Short: sockets below it must fit into a socket's address. */
	snprintf(b->dir, sizeof b->dir, "/tmp/bunker-bench.XXXXXX");
	if (!mkdtemp(b->dir) || chmod(b->dir, 0711) < 0) /* the front has another uid */
		return bench_fail("cannot make %s: %s", b->dir, strerror(errno));
	return 0;
}

/* ---- the run ---- */

static int start_servers(struct bench *b)
{
	const char *bunker = b->options.bunker;
	if (server_start(&b->pooled, bunker, b->dir, "pooled", NULL) < 0 ||
		scale_footprint(b) < 0 || server_start(&b->cold, bunker, b->dir, "cold", "0") < 0)
		return -1;
	if (http_open(&b->pooled_http, &b->pooled) < 0 || http_open(&b->cold_http, &b->cold) < 0)
		return -1;
	return 0;
}

static int measure(struct bench *b)
{
	if (b->options.growth_only)
		return growth_run(b);
	static int (*const steps[])(struct bench * b) = {peers_open, start_servers, subjects_run,
		sdk_run, duel_run, streams_run, disks_run, scale_burst, scale_throughput,
		scale_density, scale_start, growth_run};
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (steps[i](b) < 0)
			return -1;
	return 0;
}

static int clean_up(struct bench *b)
{
	http_close(&b->pooled_http);
	http_close(&b->cold_http);
	int pooled = server_stop(&b->pooled), cold = server_stop(&b->cold);
	peers_close(b);
	nftw(b->dir, remove_entry, 32, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	return pooled < 0 || cold < 0 ? -1 : 0;
}

static void interrupt(int number)
{
	(void)number;
	bench_interrupted = true;
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = interrupt};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
	static struct bench b;
	int r = parse_options(argc, argv, &b.options);
	if (r != 0) {
		fputs(r > 0 ? usage : "", stdout);
		return r > 0 ? 0 : 2;
	}
	if (geteuid() != 0)
		errx(1, "it must be run by root, as the server that it measures");
	catch_signals();
	if (make_directory(&b) < 0)
		return 1;
	getloadavg(&b.load[0], 1);
	r = measure(&b);
	getloadavg(&b.load[1], 1);
	if (clean_up(&b) < 0)
		r = -1;
	if (r == 0)
		report_print(&b);
	if (r == 0 && b.options.json)
		r = report_write_json(&b);
	for (size_t i = 0; i < ROW_COUNT; i++)
		samples_finish(&b.rows[i]);
	return r < 0 ? 1 : 0;
}
