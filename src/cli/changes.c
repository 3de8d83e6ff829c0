#include "cli/changes.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "cli/report.h"
#include "cli/session.h"
#include "cli/target.h"

struct changing {
	const struct arguments *args;
	change_fn *move;
	struct bunker_sandbox sandbox;
};

static int changes_apply(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	struct changing *m = arg;
	return m->move(b, id, m->args, &m->sandbox, e);
}

static void changes_print(const struct changing *m)
{
	const struct bunker_sandbox *s = &m->sandbox;
	autofree char *json = m->args->json ? bunker_json_text(s->json) : NULL;
	if (json)
		puts(json);
	else if (*s->terminates_at)
		printf("%s %s, ends at %s\n", s->id, s->status, s->terminates_at);
	else
		printf("%s %s\n", s->id, s->status);
}

int cli_change_sandboxes(const struct arguments *args, int count, change_fn *move)
{
	struct changing m = {.args = args, .move = move};
	struct bunker *b;
	struct bunker_error e;
	int status = 0;
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_FAILED;
	for (int i = 0; i < count; i++) {
		if (cli_target_apply(b, args->operands[i], changes_apply, &m, &e) < 0) {
			cli_session_report(args, &e);
			status = STATUS_FAILED;
			continue;
		}
		changes_print(&m);
		bunker_sandbox_finish(&m.sandbox);
	}
	bunker_close(b);
	return status;
}
