#include "cli/waiting.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/report.h"

#define GRACE "2s"

/* What a handler says; it cannot format. Written before the handlers are there. */
static char notice[256];

static void waiting_format(const struct waiting *w, char *text, size_t size)
{
	snprintf(text, size, "%s goes on as PID %lld; to end it: bunker kill %s %lld", w->id,
		(long long)w->pid, w->target, (long long)w->pid);
}

/* The signal ends us as if there were no handler: who waits for us sees what it was. */
static void waiting_end(int number)
{
	if (write(STDERR_FILENO, notice, strlen(notice)) < 0)
		notice[0] = '\0';
	signal(number, SIG_DFL);
	raise(number);
}

void cli_waiting_prepare(void)
{
	signal(SIGPIPE, SIG_IGN);
}

void cli_waiting_started(void *arg, const char *sandbox_id, const char *id, int64_t pid)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct waiting *w = arg;
	const struct sigaction ends = {.sa_handler = waiting_end, .sa_flags = SA_RESETHAND};
	char text[sizeof notice - 16];
	snprintf(w->sandbox, sizeof w->sandbox, "%s", sandbox_id);
	snprintf(w->id, sizeof w->id, "%s", id);
	w->pid = pid;
	waiting_format(w, text, sizeof text);
	snprintf(notice, sizeof notice, "\nbunker: %s\n", text);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		struct sigaction before;
		/* What the parent ignores, as nohup does, stays ignored. */
		if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(numbers[i], &ends, NULL);
	}
}

void cli_waiting_report(const struct waiting *w)
{
	char text[sizeof notice];
	waiting_format(w, text, sizeof text);
	cli_report("%s", text);
}

void cli_waiting_report_lost(const struct waiting *w, const struct bunker_error *e)
{
	bool lost = strcmp(e->code, BUNKER_CONNECTION_LOST) == 0 ||
		    strcmp(e->code, BUNKER_NO_SERVER) == 0;
	if (lost && w->id[0])
		cli_report(
			"the command goes on; its output: bunker logs -f %s %s", w->target, w->id);
}

void cli_waiting_kill(struct bunker *b, const struct waiting *w)
{
	struct bunker_process process;
	if (!w->id[0] || bunker_process_signal(b, w->sandbox, w->id, "TERM", true, NULL) < 0)
		return;
	if (bunker_process_get(b, w->sandbox, w->id, GRACE, &process, NULL) < 0)
		return;
	if (strcmp(process.status, "running") == 0)
		bunker_process_kill(b, w->sandbox, w->id, NULL);
	bunker_process_finish(&process);
}
