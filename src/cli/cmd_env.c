/*
 * bunker env DIALECT: the variables that point a foreign SDK at this server, as lines for a shell.
 * Each dialect is a row of a table.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/session.h"

enum value_kind {
	VALUE_URL, /* the server's, and the suffix */
	VALUE_KEY, /* the key's body behind the prefix in `text` */
	VALUE_WORD /* the text itself */
};

struct variable {
	const char *name;
	enum value_kind kind;
	const char *text;
};

struct dialect {
	const char *name;
	struct variable variables[12]; /* a NULL name ends */
	/* Some clients want nothing but hexadecimal digits in a key, unless this is set to false.
	 */
	const char *key_check;
};

static const struct dialect dialects[] = {
	{.name = "e2b",
		.variables = {{"E2B_API_URL", VALUE_URL, ""}, {"E2B_SANDBOX_URL", VALUE_URL, ""},
			{"E2B_VOLUME_API_URL", VALUE_URL, ""}, {"E2B_API_KEY", VALUE_KEY, "e2b_"}},
		.key_check = "E2B_VALIDATE_API_KEY"},
	/* The SDK needs the first three, Agentuity's command line the rest. */
	{.name = "agentuity",
		.variables = {{"AGENTUITY_SANDBOX_URL", VALUE_URL, "/agentuity"},
			{"AGENTUITY_STREAM_URL", VALUE_URL, "/agentuity/input"},
			{"AGENTUITY_SDK_KEY", VALUE_KEY, "bnk_"},
			{"AGENTUITY_CLI_API_KEY", VALUE_KEY, "bnk_"},
			{"AGENTUITY_API_URL", VALUE_URL, "/agentuity"},
			{"AGENTUITY_APP_URL", VALUE_URL, "/agentuity"},
			{"AGENTUITY_TRANSPORT_URL", VALUE_URL, "/agentuity"},
			{"AGENTUITY_USER_ID", VALUE_WORD, "bunker"},
			{"AGENTUITY_REGION", VALUE_WORD, "local"},
			{"AGENTUITY_CLOUD_ORG_ID", VALUE_WORD, "default"},
			{"AGENTUITY_SKIP_VERSION_CHECK", VALUE_WORD, "1"}}},
};

static const struct dialect *find_dialect(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(dialects); i++)
		if (strcmp(dialects[i].name, name) == 0)
			return &dialects[i];
	return NULL;
}

/* A word that the shell leaves alone. */
static void print_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*text);
	}
	putchar('\'');
}

static void env_add(cJSON *to, const char *name, const char *first, const char *second)
{
	autobuf value = {0};
	buf_append_str(&value, first);
	buf_append_str(&value, second);
	buf_append_char(&value, '\0');
	if (!value.failed)
		cJSON_AddStringToObject(to, name, value.data);
}

/* The server takes a key's body behind any prefix it knows. */
static const char *env_key_body(const char *key)
{
	static const char *const prefixes[] = {"bnk_", "e2b_"};
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0)
			return key + strlen(prefixes[i]);
	return key;
}

static cJSON *make_variables(const struct dialect *d, const char *url, const char *key)
{
	const char *body = env_key_body(key);
	cJSON *variables = cJSON_CreateObject();
	for (const struct variable *v = d->variables; v->name; v++)
		env_add(variables, v->name, v->kind == VALUE_URL ? url : v->text,
			v->kind == VALUE_URL   ? v->text
			: v->kind == VALUE_KEY ? body
					       : "");
	if (d->key_check && strspn(body, "0123456789abcdef") != strlen(body))
		env_add(variables, d->key_check, "false", "");
	return variables;
}

static void print_lines(const cJSON *variables)
{
	const cJSON *variable;
	cJSON_ArrayForEach(variable, variables)
	{
		fputs("export ", stdout);
		fputs(variable->string, stdout);
		putchar('=');
		print_quoted(variable->valuestring);
		putchar('\n');
	}
}

static int run_env(struct arguments *args)
{
	const struct dialect *d = find_dialect(args->operands[0]);
	autofree char *url = NULL, *key = NULL;
	if (!d) {
		cli_report("there is no dialect \"%s\"; see: bunker help env", args->operands[0]);
		return STATUS_USAGE;
	}
	if (cli_session_resolve(args, &url, &key) < 0)
		return STATUS_FAILED;
	cJSON *variables = make_variables(d, url, key);
	autofree char *json = args->json ? cJSON_Print(variables) : NULL;
	if (json)
		puts(json);
	else
		print_lines(variables);
	cJSON_Delete(variables);
	return 0;
}

static const struct option *const env_options[] = {
	cli_connection_options, cli_common_options, NULL};

const struct command cmd_env = {
	.name = "env",
	.summary = "print the variables that point another SDK at this server",
	.usage = "[options] DIALECT",
	.description =
		"Prints lines for a shell that make the SDK of DIALECT talk to this server instead\n"
		"of its maker's. Dialects:\n\n"
		"  e2b        e2b and @e2b/code-interpreter\n"
		"  agentuity  @agentuity/server, and Agentuity's command line",
	.examples = "  eval \"$(bunker env e2b)\"",
	.options = env_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.run = run_env,
};
