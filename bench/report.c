/* The tables and the targets of one finished run, as text. */
#include "report.h"

#include <stdio.h>
#include <unistd.h>

static void print_row(const struct bench *b, enum row row)
{
	if (b->skipped[row][0]) {
		printf("%-40s skipped: %s\n", row_names[row].name, b->skipped[row]);
		return;
	}
	printf("%-40s %9.2f %9.2f %8.2f %6zu\n", row_names[row].name, row_ms(b, row, 50),
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
	printf("server, idle: %.1f MB resident (at most 12); binary %ld KiB, init %ld KiB\n",
		server_mb(b), f->binary_kib, f->init_kib);
	print_process("front", &f->front);
	print_process("warden", &f->warden);
	print_process("keeper", &f->keeper);
	print_process("sweeper", &f->sweeper);
	printf("server, start: the first %.0f ms, later ones p50 %.0f ms\n\n",
		(double)f->first_start_us / 1000, sample_ms(&f->start, 50));
}

static void print_times(const char *name, const struct samples *s, const char *aim)
{
	printf("%-40s %9.2f %9.2f %9s %6zu\n", name, sample_ms(s, 50), sample_ms(s, 99), aim,
		s->count);
}

static void print_disks(const struct bench *b)
{
	const struct disks *d = &b->disks;
	char title[64];
	snprintf(title, sizeof title, "a workspace of %u files, p50 ms", d->files);
	printf("%-40s", title);
	for (size_t size = 0; size < DISK_SIZES; size++)
		printf(" %6.1f MB", (double)d->bytes[size] / 1e6);
	printf(" %9s %6s\n", "at most", "n");
	for (enum disk_row row = 0; row < DISK_COUNT; row++) {
		printf("%-40s", disk_names[row].name);
		for (size_t size = 0; size < DISK_SIZES; size++)
			printf(" %9.2f", disk_ms(b, size, row));
		printf(" %9s %6zu\n", "30", d->took[0][row].count);
	}
	snprintf(title, sizeof title, "%u forks in one call", d->fork_count);
	printf("\n%-40s %9s %9s %9s %6s\n", "the largest of them", "p50 ms", "p99 ms", "at most",
		"n");
	print_times(title, &d->forks, "200");
	print_times("pause, with memory", &d->pause, "5");
	print_times("resume", &d->resume, "5");
	print_times("pause, disk only", &d->suspend, "");
	print_times("resume: a boot", &d->boot, "");
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
		printf("%-40s %9.3f %9.3f %9.3f %9.3f %8.2f\n", duel_names[row].name,
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
	targets_fill(b, targets);
	printf("%-40s %9s %9s\n", "target", "measured", "at most");
	for (size_t i = 0; i < TARGET_COUNT; i++) {
		char name[64];
		snprintf(name, sizeof name, "%s%s%s", targets[i].name,
			targets[i].unit[0] ? ", " : "", targets[i].unit);
		printf("%-40s %9.2f %9.2f   %s\n", name, targets[i].value, targets[i].limit,
			target_verdict(&targets[i]));
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

static double level_create(const struct growth_level *l)
{
	return sample_ms(&l->create, 50);
}

static double level_restart(const struct growth_level *l)
{
	return (double)l->restart_us / 1000;
}

static double level_idle(const struct growth_level *l)
{
	return l->idle_ms_per_s;
}

struct growth_row {
	const char *name;
	const struct samples *samples;
};

static void print_growth_rows(const char *title, const struct growth_row *rows, size_t count)
{
	printf("%-40s %9s %9s %9s %6s\n", title, "p50 ms", "p99 ms", "longest", "n");
	for (size_t i = 0; i < count; i++)
		printf("%-40s %9.2f %9.2f %9.2f %6zu\n", rows[i].name,
			sample_ms(rows[i].samples, 50), sample_ms(rows[i].samples, 99),
			sample_ms(rows[i].samples, 100), rows[i].samples->count);
}

static void print_growth(const struct bench *b)
{
	const struct growth *g = &b->growth;
	const struct growth_row past[] = {{"create, with none", &g->create},
		{"list, with a hundred", &g->list_few}, {"list, with all", &g->list_many},
		{"create, while somebody lists", &g->create_beside_lists},
		{"create, while all are forgotten", &g->create_during_expiry}};
	const struct growth_row quota[] = {{"exec of true, nothing else runs", &g->exec},
		{"exec of true, two loops burn cpu 1", &g->exec_burning}};
	printf("%-40s %9s %9s %10s %10s\n", "sandboxes alive", "create p50", "p99 ms", "restart ms",
		"idle ms/s");
	for (unsigned i = 0; i < g->count; i++)
		printf("%-40u %9.2f %9.2f %10.0f %10.1f\n", g->levels[i].alive,
			level_create(&g->levels[i]), sample_ms(&g->levels[i].create, 99),
			level_restart(&g->levels[i]), level_idle(&g->levels[i]));
	printf("%-40s %9.2f %9s %10.2f %10.2f\n\n", "exponent of the growth",
		growth_exponent(g, level_create), "", growth_exponent(g, level_restart),
		growth_exponent(g, level_idle));
	print_growth_rows("sandboxes that have ended", past, sizeof past / sizeof past[0]);
	printf("all are %u\n\n", b->options.past);
	print_growth_rows("a sandbox's own quota", quota, sizeof quota / sizeof quota[0]);
	printf("\n");
}

void report_print(const struct bench *b)
{
	print_load(b);
	if (b->options.growth_only) {
		print_growth(b);
		return;
	}
	print_rows(b, "one interleaved run", ROW_FLOOR, ROW_IDLE_FLOOR);
	print_rows(b, "from idle (100 ms pause before each)", ROW_IDLE_FLOOR, ROW_E2B_CYCLE);
	print_rows(b, "E2B's SDK, in Node", ROW_E2B_CYCLE, ROW_COUNT);
	if (b->sdk.parallel)
		printf("%u of them at once: %.3f s\n\n", b->sdk.parallel,
			(double)b->sdk.parallel_us / 1e6);
	print_duel(b);
	print_streams(b);
	print_disks(b);
	print_scale(b);
	print_growth(b);
	print_targets(b);
	report_print_readme(b);
}
