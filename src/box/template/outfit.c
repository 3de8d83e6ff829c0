#include "box/template/outfit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/scratch.h"
#include "box/sandbox/later.h"
#include "box/sandbox/network.h"
#include "box/sandbox/object.h"

/* "name", or "name:tag" as it was asked for. */
static char *shown_name(const struct template *t, const char *ref)
{
	const char *tag = ref && !id_is_valid(ref) ? strchr(ref, ':') : NULL;
	autobuf name = {0};
	buf_append_str(&name, t->name);
	if (tag)
		buf_append_str(&name, tag);
	buf_require(&name);
	return buf_take_str(&name);
}

static void set_default(const char **text, const char *value)
{
	if (!(*text)[0] && value)
		sandbox_set_text(text, value);
}

void outfit_add_env(struct sandbox *s, const char *env, size_t len)
{
	struct settings all = {0};
	buf_append(&all.env, env ? env : "", len);
	for (size_t at = 0; at < s->env.len; at += strlen(s->env.data + at) + 1)
		settings_set_env(&all, s->env.data + at);
	free(s->env.data);
	s->env = (struct strings){all.env.data, all.env.len};
}

void outfit_sandbox(struct sandbox *s, const struct sandbox_spec *spec, const struct template *t,
	const struct build *build)
{
	free((char *)s->template_name);
	s->template_name = shown_name(t, spec->template_name);
	if (build) {
		memcpy(s->build, build->id, ID_SIZE);
		memcpy(s->root, build->root, ID_SIZE);
		memcpy(s->layer, build->layer, ID_SIZE);
		outfit_add_env(s, build->settings.env.data, build->settings.env.len);
		set_default(&s->workdir, build->settings.workdir);
	}
	if (!spec->user) {
		sandbox_set_text(
			&s->user, build && build->settings.user ? build->settings.user : "user");
	}
}

/* ---- packages ---- */

static bool is_package(const char *text, const char *allowed)
{
	size_t len = strlen(text);
	return len > 0 && len <= 200 && text[0] != '-' && text[0] != '.' && text[0] != '/' &&
	       strspn(text, allowed) == len && !strstr(text, "..");
}

static int check_list(
	const char *const *list, const char *field, const char *allowed, struct error *e)
{
	size_t count = 0;
	for (; list && *list; list++, count++)
		if (!is_package(*list, allowed) || count == INSTALL_MAX)
			return error_set_field(e, ERROR_INVALID_FIELD, field,
				count == INSTALL_MAX ? "\"%s\" has more than 200 packages"
						     : "\"%s\" holds what is no package's name",
				field);
	return count > 0;
}

int install_check(struct box *b, const struct sandbox_spec *spec, struct error *e)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789";
	char apt[sizeof letters + 16], npm[sizeof letters + 16];
	snprintf(apt, sizeof apt, "%s+-.:=~_", letters);
	snprintf(npm, sizeof npm, "%s+-.@/^~_", letters);
	int dependencies = check_list(spec->dependencies, "dependencies", apt, e);
	int packages = check_list(spec->packages, "packages", npm, e);
	if (dependencies < 0 || packages < 0)
		return -1;
	bool has_network = network_grant(b, b->config.build_network, true) != NETWORK_NONE;
	if ((dependencies || packages) && !has_network)
		return error_set_field(e, ERROR_UNAVAILABLE,
			dependencies ? "dependencies" : "packages",
			"nothing can be installed: builds on this server have no network "
			"(bunker serve --build-network open, on a host that bunker doctor finds fit for it)");
	return dependencies || packages;
}

struct install {
	struct sandbox *sandbox;
	struct build *build;
	struct build_watcher watcher;
	sandbox_done_fn *done;
	void *arg;
};

/* The shell gets the names as arguments, never as text. */
static const char *const *outfit_command(
	struct scratch *memory, const char *script, const char *const *packages)
{
	size_t count = 0;
	while (packages[count])
		count++;
	const char **argv = scratch_alloc(memory, (count + 5) * sizeof *argv);
	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = script;
	argv[3] = "install";
	memcpy(argv + 4, packages, count * sizeof *argv);
	return argv;
}

/* Complaints, without what is only a warning. */
static void note_line(void *arg, const struct build_log_entry *entry)
{
	char *text = arg;
	size_t used = strlen(text);
	if (strcmp(entry->level, "warn") == 0 && strncmp(entry->message, "W:", 2) != 0)
		snprintf(text + used, 160 - used, "%s%s", used ? "; " : "", entry->message);
}

static void describe_failure(struct build *build, struct error *e)
{
	char said[160] = "";
	uint64_t entries = build->log.entries;
	build_log_read(build, entries > 12 ? entries - 12 : 0, 12, note_line, said);
	error_set(e, ERROR_BUILD_FAILED, "the packages could not be installed: %s (%s)",
		build->reason ? build->reason : "", said);
}

static void build_changed_status(void *arg)
{
	struct install *i = arg;
	struct build *build = i->build;
	struct error e;
	bool ready = build->status == BUILD_READY;
	if (build->status < BUILD_READY)
		return;
	if (ready)
		memcpy(i->sandbox->layer, build->layer, ID_SIZE);
	else
		describe_failure(build, &e);
	i->done(i->arg, ready ? NULL : &e);
	build_unwatch(build, &i->watcher);
	free(i);
}

static void failed_at_once(void *arg, const struct error *e)
{
	struct install *i = arg;
	i->done(i->arg, e);
	build_unwatch(i->build, &i->watcher);
	free(i);
}

void install_begin(
	struct sandbox *s, const struct sandbox_spec *spec, sandbox_done_fn *done, void *arg)
{
	static const char *const quiet[] = {"DEBIAN_FRONTEND=noninteractive", NULL};
	autoscratch memory = {0};
	struct build_step steps[2];
	struct error e;
	size_t count = 0;
	if (spec->dependencies && spec->dependencies[0])
		steps[count++] = (struct build_step){.kind = BUILD_RUN,
			.user = "root",
			.mode = -1,
			.env = quiet,
			.argv = outfit_command(&memory,
				"apt-get -q update && exec apt-get -q -y install "
				"--no-install-recommends -- \"$@\"",
				spec->dependencies)};
	if (spec->packages && spec->packages[0])
		steps[count++] = (struct build_step){.kind = BUILD_RUN,
			.user = "root",
			.mode = -1,
			.argv = outfit_command(
				&memory, "exec npm install -g -- \"$@\"", spec->packages)};
	struct install *i = mem_new(sizeof *i);
	*i = (struct install){.sandbox = s, .done = done, .arg = arg};
	i->build = build_unnamed(s->box->catalogue, s->tenant);
	i->watcher = (struct build_watcher){.changed = build_changed_status, .arg = i};
	build_watch(i->build, &i->watcher);
	struct build_spec build = {
		.from = s->build[0] ? s->build : NULL, .steps = steps, .step_count = count};
	if (build_start(i->build, &build, &e) < 0)
		box_answer_later(s->box, failed_at_once, i, &e);
}
