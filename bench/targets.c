/* Numbers made of a run's samples, and what the project wants of them. */
#include "report.h"

#include <string.h>

const struct row_name row_names[ROW_COUNT] = {
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
	[ROW_E2B_FLOOR] = {"the same, to a server that only replays", "e2b.floor"},
};

const struct row_name duel_names[DUEL_COUNT] = {
	[DUEL_HEALTH] = {"health", "health"},
	[DUEL_READ_1K] = {"read a file of 1 KiB", "read1k"},
	[DUEL_READ_1M] = {"read a file of 1 MiB", "read1m"},
	[DUEL_WRITE_1K] = {"write a file of 1 KiB", "write1k"},
	[DUEL_WRITE_1M] = {"write a file of 1 MiB", "write1m"},
	[DUEL_RUN] = {"run true", "run"},
};

const struct row_name disk_names[DISK_COUNT] = {
	[DISK_CHECKPOINT] = {"checkpoint", "checkpoint"},
	[DISK_SNAPSHOT] = {"snapshot", "snapshot"},
	[DISK_CREATE] = {"create from a snapshot", "createFromSnapshot"},
	[DISK_FORK] = {"fork", "fork"},
};

double sample_ms(const struct samples *s, unsigned percent)
{
	return (double)samples_percentile(s, percent) / 1000;
}

double row_ms(const struct bench *b, enum row row, unsigned percent)
{
	return sample_ms(&b->rows[row], percent);
}

static bool is_idle(enum row row)
{
	return row >= ROW_IDLE_FLOOR && row < ROW_E2B_CYCLE;
}

double times_floor(const struct bench *b, enum row row)
{
	double floor = row_ms(b, is_idle(row) ? ROW_IDLE_FLOOR : ROW_FLOOR, 50);
	return floor > 0 ? row_ms(b, row, 50) / floor : 0;
}

static double times_bwrap(const struct bench *b, enum row row)
{
	double bwrap = row_ms(b, ROW_BWRAP, 50);
	return bwrap > 0 ? row_ms(b, row, 50) / bwrap : 0;
}

double duel_ratio(const struct bench *b, enum duel_row row)
{
	double peer = sample_ms(&b->duel.peer[row], 50);
	return peer > 0 ? sample_ms(&b->duel.ours[row], 50) / peer : 0;
}

double disk_ms(const struct bench *b, size_t size, enum disk_row row)
{
	return sample_ms(&b->disks.took[size][row], 50);
}

double server_mb(const struct bench *b)
{
	const struct footprint *f = &b->footprint;
	long kib = f->front.rss_kib + f->warden.rss_kib + f->keeper.rss_kib + f->sweeper.rss_kib;
	return (double)kib * 1024 / 1e6;
}

static double per_gigabyte(double rate)
{
	return rate > 0 ? 1e9 / rate : 0;
}

void targets_fill(const struct bench *b, struct target out[TARGET_COUNT])
{
	const struct disks *d = &b->disks;
	const struct target targets[] = {
		{"exec p50", "x floor", times_floor(b, ROW_EXEC), 1.5, true},
		{"create, exec, destroy p50", "x floor", times_floor(b, ROW_CYCLE), 3, true},
		{"create, exec, destroy p50", "x bwrap", times_bwrap(b, ROW_CYCLE), 0.5,
			b->rows[ROW_BWRAP].count > 0},
		{"creation of a burst", "s", (double)b->burst.create_us / 1e6, 1, true},
		{"failures in the burst", "", b->burst.failed, 0, true},
		{"memory of an idle sandbox", "MiB", b->density.kib_each / 1024, 1,
			b->density.kib_each > 0}, /* else others freed more meanwhile */
		{"server's idle RSS", "MB", server_mb(b), 12, true},
		{"E2B's SDK: create, run, kill p50", "ms", row_ms(b, ROW_E2B_CYCLE, 50), 10,
			b->rows[ROW_E2B_CYCLE].count > 0},
		{"E2B's SDK: many of them at once", "s", (double)b->sdk.parallel_us / 1e6, 1,
			b->sdk.parallel > 0},
		{"a write inside to its byte here p50", "ms", sample_ms(&b->streams.latency, 50), 1,
			b->streams.latency.count > 0},
		{"streams at once that stalled", "", b->streams.count - b->streams.ended, 0,
			b->streams.count > 0},
		{"many forks in one call p50", "ms", sample_ms(&d->forks, 50), 200,
			d->forks.count > 0},
		{"pause p50", "ms", sample_ms(&d->pause, 50), 5, d->pause.count > 0},
		{"resume p50", "ms", sample_ms(&d->resume, 50), 5, d->resume.count > 0},
		/* The other way round: at least. */
		{"a large file down", "s/GB", per_gigabyte(b->duel.down), 1, b->duel.down > 0},
		{"a large file up", "s/GB", per_gigabyte(b->duel.up), 1 / 0.6, b->duel.up > 0},
	};
	_Static_assert(sizeof targets / sizeof targets[0] + DISK_COUNT + DUEL_COUNT == TARGET_COUNT,
		"one place for each target");
	memcpy(out, targets, sizeof targets);
	out += sizeof targets / sizeof targets[0];
	for (enum disk_row row = 0; row < DISK_COUNT; row++)
		*out++ = (struct target){disk_names[row].name, "ms at the largest size",
			disk_ms(b, DISK_SIZES - 1, row), 30,
			d->took[DISK_SIZES - 1][row].count > 0};
	for (enum duel_row row = 0; row < DUEL_COUNT; row++)
		*out++ = (struct target){duel_names[row].name, "x sandbox-agent",
			duel_ratio(b, row), 1, b->duel.peer[row].count > 0};
}

const char *target_verdict(const struct target *t)
{
	return !t->measured ? "not measured" : t->value <= t->limit ? "PASS" : "MISS";
}
