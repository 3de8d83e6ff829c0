/* bunker port: what listens in a sandbox, its URL, and a local port that leads there. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/forward.h"
#include "cli/job.h"
#include "cli/table.h"

#define AT(member) offsetof(struct arguments, port.member)

/* ---- all of them ---- */

static void port_print_table(const struct bunker_port_list *list)
{
	struct table t = {.columns = 6};
	cli_table_add(
		&t, (const char *const[]){"PORT", "ADDRESS", "PUBLIC", "PID", "COMMAND", "URL"});
	for (size_t i = 0; i < list->count; i++) {
		const struct bunker_port *p = &list->items[i];
		char port[24], pid[24];
		snprintf(port, sizeof port, "%lld", (long long)p->port);
		snprintf(pid, sizeof pid, "%lld", (long long)p->pid);
		cli_table_add(
			&t, (const char *const[]){port, p->address, p->is_public ? "yes" : "no",
				    p->pid ? pid : "-", *p->command ? p->command : "-", p->url});
	}
	cli_table_show(&t);
}

static int port_list(struct job *j, struct bunker_error *e)
{
	struct bunker_port_list list;
	if (bunker_port_list(j->bunker, j->sandbox, &list, e) < 0)
		return -1;
	autofree char *json = j->args->json ? bunker_port_list_json(&list) : NULL;
	if (json)
		puts(json);
	else
		port_print_table(&list);
	bunker_port_list_finish(&list);
	return 0;
}

/* ---- one of them ---- */

/* Hands the URL to the desktop's own opener. Returns JOB_SAID if there is none. */
static int port_open_url(const char *url)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		execlp("xdg-open", "xdg-open", url, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) ||
		WEXITSTATUS(status) != 0) {
		cli_report("xdg-open could not open %s", url);
		return JOB_SAID;
	}
	return 0;
}

/* Returns whether the options ask for one thing at most. */
static bool port_options_agree(const struct arguments *args)
{
	return (args->port.open_to_all != 0) + (args->port.close != 0) +
		       (args->port.token != NULL) + (args->port.revoke != NULL) +
		       (args->port.forward != NULL) <=
	       1;
}

static int port_change(
	struct job *j, int64_t number, struct bunker_port *ret, struct bunker_error *e)
{
	const struct arguments *args = j->args;
	if (args->port.open_to_all || args->port.close)
		return bunker_port_set_public(
			j->bunker, j->sandbox, number, args->port.open_to_all, ret, e);
	if (args->port.token)
		return bunker_port_create_token(
			j->bunker, j->sandbox, number, args->port.token, ret, e);
	return bunker_port_get(j->bunker, j->sandbox, number, ret, e);
}

static int port_show(struct job *j, int64_t number, struct bunker_error *e)
{
	struct bunker_port port;
	if (port_change(j, number, &port, e) < 0)
		return -1;
	if (!cli_job_print_json(j, port.json)) {
		if (*port.id)
			fprintf(stderr, "bunker: token %s, good until %s\n", port.id,
				port.expires_at);
		puts(port.url);
	}
	int r = j->args->port.open ? port_open_url(port.url) : 0;
	bunker_port_finish(&port);
	return r;
}

static int port_parse(const char *text, int64_t *ret)
{
	char *end;
	*ret = strtol(text, &end, 10);
	if (*text >= '1' && *text <= '9' && !*end && *ret <= 65535)
		return 0;
	cli_report("a port is a number from 1 to 65535, not \"%s\"", text);
	return JOB_MISUSED;
}

static int port_work(struct job *j, struct bunker_error *e)
{
	const struct arguments *args = j->args;
	int64_t number;
	if (!port_options_agree(args)) {
		cli_report(
			"--public, --private, --token, --revoke and --forward exclude each other");
		return JOB_MISUSED;
	}
	if (!j->rest[0]) {
		if (!args->port.open_to_all && !args->port.close && !args->port.token &&
			!args->port.revoke && !args->port.forward && !args->port.open)
			return port_list(j, e);
		cli_report("these options need a port behind the sandbox");
		return JOB_MISUSED;
	}
	int r = port_parse(j->rest[0], &number);
	if (r < 0)
		return r;
	if (args->port.revoke)
		return bunker_port_revoke_token(
			j->bunker, j->sandbox, number, args->port.revoke, e);
	if (args->port.forward)
		return cli_forward_run(j->bunker, j->sandbox, number, args->port.forward, e);
	return port_show(j, number, e);
}

static const struct option port_option[] = {
	{'o', "open", NULL, OPTION_FLAG, AT(open), "open the URL in the desktop's browser, too"},
	{'f', "forward", "[ADDRESS:]LOCAL", OPTION_STRING, AT(forward),
		"listen on a port of this machine, and pass each connection on, until interrupted"},
	{0, "public", NULL, OPTION_FLAG, AT(open_to_all), "let everyone see it"},
	{0, "private", NULL, OPTION_FLAG, AT(close), "no longer"},
	{'t', "token", "TIME", OPTION_STRING, AT(token),
		"print a URL that shows it for that long, such as 10m, to whoever has it"},
	{0, "revoke", "ID", OPTION_STRING, AT(revoke), "take a token back"},
	{0},
};

static const struct option *const port_options[] = {
	port_option, cli_connection_options, cli_common_options, NULL};

const struct command cmd_port = {
	.name = "port",
	.summary = "see what listens in a sandbox, from here or by a URL",
	.usage = "[options] SANDBOX [PORT]",
	.description =
		"Without PORT, lists the TCP ports on which something listens, with the process.\n"
		"With it, prints the URL of the port's preview, whether or not something listens yet.\n"
		"A preview asks for a key unless the port is public or the URL has a token. --forward\n"
		"passes bytes of any protocol; LOCAL is on 127.0.0.1 unless an address is given, and 0\n"
		"takes a free port.",
	.examples = "  bunker port work\n"
		    "  bunker port work 3000 --token 10m --open\n"
		    "  bunker port work 5432 --forward 15432",
	.options = port_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 2,
	.in_sandbox = true,
	.work = port_work,
};
