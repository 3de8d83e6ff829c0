/*
 * bunker template build: a Dockerfile becomes steps for the server. Files are packed here, from the
 * directory, and sent if the server does not have them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/build_context.h"
#include "image/dockerfile.h"
#include "cli/template.h"

struct building {
	struct arguments *args;
	struct bunker *b;
	struct scratch memory;
	struct ignore ignore;
	struct dockerfile file;
	struct dockerfile_plan plan;
	struct bunker_build_step *steps;
	size_t step_count, step_capacity;
};

static int fail_at(const char *path, const struct dockerfile_error *e)
{
	if (e->line)
		return cli_report("%s:%d: %s", path, e->line, e->message);
	return cli_report("%s: %s", path, e->message);
}

/* ---- reading ---- */

static int read_dockerfile(struct building *g, const char *path, const char *const *build_args)
{
	autobuf text = {0};
	struct dockerfile_error e;
	int r = fd_read_file_at(AT_FDCWD, path, &text, DOCKERFILE_MAX);
	if (r < 0)
		return cli_report("%s: %s", path, strerror(-r));
	if (dockerfile_read(
		    text.data ? text.data : "", text.len, build_args, &g->memory, &g->file, &e) < 0)
		return fail_at(path, &e);
	return 0;
}

static int read_ignore(struct building *g)
{
	autobuf text = {0};
	int r = fd_read_file_at(AT_FDCWD, ".dockerignore", &text, 1 << 20);
	if (r < 0 && r != -ENOENT)
		return cli_report(".dockerignore: %s", strerror(-r));
	if (cli_ignore_parse(&g->ignore, text.data, text.len) < 0)
		return cli_report("out of memory");
	return 0;
}

/* The image that FROM names has variables that the Dockerfile may use. */
static int make_plan(struct building *g, const char *path)
{
	static const char default_path[] =
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	struct bunker_template_info info;
	struct bunker_error e;
	struct dockerfile_error wrong;
	if (bunker_template_resolve(g->b, g->file.from, &info, &e) < 0) {
		cli_session_report(g->args, &e);
		if (strcmp(e.code, "template_not_found") == 0)
			cli_report(
				"an image must be imported first: bunker template import docker://%s %s",
				g->file.from, g->file.from);
		return -1;
	}
	const char **env = scratch_alloc(&g->memory, (info.env_count + 2) * sizeof *env);
	env[0] = default_path;
	for (size_t i = 0; i < info.env_count; i++) {
		size_t size = strlen(info.env[i].name) + strlen(info.env[i].value) + 2;
		char *entry = scratch_alloc(&g->memory, size);
		snprintf(entry, size, "%s=%s", info.env[i].name, info.env[i].value);
		env[i + 1] = entry;
	}
	int r = dockerfile_plan(&g->file, env, &g->memory, &g->plan, &wrong);
	bunker_template_info_finish(&info);
	return r < 0 ? fail_at(path, &wrong) : 0;
}

/* ---- steps ---- */

static struct bunker_build_step *template_build_add_step(
	struct building *g, enum bunker_step_kind kind)
{
	if (g->step_count == g->step_capacity) {
		size_t capacity = g->step_capacity ? 2 * g->step_capacity : 64;
		struct bunker_build_step *grown =
			scratch_alloc(&g->memory, capacity * sizeof *grown);
		if (g->step_count)
			memcpy(grown, g->steps, g->step_count * sizeof *grown);
		g->steps = grown;
		g->step_capacity = capacity;
	}
	struct bunker_build_step *step = &g->steps[g->step_count++];
	*step = (struct bunker_build_step){.kind = kind, .mode = -1};
	return step;
}

static void add_copy(struct building *g, const struct dockerfile_step *from, const char *hash,
	const char *source, const char *path)
{
	struct bunker_build_step *step = template_build_add_step(g, BUNKER_STEP_COPY);
	char *context = scratch_alloc(&g->memory, BUILD_CONTEXT_HASH_SIZE);
	memcpy(context, hash, BUILD_CONTEXT_HASH_SIZE);
	step->context = context;
	step->source = source;
	step->path = path;
	step->owner = from->owner;
	step->mode = from->mode;
}

static int template_build_sent(struct building *g, int r, const struct bunker_error *e)
{
	if (r == -2)
		cli_session_report(g->args, e);
	return r < 0 ? -1 : 0;
}

/* An archive that ADD names is unpacked: into a directory, whatever the path looks like. */
static int add_archive(struct building *g, const struct dockerfile_step *from, const char *source)
{
	char hash[BUILD_CONTEXT_HASH_SIZE];
	struct bunker_error e;
	size_t size = strlen(from->path) + 2;
	char *path = scratch_alloc(&g->memory, size);
	snprintf(path, size, "%s/", from->path);
	if (template_build_sent(g, cli_build_context_send_archive(g->b, source, hash, &e), &e) < 0)
		return -1;
	add_copy(g, from, hash, ".", path);
	return 0;
}

static int add_copies(struct building *g, const struct dockerfile_step *from)
{
	const char *const *paths;
	char hash[BUILD_CONTEXT_HASH_SIZE];
	struct bunker_error e;
	if (cli_build_context_expand(from->sources, &g->memory, &paths) < 0)
		return -1;
	size_t count = 0, plain = 0;
	while (paths[count])
		count++;
	const char **packed = scratch_alloc(&g->memory, (count + 1) * sizeof *packed);
	if (count > 1 && from->path[strlen(from->path) - 1] != '/')
		return cli_report("%d: with more than one source the destination must end with '/'",
			from->line);
	for (size_t i = 0; i < count; i++) {
		if (from->unpack && cli_build_context_is_archive(paths[i])) {
			if (add_archive(g, from, paths[i]) < 0)
				return -1;
		} else {
			packed[plain++] = paths[i];
		}
	}
	if (plain == 0)
		return count ? 0 : cli_report("%d: there is nothing to copy", from->line);
	if (template_build_sent(g, cli_build_context_send(g->b, packed, &g->ignore, hash, &e), &e) <
		0)
		return -1;
	for (size_t i = 0; i < plain; i++)
		add_copy(g, from, hash, packed[i], from->path);
	return 0;
}

static int add_steps(struct building *g)
{
	for (size_t i = 0; i < g->plan.step_count; i++) {
		const struct dockerfile_step *from = &g->plan.steps[i];
		struct bunker_build_step *step;
		switch (from->kind) {
		case DOCKERFILE_COPY:
			if (add_copies(g, from) < 0)
				return -1;
			break;
		case DOCKERFILE_RUN:
			step = template_build_add_step(g, BUNKER_STEP_RUN);
			step->argv = from->argv;
			step->env = from->env;
			break;
		case DOCKERFILE_ENV:
			template_build_add_step(g, BUNKER_STEP_ENV)->env = from->env;
			break;
		case DOCKERFILE_WORKDIR:
			template_build_add_step(g, BUNKER_STEP_WORKDIR)->path = from->path;
			break;
		case DOCKERFILE_USER:
			step = template_build_add_step(g, BUNKER_STEP_USER);
			step->user = dockerfile_user(&g->memory, from->user);
			break;
		}
	}
	return 0;
}

/* ENTRYPOINT and CMD together, as a container would run them. */
static const char *const *start_of(struct building *g)
{
	const char *const *lists[] = {g->plan.entrypoint, g->plan.command};
	size_t count = 0;
	if (!lists[0] && !lists[1])
		return NULL;
	if (g->plan.entrypoint_is_line)
		return lists[0];
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (size_t k = 0; lists[i] && lists[i][k]; k++)
			count++;
	const char **argv = scratch_alloc(&g->memory, (count + 1) * sizeof *argv);
	count = 0;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (size_t k = 0; lists[i] && lists[i][k]; k++)
			argv[count++] = lists[i][k];
	return count ? argv : NULL;
}

/* Each option may hold several rules. NULL: there are none. */
static const char *const *rules_of(struct building *g, const struct option_list *given)
{
	size_t count = 0, room = 1;
	for (size_t i = 0; i < given->count; i++)
		room += strlen(given->items[i]) / 2 + 1;
	const char **rules = scratch_alloc(&g->memory, room * sizeof *rules);
	for (size_t i = 0; i < given->count; i++) {
		const char *at = given->items[i];
		for (at += strspn(at, ","); *at; at += strspn(at, ",")) {
			size_t len = strcspn(at, ",");
			char *rule = scratch_alloc(&g->memory, len + 1);
			memcpy(rule, at, len);
			rules[count++] = rule;
			at += len;
		}
	}
	return count ? rules : NULL;
}

static int template_build(struct building *g)
{
	struct bunker_build made;
	struct bunker_error e;
	struct bunker_build_options options = {
		.name = g->args->template.tag,
		.description = g->args->create.description,
		.from = g->file.from,
		.steps = g->steps,
		.step_count = g->step_count,
		.start = start_of(g),
		.entrypoint = g->plan.entrypoint,
		.command = g->plan.command,
		.ports = g->plan.ports,
		.ready = g->args->template.ready,
		.timeout = g->args->create.execution_timeout,
		.network = g->args->template.network,
		.network_allow = rules_of(g, &g->args->template.allow),
		.network_deny = rules_of(g, &g->args->template.deny),
		.no_cache = g->args->template.no_cache,
	};
	if (bunker_build_create(g->b, &options, &made, &e) < 0) {
		cli_session_report(g->args, &e);
		return STATUS_FAILED;
	}
	int status = cli_template_follow(g->args, g->b, made.id);
	bunker_build_finish(&made);
	return status;
}

/* NAME alone takes yours, as for -e. */
static const char *const *resolve_args(struct building *g)
{
	const struct option_list *given = &g->args->template.build_args;
	const char **list = scratch_alloc(&g->memory, (given->count + 1) * sizeof *list);
	size_t count = 0;
	for (size_t i = 0; i < given->count; i++) {
		const char *value = getenv(given->items[i]);
		if (strchr(given->items[i], '=')) {
			list[count++] = given->items[i];
		} else if (value) {
			size_t size = strlen(given->items[i]) + strlen(value) + 2;
			char *entry = scratch_alloc(&g->memory, size);
			snprintf(entry, size, "%s=%s", given->items[i], value);
			list[count++] = entry;
		}
	}
	return list;
}

/* The path of the Dockerfile is the user's, from where he stands: it is read before we move. */
static int template_build_prepare(struct building *g)
{
	autobuf path = {0};
	const char *directory = g->args->operands[0];
	if (g->args->template.file) {
		buf_append_str(&path, g->args->template.file);
	} else {
		buf_append_str(&path, directory);
		buf_append_str(&path, "/Dockerfile");
	}
	buf_append_char(&path, '\0');
	if (path.failed)
		return cli_report("out of memory");
	if (read_dockerfile(g, path.data, resolve_args(g)) < 0)
		return -1;
	if (cli_session_open(g->args, SESSION_STARTS_SERVER, &g->b) < 0 ||
		make_plan(g, path.data) < 0)
		return -1;
	if (chdir(directory) < 0)
		return cli_report("%s: %s", directory, strerror(errno));
	return read_ignore(g) < 0 ? -1 : add_steps(g);
}

static int run_build(struct arguments *args)
{
	struct building g = {.args = args};
	if (!args->template.tag) {
		cli_report("the template needs a name: -t NAME[:TAG]");
		return STATUS_USAGE;
	}
	int status = template_build_prepare(&g) < 0 ? STATUS_FAILED : template_build(&g);
	bunker_close(g.b);
	cli_ignore_finish(&g.ignore);
	scratch_finish(&g.memory);
	return status;
}

#define AT(member) offsetof(struct arguments, member)

static const struct option own_options[] = {
	{'t', "tag", "NAME[:TAG]", OPTION_STRING, AT(template.tag), "what it will be called"},
	{'f', "file", "PATH", OPTION_STRING, AT(template.file), "the Dockerfile [DIR/Dockerfile]"},
	{0, "build-arg", "K=V", OPTION_LIST, AT(template.build_args),
		"a value for ARG; K alone takes yours; repeatable"},
	{0, "network", "MODE", OPTION_STRING, AT(template.network),
		"what its steps may reach: none, open, allow or deny [the server's --build-network]"},
	{0, "allow", "RULE,…", OPTION_LIST, AT(template.allow),
		"reach these names, addresses and presets; alone it means --network allow"},
	{0, "deny", "RULE,…", OPTION_LIST, AT(template.deny),
		"with --network deny: do not reach these"},
	{0, "no-cache", NULL, OPTION_FLAG, AT(template.no_cache), "do every step again"},
	{0, "ready", "LINE", OPTION_STRING, AT(template.ready),
		"a shell line that succeeds once CMD is ready"},
	{0, "timeout", "TIME", OPTION_STRING, AT(create.execution_timeout),
		"for all of the build [1h]"},
	{0, "description", "TEXT", OPTION_STRING, AT(create.description), "a note for people"},
	{'q', "quiet", NULL, OPTION_FLAG, AT(quiet), "print the id of the build only"},
	{0},
};

static const struct option *const build_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_template_build = {
	.name = "template build",
	.summary = "make one of a Dockerfile",
	.usage = "-t NAME[:TAG] [options] DIR",
	.description =
		"Builds a template from DIR/Dockerfile in a sandbox, with the log on stderr, and prints\n"
		"the id of the build. FROM names a template; images are imported first. Understood are\n"
		"FROM, RUN, COPY, ADD of local files, ENV, WORKDIR, USER, ARG, CMD, ENTRYPOINT, EXPOSE.\n"
		"ENTRYPOINT and CMD are started in every sandbox of the template. Steps reach\n"
		"the internet unless --network, --allow or the server's --build-network says otherwise.\n"
		"Ctrl-C leaves it building; its id, for bunker template log, is in bunker template info.",
	.examples = "  bunker template build -t web:v1 .\n"
		    "  bunker template build -t web -f Dockerfile.dev --build-arg VERSION=2 .\n"
		    "  bunker template build -t web --allow preset:npm,preset:debian .",
	.options = build_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.run = run_build,
};
