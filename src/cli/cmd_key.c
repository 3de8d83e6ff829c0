/* bunker key: a command of commands. */
#include <stdio.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "cli/job.h"
#include "cli/table.h"

static const struct command cmd_key_create, cmd_key_ls, cmd_key_rotate, cmd_key_revoke;
static const struct command *const key_parts[] = {
	&cmd_key_create, &cmd_key_ls, &cmd_key_rotate, &cmd_key_revoke, NULL};

const struct command cmd_key = {
	.name = "key",
	.summary = "API keys: who may use the server, and how far",
	.usage = "[options] [KEY]",
	.description =
		"Keys that can be taken back. Each is of one tenant and has a scope: read looks, use does\n"
		"everything with the tenant's sandboxes, admin has its keys as well. An admin of the tenant\n"
		"default, such as the CLI on the server's machine, has the keys of all tenants. KEY is an id,\n"
		"or a name of one's own tenant.",
	.parts = key_parts,
};

/* The key alone goes to stdout, for scripts; explanations go to stderr. */
static void key_print_text(const struct bunker_key *key)
{
	fprintf(stderr, "bunker: this is shown once; key %s, id %s, tenant %s, scope %s\n",
		key->name, key->id, key->tenant, key->scope);
	puts(key->key);
}

#define AT(member) offsetof(struct arguments, key.member)

static const struct option key_expires_option[] = {
	{'e', "expires", "TIME", OPTION_STRING, AT(expires),
		"it ends that long from now, such as 720h; without it, never"},
	{0},
};

/* ---- create ---- */

static int key_work_create(struct job *j, struct bunker_error *e)
{
	struct bunker_key key;
	const struct bunker_key_options options = {.name = j->rest[0],
		.tenant = j->args->key.tenant,
		.scope = j->args->key.scope,
		.expires_in = j->args->key.expires};
	if (bunker_key_create(j->bunker, &options, &key, e) < 0)
		return -1;
	if (!cli_job_print_json(j, key.json))
		key_print_text(&key);
	bunker_key_finish(&key);
	return 0;
}

static const struct option key_create_option[] = {
	{'s', "scope", "SCOPE", OPTION_STRING, AT(scope), "read, use or admin; use by default"},
	{'t', "tenant", "NAME", OPTION_STRING, AT(tenant),
		"whose it is to be; your own key's by default"},
	{0},
};

static const struct option *const key_create_options[] = {
	key_create_option, key_expires_option, cli_connection_options, cli_common_options, NULL};

static const struct command cmd_key_create = {
	.name = "key create",
	.summary = "make one",
	.usage = "[options] NAME",
	.description =
		"Makes a key and prints what is to be sent. The server keeps only a hash of it: it\n"
		"cannot be shown again.",
	.examples = "  bunker key create ci --expires 720h\n"
		    "  bunker key create dashboard --scope read --tenant alice",
	.options = key_create_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.work = key_work_create,
};

/* ---- ls ---- */

static const char *key_format_end(const char *expires_at, char out[AGE_SIZE])
{
	int64_t at;
	if (!expires_at[0] || clock_parse_rfc3339(expires_at, &at) < 0)
		return "never";
	int64_t left = (at - clock_wall_ms()) / 1000;
	if (left < 0)
		return "expired";
	if (left < 2 * 3600)
		snprintf(out, AGE_SIZE, "in %lldm", (long long)(left / 60));
	else if (left < 48 * 3600)
		snprintf(out, AGE_SIZE, "in %lldh", (long long)(left / 3600));
	else
		snprintf(out, AGE_SIZE, "in %lldd", (long long)(left / 86400));
	return out;
}

static void key_print_table(const struct bunker_key_list *list)
{
	struct table t = {.columns = 8};
	cli_table_add(&t, (const char *const[]){"NAME", "ID", "TENANT", "SCOPE", "ORIGIN", "AGE",
				  "USED", "EXPIRES"});
	for (size_t i = 0; i < list->count; i++) {
		const struct bunker_key *key = &list->items[i];
		char age[AGE_SIZE], used[AGE_SIZE], end[AGE_SIZE];
		cli_table_format_age(key->created_at, age);
		cli_table_format_age(key->last_used_at, used);
		cli_table_add(&t, (const char *const[]){key->name, key->id, key->tenant, key->scope,
					  key->origin, age, *key->last_used_at ? used : "never",
					  key_format_end(key->expires_at, end)});
	}
	cli_table_show(&t);
}

static int key_work_ls(struct job *j, struct bunker_error *e)
{
	struct bunker_key_list list;
	if (bunker_key_list(j->bunker, j->args->key.tenant, &list, e) < 0)
		return -1;
	autofree char *json = j->args->json ? bunker_key_list_json(&list) : NULL;
	if (json)
		puts(json);
	else
		key_print_table(&list);
	bunker_key_list_finish(&list);
	return 0;
}

static const struct option key_ls_option[] = {
	{'t', "tenant", "NAME", OPTION_STRING, AT(tenant), "only the keys of this one"},
	{0},
};

static const struct option *const key_ls_options[] = {
	key_ls_option, cli_connection_options, cli_common_options, NULL};

static const struct command cmd_key_ls = {
	.name = "key ls",
	.summary = "list them",
	.usage = "[options]",
	.description =
		"Lists all keys that you have: those of your key's tenant, or of all tenants.\n"
		"USED is to the minute.",
	.examples = "  bunker key ls\n"
		    "  bunker key ls --tenant alice --json",
	.options = key_ls_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.work = key_work_ls,
};

/* ---- rotate ---- */

static int key_work_rotate(struct job *j, struct bunker_error *e)
{
	struct bunker_key key;
	if (bunker_key_rotate(
		    j->bunker, j->rest[0], j->args->grace, j->args->key.expires, &key, e) < 0)
		return -1;
	if (!cli_job_print_json(j, key.json))
		key_print_text(&key);
	bunker_key_finish(&key);
	return 0;
}

static const struct option key_rotate_option[] = {
	{'g', "grace", "TIME", OPTION_STRING, offsetof(struct arguments, grace),
		"the old one is good for that long, at most 168h; without it, it ends at once"},
	{0},
};

static const struct option *const key_rotate_options[] = {
	key_rotate_option, key_expires_option, cli_connection_options, cli_common_options, NULL};

static const struct command cmd_key_rotate = {
	.name = "key rotate",
	.summary = "replace what is sent",
	.usage = "[options] KEY",
	.description =
		"Gives a key another text and prints it: id, name, tenant and scope stay. When the old one\n"
		"ends, what it has open is cut. The local key is replaced by removing api-key from the\n"
		"server's data directory and restarting it.",
	.examples = "  bunker key rotate ci --grace 1h",
	.options = key_rotate_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.work = key_work_rotate,
};

/* ---- revoke ---- */

static int key_work_revoke(struct job *j, struct bunker_error *e)
{
	int r = 0;
	for (char **ref = j->rest; r == 0 && *ref; ref++)
		r = bunker_key_revoke(j->bunker, *ref, e);
	return r;
}

static const struct option *const key_revoke_options[] = {
	cli_connection_options, cli_common_options, NULL};

static const struct command cmd_key_revoke = {
	.name = "key revoke",
	.summary = "take them back",
	.usage = "[options] KEY...",
	.description =
		"Ends keys for good. They are refused at once, and their streams and terminals are cut; the\n"
		"commands go on.",
	.examples = "  bunker key revoke ci",
	.options = key_revoke_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = OPERANDS_MANY,
	.work = key_work_revoke,
};
