/* The tables, the targets and the JSON of one finished run. */
#include "bench.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static const struct {
	const char *name; /* of a part: indented */
	const char *key;
} rows[ROW_COUNT] = {
	[ROW_FLOOR] = {"posix_spawn true, no isolation (floor)", "floor"},
	[ROW_EXEC] = {"bunker: exec in a live sandbox", "exec"},
	[ROW_CYCLE] = {"bunker: create, exec, destroy", "cycle"},
	[ROW_CYCLE_CREATE] = {"  create", "cycle.create"},
	[ROW_CYCLE_EXEC] = {"  exec", "cycle.exec"},
	[ROW_CYCLE_DESTROY] = {"  destroy", "cycle.destroy"},
	[ROW_COLD] = {"bunker: the same without a pool", "cold"},
	[ROW_COLD_CREATE] = {"  create", "cold.create"},
	[ROW_COLD_EXEC] = {"  exec", "cold.exec"},
	[ROW_COLD_DESTROY] = {"  destroy", "cold.destroy"},
	[ROW_RUN] = {"bunker: run, all in one call", "run"},
	[ROW_BWRAP] = {"bwrap --unshare-all", "bwrap"},
	[ROW_CRUN] = {"crun run", "crun"},
	[ROW_RUNC] = {"runc run", "runc"},
	[ROW_PODMAN] = {"podman run --rm --network none", "podman"},
	[ROW_IDLE_FLOOR] = {"posix_spawn true, no isolation (floor)", "idle.floor"},
	[ROW_IDLE_EXEC] = {"bunker: exec in a live sandbox", "idle.exec"},
	[ROW_IDLE_CYCLE] = {"bunker: create, exec, destroy", "idle.cycle"},
	[ROW_IDLE_CYCLE_CREATE] = {"  create", "idle.cycle.create"},
	[ROW_IDLE_CYCLE_EXEC] = {"  exec", "idle.cycle.exec"},
	[ROW_IDLE_CYCLE_DESTROY] = {"  destroy", "idle.cycle.destroy"},
	[ROW_E2B_CYCLE] = {"e2b: Sandbox.create, run('true'), kill", "e2b"},
	[ROW_E2B_CREATE] = {"  Sandbox.create()", "e2b.create"},
	[ROW_E2B_RUN] = {"  commands.run('true')", "e2b.run"},
	[ROW_E2B_KILL] = {"  kill()", "e2b.kill"},
};

/* ---- numbers ---- */

static double row_ms(const struct bench *b, enum row row, unsigned percent)
{
	return (double)samples_percentile(&b->rows[row], percent) / 1000;
}

static bool is_idle(enum row row)
{
	return row >= ROW_IDLE_FLOOR && row < ROW_E2B_CYCLE;
}

static double times_floor(const struct bench *b, enum row row)
{
	double floor = row_ms(b, is_idle(row) ? ROW_IDLE_FLOOR : ROW_FLOOR, 50);
	return floor > 0 ? row_ms(b, row, 50) / floor : 0;
}

static double times_bwrap(const struct bench *b, enum row row)
{
	double bwrap = row_ms(b, ROW_BWRAP, 50);
	return bwrap > 0 ? row_ms(b, row, 50) / bwrap : 0;
}

static long server_rss_kib(const struct bench *b)
{
	const struct footprint *f = &b->footprint;
	return f->front.rss_kib + f->warden.rss_kib + f->sweeper.rss_kib;
}

static const struct {
	const char *name, *key;
} duel_rows[DUEL_COUNT] = {
	[DUEL_HEALTH] = {"health", "health"},
	[DUEL_READ_1K] = {"read a file of 1 KiB", "read1k"},
	[DUEL_READ_1M] = {"read a file of 1 MiB", "read1m"},
	[DUEL_WRITE_1K] = {"write a file of 1 KiB", "write1k"},
	[DUEL_WRITE_1M] = {"write a file of 1 MiB", "write1m"},
	[DUEL_RUN] = {"run true", "run"},
};

static double sample_ms(const struct samples *s, unsigned percent)
{
	return (double)samples_percentile(s, percent) / 1000;
}

static double duel_ratio(const struct bench *b, enum duel_row row)
{
	double peer = sample_ms(&b->duel.peer[row], 50);
	return peer > 0 ? sample_ms(&b->duel.ours[row], 50) / peer : 0;
}

/* What the project promised itself. */
struct target {
	const char *name, *unit;
	double value, limit;
	bool measured;
};

#define TARGET_COUNT (9 + DUEL_COUNT + 4)

static double per_gigabyte(double rate)
{
	return rate > 0 ? 1e9 / rate : 0;
}

static void fill_targets(const struct bench *b, struct target out[TARGET_COUNT])
{
	const struct target targets[TARGET_COUNT] = {
		{"exec p50", "x floor", times_floor(b, ROW_EXEC), 1.5, true},
		{"create, exec, destroy p50", "x floor", times_floor(b, ROW_CYCLE), 3, true},
		{"create, exec, destroy p50", "x bwrap", times_bwrap(b, ROW_CYCLE), 0.5,
			b->rows[ROW_BWRAP].count > 0},
		{"creation of a burst", "s", (double)b->burst.create_us / 1e6, 1, true},
		{"failures in the burst", "", b->burst.failed, 0, true},
		{"memory of an idle sandbox", "MiB", b->density.kib_each / 1024, 1,
			b->density.kib_each > 0}, /* else others freed more meanwhile */
		{"server's idle RSS", "MB", (double)server_rss_kib(b) * 1024 / 1e6, 12, true},
		{"E2B's SDK: create, run, kill p50", "ms", row_ms(b, ROW_E2B_CYCLE, 50), 10,
			b->rows[ROW_E2B_CYCLE].count > 0},
		{"E2B's SDK: many of them at once", "s", (double)b->sdk.parallel_us / 1e6, 1,
			b->sdk.parallel > 0},
		{"a write inside to its byte here p50", "ms", sample_ms(&b->streams.latency, 50), 1,
			b->streams.latency.count > 0},
		{"streams at once that stalled", "", b->streams.count - b->streams.ended, 0,
			b->streams.count > 0},
		/* The other way round: at least. */
		{"a large file down", "s/GB", per_gigabyte(b->duel.down), 1, b->duel.down > 0},
		{"a large file up", "s/GB", per_gigabyte(b->duel.up), 1 / 0.6, b->duel.up > 0},
	};
	memcpy(out, targets, sizeof targets);
	for (enum duel_row row = 0; row < DUEL_COUNT; row++)
		out[TARGET_COUNT - DUEL_COUNT + row] = (struct target){duel_rows[row].name,
			"x sandbox-agent", duel_ratio(b, row), 1, b->duel.peer[row].count > 0};
}

static const char *verdict(const struct target *t)
{
	return !t->measured ? "not measured" : t->value <= t->limit ? "PASS" : "MISS";
}

/* ---- text ---- */

static void print_row(const struct bench *b, enum row row)
{
	if (b->skipped[row][0]) {
		printf("%-40s skipped: %s\n", rows[row].name, b->skipped[row]);
		return;
	}
	printf("%-40s %9.2f %9.2f %8.2f %6zu\n", rows[row].name, row_ms(b, row, 50),
		row_ms(b, row, 99), times_floor(b, row), b->rows[row].count);
}

static void print_rows(const struct bench *b, const char *title, enum row first, enum row end)
{
	printf("%-40s %9s %9s %8s %6s\n", title, "p50 ms", "p99 ms", "x floor", "n");
	for (enum row row = first; row < end; row++)
		print_row(b, row);
	printf("\n");
}

static void print_process(const char *name, const struct memory *m)
{
	printf("  %-38s RSS %5ld KiB, PSS %5ld KiB\n", name, m->rss_kib, m->pss_kib);
}

static void print_scale(const struct bench *b)
{
	const struct burst *u = &b->burst;
	const struct density *d = &b->density;
	const struct footprint *f = &b->footprint;
	printf("%u sandboxes at once: created in %.3f s, created and used in %.3f s, destroyed in %.3f s, "
	       "%u failed\n",
		u->count, (double)u->create_us / 1e6, (double)(u->create_us + u->exec_us) / 1e6,
		(double)u->destroy_us / 1e6, u->failed);
	printf("create, exec, destroy per second:");
	for (size_t i = 0; i < THROUGHPUT_COUNT; i++)
		printf("%s %.0f with %u client%s", i ? "," : "", b->throughput[i].per_second,
			b->throughput[i].clients, b->throughput[i].clients == 1 ? "" : "s");
	printf("\n%u idle sandboxes: %.0f KiB each (%.0f KiB each came back; kernel %.0f KiB, init's PSS "
	       "%.0f KiB); create p50 %.2f ms\n",
		d->count, d->kib_each, d->kib_freed_each, d->kernel_kib_each, d->init_pss_kib,
		(double)d->create_p50_us / 1000);
	printf("server, idle: binary %ld KiB, init %ld KiB\n", f->binary_kib, f->init_kib);
	print_process("front", &f->front);
	print_process("warden", &f->warden);
	print_process("sweeper", &f->sweeper);
	printf("\n");
}

static void print_duel(const struct bench *b)
{
	const struct duel *d = &b->duel;
	printf("%-40s %9s %9s %9s %9s %8s\n", "beside sandbox-agent 0.4.2 (no isolation)", "p50 ms",
		"p99 ms", "its p50", "its p99", "x peer");
	if (d->skipped[0]) {
		printf("skipped: %s\n\n", d->skipped);
		return;
	}
	for (enum duel_row row = 0; row < DUEL_COUNT; row++)
		printf("%-40s %9.3f %9.3f %9.3f %9.3f %8.2f\n", duel_rows[row].name,
			sample_ms(&d->ours[row], 50), sample_ms(&d->ours[row], 99),
			sample_ms(&d->peer[row], 50), sample_ms(&d->peer[row], 99),
			duel_ratio(b, row));
	printf("a file of %.0f MiB: down %.0f MB/s (the peer %.0f MB/s), up %.0f MB/s (the peer takes 2 MB)\n\n",
		(double)d->size / 1048576, d->down / 1e6, d->peer_down / 1e6, d->up / 1e6);
}

static void print_streams(const struct bench *b)
{
	const struct streams *s = &b->streams;
	if (s->skipped[0]) {
		printf("output as it comes: skipped: %s\n\n", s->skipped);
		return;
	}
	printf("output as it comes: from a write inside to its byte here p50 %.3f ms, p99 %.3f ms\n",
		sample_ms(&s->latency, 50), sample_ms(&s->latency, 99));
	printf("%u streams at once: %u came to their end, p50 %.3f ms, p99 %.3f ms, longest gap %.0f ms (of 100)\n\n",
		s->count, s->ended, sample_ms(&s->many, 50), sample_ms(&s->many, 99),
		(double)s->longest_gap_us / 1000);
}

static void print_targets(const struct bench *b)
{
	struct target targets[TARGET_COUNT];
	fill_targets(b, targets);
	printf("%-40s %9s %9s\n", "target", "measured", "at most");
	for (size_t i = 0; i < TARGET_COUNT; i++) {
		char name[64];
		snprintf(name, sizeof name, "%s%s%s", targets[i].name,
			targets[i].unit[0] ? ", " : "", targets[i].unit);
		printf("%-40s %9.2f %9.2f   %s\n", name, targets[i].value, targets[i].limit,
			verdict(&targets[i]));
	}
}

/* Every stop of an exec waits behind whoever else wants a processor; the floor has one stop only.
 */
static void print_load(const struct bench *b)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	printf("%ld processors, load average %.2f before and %.2f after\n", processors, b->load[0],
		b->load[1]);
	if (b->load[0] > (double)processors / 2)
		printf("the machine was busy with something else: expect larger multiples than it can do\n");
	printf("\n");
}

void report_print(const struct bench *b)
{
	print_load(b);
	print_rows(b, "one interleaved run", ROW_FLOOR, ROW_IDLE_FLOOR);
	print_rows(b, "from idle (100 ms pause before each)", ROW_IDLE_FLOOR, ROW_E2B_CYCLE);
	print_rows(b, "E2B's SDK, in Node", ROW_E2B_CYCLE, ROW_COUNT);
	if (b->sdk.parallel)
		printf("%u of them at once: %.3f s\n\n", b->sdk.parallel,
			(double)b->sdk.parallel_us / 1e6);
	print_duel(b);
	print_streams(b);
	print_scale(b);
	print_targets(b);
}

/* ---- JSON ---- */

static void add_rows(cJSON *array, const struct bench *b)
{
	for (enum row row = 0; row < ROW_COUNT; row++) {
		cJSON *item = cJSON_CreateObject();
		cJSON_AddStringToObject(item, "subject", rows[row].key);
		if (b->skipped[row][0]) {
			cJSON_AddStringToObject(item, "skipped", b->skipped[row]);
		} else {
			cJSON_AddNumberToObject(item, "p50Ms", row_ms(b, row, 50));
			cJSON_AddNumberToObject(item, "p99Ms", row_ms(b, row, 99));
			cJSON_AddNumberToObject(item, "timesFloor", times_floor(b, row));
			cJSON_AddNumberToObject(item, "samples", (double)b->rows[row].count);
		}
		cJSON_AddItemToArray(array, item);
	}
}

static void add_targets(cJSON *array, const struct bench *b)
{
	struct target targets[TARGET_COUNT];
	fill_targets(b, targets);
	for (size_t i = 0; i < TARGET_COUNT; i++) {
		cJSON *item = cJSON_CreateObject();
		cJSON_AddStringToObject(item, "target", targets[i].name);
		cJSON_AddStringToObject(item, "unit", targets[i].unit);
		cJSON_AddNumberToObject(item, "measured", targets[i].value);
		cJSON_AddNumberToObject(item, "atMost", targets[i].limit);
		cJSON_AddStringToObject(item, "verdict", verdict(&targets[i]));
		cJSON_AddItemToArray(array, item);
	}
}

static void add_duel(cJSON *root, const struct bench *b)
{
	const struct duel *d = &b->duel;
	cJSON *duel = cJSON_AddObjectToObject(root, "sandboxAgent");
	if (d->skipped[0])
		cJSON_AddStringToObject(duel, "skipped", d->skipped);
	for (enum duel_row row = 0; row < DUEL_COUNT && !d->skipped[0]; row++) {
		cJSON *item = cJSON_AddObjectToObject(duel, duel_rows[row].key);
		cJSON_AddNumberToObject(item, "p50Ms", sample_ms(&d->ours[row], 50));
		cJSON_AddNumberToObject(item, "p99Ms", sample_ms(&d->ours[row], 99));
		cJSON_AddNumberToObject(item, "peerP50Ms", sample_ms(&d->peer[row], 50));
		cJSON_AddNumberToObject(item, "peerP99Ms", sample_ms(&d->peer[row], 99));
		cJSON_AddNumberToObject(item, "timesPeer", duel_ratio(b, row));
	}
	cJSON_AddNumberToObject(duel, "downBytesPerSecond", d->down);
	cJSON_AddNumberToObject(duel, "peerDownBytesPerSecond", d->peer_down);
	cJSON_AddNumberToObject(duel, "upBytesPerSecond", d->up);
	cJSON *streams = cJSON_AddObjectToObject(root, "streams");
	cJSON_AddNumberToObject(streams, "latencyP50Ms", sample_ms(&b->streams.latency, 50));
	cJSON_AddNumberToObject(streams, "latencyP99Ms", sample_ms(&b->streams.latency, 99));
	cJSON_AddNumberToObject(streams, "atOnce", b->streams.count);
	cJSON_AddNumberToObject(streams, "ended", b->streams.ended);
	cJSON_AddNumberToObject(streams, "longestGapMs", (double)b->streams.longest_gap_us / 1000);
}

static void add_memory(cJSON *parent, const char *name, const struct memory *m)
{
	cJSON *item = cJSON_AddObjectToObject(parent, name);
	cJSON_AddNumberToObject(item, "rssKiB", (double)m->rss_kib);
	cJSON_AddNumberToObject(item, "pssKiB", (double)m->pss_kib);
}

static void add_scale(cJSON *root, const struct bench *b)
{
	const struct footprint *f = &b->footprint;
	cJSON *burst = cJSON_AddObjectToObject(root, "burst");
	cJSON_AddNumberToObject(burst, "count", b->burst.count);
	cJSON_AddNumberToObject(burst, "failed", b->burst.failed);
	cJSON_AddNumberToObject(burst, "createMs", (double)b->burst.create_us / 1000);
	cJSON_AddNumberToObject(burst, "execMs", (double)b->burst.exec_us / 1000);
	cJSON_AddNumberToObject(burst, "destroyMs", (double)b->burst.destroy_us / 1000);
	cJSON *throughput = cJSON_AddArrayToObject(root, "throughput");
	for (size_t i = 0; i < THROUGHPUT_COUNT; i++) {
		cJSON *item = cJSON_CreateObject();
		cJSON_AddNumberToObject(item, "clients", b->throughput[i].clients);
		cJSON_AddNumberToObject(item, "perSecond", b->throughput[i].per_second);
		cJSON_AddItemToArray(throughput, item);
	}
	cJSON *idle = cJSON_AddObjectToObject(root, "idleSandboxes");
	cJSON_AddNumberToObject(idle, "count", b->density.count);
	cJSON_AddNumberToObject(idle, "kibEach", b->density.kib_each);
	cJSON_AddNumberToObject(idle, "kibFreedEach", b->density.kib_freed_each);
	cJSON_AddNumberToObject(idle, "kernelKiBEach", b->density.kernel_kib_each);
	cJSON_AddNumberToObject(idle, "initPssKiB", b->density.init_pss_kib);
	cJSON_AddNumberToObject(idle, "createP50Ms", (double)b->density.create_p50_us / 1000);
	cJSON *server = cJSON_AddObjectToObject(root, "server");
	add_memory(server, "front", &f->front);
	add_memory(server, "warden", &f->warden);
	add_memory(server, "sweeper", &f->sweeper);
	cJSON_AddNumberToObject(server, "binaryKiB", (double)f->binary_kib);
	cJSON_AddNumberToObject(server, "initKiB", (double)f->init_kib);
}

int report_write_json(const struct bench *b)
{
	cJSON *root = cJSON_CreateObject();
	cJSON_AddNumberToObject(root, "loadBefore", b->load[0]);
	cJSON_AddNumberToObject(root, "loadAfter", b->load[1]);
	add_rows(cJSON_AddArrayToObject(root, "rows"), b);
	add_duel(root, b);
	add_scale(root, b);
	cJSON *sdk = cJSON_AddObjectToObject(root, "e2b");
	cJSON_AddNumberToObject(sdk, "parallel", b->sdk.parallel);
	cJSON_AddNumberToObject(sdk, "parallelMs", (double)b->sdk.parallel_us / 1000);
	add_targets(cJSON_AddArrayToObject(root, "targets"), b);
	char *text = cJSON_Print(root);
	cJSON_Delete(root);
	bool written = text && fprintf(b->options.json, "%s\n", text) > 0;
	if (fclose(b->options.json) != 0)
		written = false;
	cJSON_free(text);
	return written ? 0 : bench_fail("cannot write the JSON: %s", strerror(errno));
}
