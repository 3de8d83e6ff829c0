#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/table.h"

#define REDRAW_US 100000
#define BAR_WIDTH 24

static void draw_bar(const struct progress *p)
{
	char bar[BAR_WIDTH + 1];
	uint64_t done = p->done < p->total ? p->done : p->total;
	size_t filled = (size_t)((double)done / (double)p->total * BAR_WIDTH);
	memset(bar, ' ', BAR_WIDTH);
	memset(bar, '=', filled);
	if (filled < BAR_WIDTH)
		bar[filled] = '>';
	bar[BAR_WIDTH] = '\0';
	fprintf(stderr, " [%s] %3.0f%%", bar, (double)done * 100 / (double)p->total);
}

static void progress_draw(struct progress *p)
{
	char done[SIZE_TEXT], rate[SIZE_TEXT];
	double seconds = (double)(p->drawn_us - p->began_us) / 1e6;
	cli_table_format_size((double)p->done, done);
	cli_table_format_size(seconds > 0 ? (double)p->done / seconds : 0, rate);
	fprintf(stderr, "\r%s", p->what);
	if (p->total > 0)
		draw_bar(p);
	fprintf(stderr, " %s, %s/s\033[K", done, rate);
	fflush(stderr);
}

void cli_progress_begin(struct progress *p, const char *what, uint64_t total, bool quiet)
{
	*p = (struct progress){.shown = !quiet && isatty(STDERR_FILENO),
		.what = what,
		.total = total,
		.began_us = clock_monotonic_us()};
}

void cli_progress_add(struct progress *p, uint64_t bytes)
{
	int64_t now = clock_monotonic_us();
	p->done += bytes;
	if (!p->shown || now - p->drawn_us < REDRAW_US)
		return;
	p->drawn_us = now;
	progress_draw(p);
}

void cli_progress_end(struct progress *p)
{
	if (p->shown && p->drawn_us)
		fputs("\r\033[K", stderr);
	p->shown = false;
}
