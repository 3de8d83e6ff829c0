/* bunker net: what a sandbox may reach, what it reached, and what was refused. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/job.h"
#include "cli/table.h"
#include "client/answer.h"

#define OTHERS "(others)"

struct net_view {
	const struct job *job;
	struct table table;
	struct bunker_destination totals; /* of the numbers */
	size_t count;
	cJSON *list; /* with --json */
};

static void net_format_host(const struct bunker_destination *d, char *out, size_t size)
{
	bool is_v6 = strchr(d->host, ':') != NULL;
	if (d->is_other)
		snprintf(out, size, OTHERS);
	else if (d->port)
		snprintf(out, size, is_v6 ? "[%s]:%" PRId64 : "%s:%" PRId64, d->host, d->port);
	else
		snprintf(out, size, "%s", d->host);
}

static void net_add_row(struct table *t, const struct bunker_destination *d)
{
	char host[320], numbers[3][24], in[SIZE_TEXT], out[SIZE_TEXT], age[AGE_SIZE];
	const int64_t counts[] = {d->connections, d->failed, d->refused};
	net_format_host(d, host, sizeof host);
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		snprintf(numbers[i], sizeof numbers[i], "%" PRId64, counts[i]);
	cli_table_format_size((double)d->bytes_in, in);
	cli_table_format_size((double)d->bytes_out, out);
	cli_table_format_age(d->used_at, age);
	cli_table_add(t, (const char *const[]){host, numbers[0], numbers[1], numbers[2], in, out,
				 age, d->address});
}

static int net_take(void *arg, const struct bunker_destination *d)
{
	struct net_view *v = arg;
	v->count++;
	v->totals.connections += d->connections;
	v->totals.failed += d->failed;
	v->totals.refused += d->refused;
	v->totals.bytes_in += d->bytes_in;
	v->totals.bytes_out += d->bytes_out;
	if (v->list)
		cJSON_AddItemToArray(
			v->list, cJSON_Duplicate(client_answer_from_json(d->json), true));
	else
		net_add_row(&v->table, d);
	return 0;
}

/* ---- once ---- */

static void net_print_policy(const struct bunker_json *network)
{
	static const char *const lists[] = {"allow", "deny"};
	char number[32];
	const char *mode = client_answer_text(network, "mode", number);
	cli_table_print_field("network", mode ? mode : "");
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		autobuf text = {0};
		client_answer_list(network, lists[i], &text);
		if (!text.failed && text.data[0])
			cli_table_print_field(lists[i], text.data);
	}
}

static void net_print_totals(const struct net_view *v)
{
	char text[128], in[SIZE_TEXT], out[SIZE_TEXT];
	cli_table_format_size((double)v->totals.bytes_in, in);
	cli_table_format_size((double)v->totals.bytes_out, out);
	snprintf(text, sizeof text, "%" PRId64 " connections, %s in, %s out", v->totals.connections,
		in, out);
	cli_table_print_field("reached", text);
	snprintf(text, sizeof text, "%" PRId64, v->totals.refused);
	cli_table_print_field("refused", text);
}

static int net_print_json(struct net_view *v, struct bunker_json *network)
{
	autojson *whole = cJSON_CreateObject();
	cJSON_AddItemToObject(whole, "network", client_answer_from_json(network));
	cJSON_AddItemToObject(whole, "destinations", take_ptr(v->list));
	autofree char *text = cJSON_PrintUnformatted(whole);
	puts(text ? text : "");
	return 0;
}

static int net_show(struct job *j, struct bunker_error *e)
{
	struct net_view v = {.job = j, .table.columns = 8};
	struct bunker_json *network;
	if (bunker_get_network(j->bunker, j->sandbox, &network, e) < 0)
		return -1;
	v.list = j->args->json ? cJSON_CreateArray() : NULL;
	cli_table_add(&v.table, (const char *const[]){"DESTINATION", "CONNECTIONS", "FAILED",
					"REFUSED", "IN", "OUT", "USED", "ADDRESS"});
	int r = bunker_destinations(j->bunker, j->sandbox, false, net_take, &v, e);
	if (r < 0) {
		bunker_json_free(network);
		cJSON_Delete(v.list);
		cli_table_free(&v.table);
		return r;
	}
	if (j->args->json) {
		cli_table_free(&v.table);
		return net_print_json(&v, network);
	}
	net_print_policy(network);
	net_print_totals(&v);
	bunker_json_free(network);
	if (v.count > 0) {
		putchar('\n');
		cli_table_show(&v.table);
	} else {
		cli_table_free(&v.table);
	}
	return 0;
}

/* ---- live ---- */

static int net_print_change(void *arg, const struct bunker_destination *d)
{
	const struct job *j = arg;
	char host[320], in[SIZE_TEXT], out[SIZE_TEXT];
	if (!cli_job_print_json(j, d->json)) {
		net_format_host(d, host, sizeof host);
		cli_table_format_size((double)d->bytes_in, in);
		cli_table_format_size((double)d->bytes_out, out);
		printf("%s  %s  connections=%" PRId64 " failed=%" PRId64 " refused=%" PRId64
		       " in=%s out=%s%s%s\n",
			d->used_at, host, d->connections, d->failed, d->refused, in, out,
			d->address[0] ? " address=" : "", d->address);
	}
	return fflush(stdout) != 0;
}

static int net_follow(struct job *j, struct bunker_error *e)
{
	int r = bunker_destinations(j->bunker, j->sandbox, true, net_print_change, j, e);
	return r < 0 && strcmp(e->code, BUNKER_STOPPED) == 0 ? 0 : r;
}

static int net_work(struct job *j, struct bunker_error *e)
{
	return j->args->follow ? net_follow(j, e) : net_show(j, e);
}

static const struct option net_option[] = {
	{'f', "follow", NULL, OPTION_FLAG, offsetof(struct arguments, follow),
		"go on with each destination as it changes, until the sandbox has ended"},
	{0},
};

static const struct option *const net_options[] = {
	net_option, cli_connection_options, cli_common_options, NULL};

const struct command cmd_net = {
	.name = "net",
	.summary = "show what a sandbox reached, and what was refused",
	.usage = "[options] SANDBOX",
	.description =
		"Shows what a sandbox may reach, and each destination that it used or was refused,\n"
		"last used first: its name, or its address where no name was said. The 256 that were\n"
		"used last are kept, the others are counted together. Numbers are about a second old.\n"
		"With --follow, a line for each destination whenever it has changed.",
	.examples = "  bunker net work\n"
		    "  bunker net --follow --json work",
	.options = net_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.in_sandbox = true,
	.work = net_work,
};
