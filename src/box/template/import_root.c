/*
 * The end of an import: what every sandbox needs is put right in /image, the builder's disk is
 * kept, and the image's configuration becomes the template's settings.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "box/sandbox/trust.h"
#include "box/template/import_parts.h"

static void import_take_config(struct import *i)
{
	struct build *build = i->job->build;
	struct settings *s = &build->settings;
	const struct image_config *c = &i->config;
	if (!i->has_config)
		return;
	for (const char *const *env = c->env; *env; env++)
		settings_set_env(s, *env);
	settings_set_text(&s->workdir, c->workdir);
	settings_set_list(&s->entrypoint, c->entrypoint);
	settings_set_list(&s->command, c->command);
	settings_set_list(&s->ports, c->ports);
	/* "user:group": sandboxes have the user's own groups. */
	char user[64];
	snprintf(user, sizeof user, "%.*s", (int)strcspn(c->user, ":"), c->user);
	settings_set_text(&s->user, user);
}

static void import_kept(struct build_job *job)
{
	struct build *build = job->build;
	memcpy(build->root, job->layer, ID_SIZE);
	struct layer *layer = layer_find(job->catalogue, build->root);
	build->bytes = layer ? layer->bytes : 0;
	import_take_config(job->import);
	build_job_end(job);
}

/* A call has ended. */
static void import_go_on(struct import *i, const struct error *e, void (*next)(struct import *i))
{
	i->call = NULL;
	if (e)
		import_fail(i, e);
	else
		next(i);
}

static void import_keep(struct import *i)
{
	build_job_keep(i->job, "", import_kept);
}

static void import_trusted(void *arg, const struct file_result *result, const struct error *e)
{
	(void)result;
	import_go_on(arg, e, import_keep);
}

/* So that its sandboxes need not be given them at each boot, where a diff would show it. */
static void import_trust(struct import *i)
{
	static const struct file_events events = {.done = import_trusted};
	autofree char *section = trust_section(i->job->builder);
	struct file_request request = {
		.fixed = {.op = FILE_TRUST},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = "/image", [FILE_EXTRA] = section},
	};
	if (section[0])
		import_do_call(i, &request, &events);
	else
		import_keep(i);
}

static void import_settled(void *arg, const struct file_result *result, const struct error *e)
{
	(void)result;
	import_go_on(arg, e, import_trust);
}

/* Adds mount points, the user `user` and the files that name hosts. */
static void import_settle_root(struct import *i)
{
	static const struct file_events events = {.done = import_settled};
	static const struct file_request request = {
		.fixed = {.op = FILE_ROOT},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = "/image"},
	};
	build_log(i->job->build, "info", BUILD_STEP_BASE, "preparing the root");
	import_do_call(i, &request, &events);
}

static void import_source_gone(void *arg, const struct file_result *result, const struct error *e)
{
	(void)result;
	import_go_on(arg, e, import_settle_root);
}

void import_remove_source(struct import *i)
{
	static const struct file_events events = {
		.entry = import_ignore_entry, .done = import_source_gone};
	static const struct file_request request = {
		.fixed = {.op = FILE_REMOVE, .flags = FILE_RECURSIVE | FILE_EXIST_OK},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = "/import"},
	};
	import_do_call(i, &request, &events);
}

void import_take_root(struct import *i)
{
	static const struct file_events events = {
		.entry = import_ignore_entry, .done = import_source_gone};
	static const struct file_request request = {
		.fixed = {.op = FILE_MOVE},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = "/import", [FILE_OTHER] = "/image"},
	};
	build_log(i->job->build, "info", BUILD_STEP_BASE, "it is a root");
	import_do_call(i, &request, &events);
}
