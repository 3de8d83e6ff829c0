#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/target.h"
#include "client/answer.h"
#include "model/sandbox.h"

static void print_pairs(const char *title, const struct bunker_pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		autobuf text = {0};
		buf_printf(&text, "%s=%s", pairs[i].name, pairs[i].value);
		autofree char *line = buf_take_str(&text);
		cli_table_print_field(title, line);
	}
}

static void print_sandbox(const struct bunker_sandbox *s)
{
	for (size_t i = 0; i < sandbox_model.count; i++) {
		const struct field *f = &sandbox_model.fields[i];
		char number[32], time[40];
		const char *text = f->title ? client_answer_text(s->json, f->name, number) : NULL;
		autobuf list = {0};
		if (f->title && f->kind == FIELD_LIST) {
			client_answer_list(s->json, f->name, &list);
			text = list.failed ? NULL : list.data;
		}
		if (f->title && f->kind == FIELD_HEADERS) {
			client_answer_headers(s->json, f->name, &list);
			text = list.failed ? NULL : list.data;
		}
		if (text && f->kind == FIELD_MICROS) {
			snprintf(time, sizeof time, "%.1f ms", strtod(text, NULL));
			text = time;
		}
		if (text && *text)
			cli_table_print_field(f->title, text);
	}
	print_pairs("env", s->env, s->env_count);
	print_pairs("metadata", s->metadata, s->metadata_count);
}

static int info_get(struct bunker *b, const char *id, void *sandbox, struct bunker_error *e)
{
	return bunker_get(b, id, sandbox, e);
}

static int run_info(struct arguments *args)
{
	struct bunker *b;
	struct bunker_sandbox sandbox;
	struct bunker_error e;
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_FAILED;
	int r = cli_target_apply(b, args->operands[0], info_get, &sandbox, &e);
	bunker_close(b);
	if (r < 0) {
		cli_session_report(args, &e);
		return STATUS_FAILED;
	}
	autofree char *json = args->json ? bunker_json_text(sandbox.json) : NULL;
	if (json)
		puts(json);
	else
		print_sandbox(&sandbox);
	bunker_sandbox_finish(&sandbox);
	return 0;
}

static const struct option *const info_options[] = {
	cli_connection_options, cli_common_options, NULL};

const struct command cmd_info = {
	.name = "info",
	.summary = "show everything about one sandbox",
	.usage = "[options] SANDBOX",
	.description =
		"Shows the state, limits, times and labels of a sandbox, given by id or name.",
	.examples = "  bunker info work\n"
		    "  bunker info --json work",
	.options = info_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.run = run_info,
};
