/*
 * Whether a sandbox may be made as it was asked for: template, limits, name. Above a maximum
 * is an error, not a silent cut.
 */
#include "box/core/admission.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "box/core/creation.h"
#include "box/disk/disks.h"
#include "box/sandbox/maxima.h"
#include "box/sandbox/network.h"
#include "box/sandbox/placeholder.h"
#include "box/template/outfit.h"

/* Zero stands for the default. */
static int settle_resources(struct box *b, struct resources *r, struct error *e)
{
	const struct resources *d = &b->config.defaults;
	r->memory = r->memory ? r->memory : d->memory;
	r->cpu = r->cpu ? r->cpu : d->cpu;
	r->pids = r->pids ? r->pids : d->pids;
	r->open_files = r->open_files ? r->open_files : d->open_files;
	if (r->disk && !b->has_quota)
		return error_set_field(e, ERROR_UNAVAILABLE, "resources.disk",
			"this server cannot limit a sandbox's disk: it has no file system with quotas "
			"(see bunker doctor)");
	r->disk = r->disk || !b->has_quota ? r->disk : d->disk;
	return maxima_check(b, r, e);
}

static int check_snapshot(struct box *b, const struct sandbox_spec *spec, struct error *e)
{
	const struct snapshot *s = snapshot_find(b, spec->tenant, spec->snapshot);
	if (!s)
		return error_set_field(e, ERROR_NOT_FOUND, "snapshot",
			"there is no snapshot '%.128s'", spec->snapshot);
	if (!s->found)
		return error_set_field(e, ERROR_INTERNAL, "snapshot",
			"the disk of the snapshot '%.128s' is gone", spec->snapshot);
	if (spec->template_name)
		return error_set_field(e, ERROR_INVALID_FIELD, "template",
			"a snapshot brings its template along: give one of the two");
	if (spec->dependencies || spec->packages)
		return error_set_field(e, ERROR_INVALID_FIELD,
			spec->dependencies ? "dependencies" : "packages",
			"a sandbox that begins with a snapshot installs nothing: put it into the snapshot");
	return 0;
}

const char *admission_template(struct box *b, const struct sandbox_spec *spec)
{
	const struct snapshot *s =
		spec->snapshot ? snapshot_find(b, spec->tenant, spec->snapshot) : NULL;
	const char *build = s ? s->build : spec->fork ? spec->fork->source->build : NULL;
	if (!build)
		return spec->template_name;
	return build[0] ? build : NULL;
}

enum network_mode admission_network(const struct box *b, const struct sandbox_spec *spec)
{
	if (!spec->has_network)
		return b->config.default_network;
	return network_grant(b, spec->network.mode, spec->network_is_wish);
}

int admission_check(
	struct box *b, const struct sandbox_spec *spec, struct resources *r, struct error *e)
{
	if (b->closing)
		return error_set(e, ERROR_UNAVAILABLE, "the server is shutting down");
	struct template *t;
	struct build *build;
	if (spec->snapshot && check_snapshot(b, spec, e) < 0)
		return -1;
	if (template_resolve(b, spec->tenant, admission_template(b, spec), &t, &build, e) < 0)
		return -1;
	if (build) {
		r->memory = r->memory ? r->memory : build->settings.memory;
		r->cpu = r->cpu ? r->cpu : build->settings.cpu;
	}
	struct network_settings network = spec->network;
	network.mode = admission_network(b, spec);
	if (network_check(b, spec->tenant, &network, e) < 0 ||
		placeholder_check(b, spec->tenant, &spec->env, e) < 0)
		return -1;
	if (install_check(b, spec, e) < 0 || settle_resources(b, r, e) < 0)
		return -1;
	if (spec->name && spec->name[0] && sandbox_find_named(b, spec->tenant, spec->name))
		return error_set_field(e, ERROR_NAME_TAKEN, "name",
			"a sandbox with the name '%.64s' exists already", spec->name);
	return 0;
}
