/* The README's table, with the numbers of this run, in the form in which it stands there. */
#include "report.h"

#include <stdio.h>

static void print_peers(const struct bench *b)
{
	static const enum row peers[] = {ROW_BWRAP, ROW_CRUN, ROW_RUNC, ROW_PODMAN};
	printf("| bwrap / crun / runc / podman, one `true` |");
	for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++)
		printf("%s %.3g", i ? " /" : "", row_ms(b, peers[i], 50));
	printf(" ms |");
	for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++)
		printf("%s %.3g", i ? " /" : "", times_floor(b, peers[i]));
	printf(" × floor |\n");
}

static void print_duel_rows(const struct bench *b)
{
	static const enum duel_row shown[] = {DUEL_READ_1K, DUEL_WRITE_1K, DUEL_RUN};
	const struct duel *d = &b->duel;
	printf("| read / write 1 KiB, run `true` |");
	for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
		printf("%s %.2f", i ? " /" : "", sample_ms(&d->ours[shown[i]], 50));
	printf(" ms |");
	for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
		printf("%s %.2f", i ? " /" : "", duel_ratio(b, shown[i]));
	printf(" × sandbox-agent 0.4.2, which isolates nothing |\n");
	printf("| a file of %.0f MiB, up / down | %.0f / %.0f MB/s | sandbox-agent: not possible / %.0f MB/s |\n",
		(double)d->size / 1048576, d->up / 1e6, d->down / 1e6, d->peer_down / 1e6);
}

static void print_disk_rows(const struct bench *b)
{
	const struct disks *d = &b->disks;
	printf("| checkpoint / snapshot / create from it / fork: %u files, %.0f MB |", d->files,
		(double)d->bytes[DISK_SIZES - 1] / 1e6);
	for (enum disk_row row = 0; row < DISK_COUNT; row++)
		printf("%s %.1f", row ? " /" : "", disk_ms(b, DISK_SIZES - 1, row));
	printf(" ms | %.0f MB:", (double)d->bytes[0] / 1e6);
	for (enum disk_row row = 0; row < DISK_COUNT; row++)
		printf("%s %.1f", row ? " /" : "", disk_ms(b, 0, row));
	printf(" ms |\n| %u forks in one call | %.0f ms | |\n", d->fork_count,
		sample_ms(&d->forks, 50));
	printf("| pause / resume with memory | %.1f / %.1f ms | disk only: %.1f / %.1f ms |\n",
		sample_ms(&d->pause, 50), sample_ms(&d->resume, 50), sample_ms(&d->suspend, 50),
		sample_ms(&d->boot, 50));
}

void report_print_readme(const struct bench *b)
{
	printf("\nfor README.md:\n\n| | p50 | beside it |\n|---|---|---|\n");
	printf("| `posix_spawn` of `true`, no isolation: the floor | %.2f ms | |\n",
		row_ms(b, ROW_FLOOR, 50));
	printf("| exec of `true` in a live sandbox, over HTTP | %.2f ms | %.1f × floor |\n",
		row_ms(b, ROW_EXEC, 50), times_floor(b, ROW_EXEC));
	printf("| create, exec, destroy, over HTTP | %.2f ms | %.1f × floor |\n",
		row_ms(b, ROW_CYCLE, 50), times_floor(b, ROW_CYCLE));
	print_peers(b);
	print_duel_rows(b);
	printf("| E2B's SDK in Node: create, run `true`, kill | %.1f ms | the SDK alone: %.1f ms |\n",
		row_ms(b, ROW_E2B_CYCLE, 50), row_ms(b, ROW_E2B_FLOOR, 50));
	print_disk_rows(b);
	/* By counters that others on the machine disturb less than what is free. */
	printf("| %u sandboxes at once | created in %.2f s | kernel and init: %.0f KiB each when idle |\n",
		b->burst.count, (double)b->burst.create_us / 1e6,
		b->density.kernel_kib_each + b->density.init_pss_kib);
	printf("| the server, idle | %.1f MB resident | starts in %.0f ms; the binary has %.1f MB |\n",
		server_mb(b), sample_ms(&b->footprint.start, 50),
		(double)b->footprint.binary_kib * 1024 / 1e6);
}
