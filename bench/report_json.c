/* One finished run as JSON, for programs. */
#include "report.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void add_rows(cJSON *array, const struct bench *b)
{
	for (enum row row = 0; row < ROW_COUNT; row++) {
		cJSON *item = cJSON_CreateObject();
		cJSON_AddStringToObject(item, "subject", row_names[row].key);
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
	targets_fill(b, targets);
	for (size_t i = 0; i < TARGET_COUNT; i++) {
		cJSON *item = cJSON_CreateObject();
		cJSON_AddStringToObject(item, "target", targets[i].name);
		cJSON_AddStringToObject(item, "unit", targets[i].unit);
		cJSON_AddNumberToObject(item, "measured", targets[i].value);
		cJSON_AddNumberToObject(item, "atMost", targets[i].limit);
		cJSON_AddStringToObject(item, "verdict", target_verdict(&targets[i]));
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
		cJSON *item = cJSON_AddObjectToObject(duel, duel_names[row].key);
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
	add_memory(server, "keeper", &f->keeper);
	add_memory(server, "sweeper", &f->sweeper);
	cJSON_AddNumberToObject(server, "binaryKiB", (double)f->binary_kib);
	cJSON_AddNumberToObject(server, "initKiB", (double)f->init_kib);
	cJSON_AddNumberToObject(server, "firstStartMs", (double)f->first_start_us / 1000);
	cJSON_AddNumberToObject(server, "startP50Ms", sample_ms(&f->start, 50));
}

static void add_times(cJSON *parent, const char *name, const struct samples *s)
{
	cJSON *item = cJSON_AddObjectToObject(parent, name);
	cJSON_AddNumberToObject(item, "p50Ms", sample_ms(s, 50));
	cJSON_AddNumberToObject(item, "p99Ms", sample_ms(s, 99));
	cJSON_AddNumberToObject(item, "samples", (double)s->count);
}

static void add_disks(cJSON *root, const struct bench *b)
{
	const struct disks *d = &b->disks;
	cJSON *disks = cJSON_AddObjectToObject(root, "disks");
	cJSON *sizes = cJSON_AddArrayToObject(disks, "workspaces");
	for (size_t size = 0; size < DISK_SIZES; size++) {
		cJSON *item = cJSON_CreateObject();
		cJSON_AddNumberToObject(item, "files", d->files);
		cJSON_AddNumberToObject(item, "bytes", (double)d->bytes[size]);
		for (enum disk_row row = 0; row < DISK_COUNT; row++)
			add_times(item, disk_names[row].key, &d->took[size][row]);
		cJSON_AddItemToArray(sizes, item);
	}
	cJSON_AddNumberToObject(disks, "forkCount", d->fork_count);
	add_times(disks, "forks", &d->forks);
	add_times(disks, "pause", &d->pause);
	add_times(disks, "resume", &d->resume);
	add_times(disks, "suspend", &d->suspend);
	add_times(disks, "boot", &d->boot);
}

static void add_growth(cJSON *root, const struct bench *b)
{
	const struct growth *g = &b->growth;
	cJSON *growth = cJSON_AddObjectToObject(root, "growth");
	cJSON *levels = cJSON_AddArrayToObject(growth, "alive");
	for (unsigned i = 0; i < g->count; i++) {
		cJSON *item = cJSON_CreateObject();
		cJSON_AddNumberToObject(item, "sandboxes", g->levels[i].alive);
		add_times(item, "create", &g->levels[i].create);
		cJSON_AddNumberToObject(item, "restartMs", (double)g->levels[i].restart_us / 1000);
		cJSON_AddNumberToObject(item, "idleMsPerSecond", g->levels[i].idle_ms_per_s);
		cJSON_AddItemToArray(levels, item);
	}
	cJSON_AddNumberToObject(growth, "ended", b->options.past);
	add_times(growth, "listOfFew", &g->list_few);
	add_times(growth, "listOfAll", &g->list_many);
	add_times(growth, "create", &g->create);
	add_times(growth, "createBesideLists", &g->create_beside_lists);
	add_times(growth, "createDuringExpiry", &g->create_during_expiry);
	add_times(growth, "exec", &g->exec);
	add_times(growth, "execInBurntQuota", &g->exec_burning);
}

int report_write_json(const struct bench *b)
{
	cJSON *root = cJSON_CreateObject();
	cJSON_AddNumberToObject(root, "loadBefore", b->load[0]);
	cJSON_AddNumberToObject(root, "loadAfter", b->load[1]);
	add_growth(root, b);
	add_rows(cJSON_AddArrayToObject(root, "rows"), b);
	add_duel(root, b);
	add_scale(root, b);
	add_disks(root, b);
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
