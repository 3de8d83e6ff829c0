/*
 * The plan of a build: its spec, checked and copied into the job, and the keys of its steps. A
 * step's key is made of the previous key and of the step's text; a step whose layer is cached is
 * skipped, and so are those before it.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "box/sandbox/network.h"
#include "box/sandbox/object.h"
#include "box/template/build_job.h"

#define STEPS_MAX      500
#define STRINGS_MAX    (1u << 20) /* of a spec, together */
#define TIMEOUT_MAX_MS (INT64_C(24) * 3600 * 1000)

/* ---- the spec, checked and copied ---- */

struct copier {
	struct scratch *memory;
	size_t bytes;
};

static const char *build_plan_copy_text(struct copier *c, const char *text)
{
	if (!text)
		return NULL;
	size_t size = strlen(text) + 1;
	char *copy = scratch_alloc(c->memory, size);
	memcpy(copy, text, size);
	c->bytes += size;
	return copy;
}

static const char *const *copy_list(struct copier *c, const char *const *list)
{
	size_t count = 0;
	if (!list)
		return NULL;
	while (list[count])
		count++;
	const char **copy = scratch_alloc(c->memory, (count + 1) * sizeof *copy);
	for (size_t i = 0; i < count; i++)
		copy[i] = build_plan_copy_text(c, list[i]);
	c->bytes += count * sizeof *copy;
	return copy;
}

static void copy_spec(struct copier *c, const struct build_spec *from, struct build_spec *to)
{
	struct build_step *steps = scratch_alloc(c->memory, (from->step_count + 1) * sizeof *steps);
	for (size_t i = 0; i < from->step_count; i++) {
		steps[i] = from->steps[i];
		steps[i].argv = copy_list(c, from->steps[i].argv);
		steps[i].env = copy_list(c, from->steps[i].env);
		steps[i].user = build_plan_copy_text(c, from->steps[i].user);
		steps[i].context = build_plan_copy_text(c, from->steps[i].context);
		steps[i].source = build_plan_copy_text(c, from->steps[i].source);
		steps[i].path = build_plan_copy_text(c, from->steps[i].path);
	}
	*to = *from;
	to->steps = steps;
	to->from = build_plan_copy_text(c, from->from);
	to->start = copy_list(c, from->start);
	to->ready = build_plan_copy_text(c, from->ready);
	to->entrypoint = copy_list(c, from->entrypoint);
	to->command = copy_list(c, from->command);
	to->ports = copy_list(c, from->ports);
}

static int bad_step(struct error *e, size_t index, const char *what)
{
	char field[32];
	snprintf(field, sizeof field, "steps[%zu]", index);
	return error_set_field(e, ERROR_INVALID_FIELD, field, "step %zu %s", index + 1, what);
}

static int check_step(
	struct build_job *job, const struct build_step *step, size_t index, struct error *e)
{
	struct box *b = job->catalogue->box;
	switch (step->kind) {
	case BUILD_RUN:
		return step->argv && step->argv[0] && step->argv[0][0]
			       ? 0
			       : bad_step(e, index, "has no command");
	case BUILD_COPY:
		if (!step->path || !step->path[0] || !step->context)
			return bad_step(e, index, "needs a path and a context");
		if (!build_archive_exists(b, job->build->tenant, step->context))
			return error_set_field(e, ERROR_NOT_FOUND, "steps",
				"the files of step %zu were not uploaded, or are gone", index + 1);
		return 0;
	case BUILD_ENV:
		for (const char *const *env = step->env; env && *env; env++)
			if ((*env)[0] == '=' || !strchr(*env, '='))
				return bad_step(e, index, "has a variable that is not NAME=VALUE");
		return step->env ? 0 : bad_step(e, index, "has no variables");
	case BUILD_WORKDIR:
		return step->path && step->path[0] ? 0 : bad_step(e, index, "has no path");
	case BUILD_USER:
		return step->user && step->user[0] ? 0 : bad_step(e, index, "has no user");
	default:
		return bad_step(e, index, "is of no kind that there is");
	}
}

/* What a host cannot give is a wish where the client did not ask for it. */
static int plan_network(
	struct build_job *job, const struct network_settings *asked, struct error *e)
{
	struct box *b = job->catalogue->box;
	struct network_settings own = {.mode = network_grant(b, b->config.build_network, true)};
	if (asked && asked->mode != NETWORK_NONE && b->config.build_network == NETWORK_NONE)
		return error_set_field(e, ERROR_UNAVAILABLE, "network.mode",
			"builds on this server have no network (bunker serve --build-network open)");
	if (asked && network_check(b, job->build->tenant, asked, e) < 0)
		return -1;
	fields_copy(&network_model, 0, network_model.size, &job->network, asked ? asked : &own);
	job->spec.network = &job->network;
	return 0;
}

int build_plan_take(struct build_job *job, const struct build_spec *spec, struct error *e)
{
	struct copier copier = {.memory = &job->memory};
	if (spec->step_count > STEPS_MAX)
		return error_set_field(
			e, ERROR_INVALID_FIELD, "steps", "a build has %d steps at most", STEPS_MAX);
	if (spec->timeout_ms > TIMEOUT_MAX_MS)
		return error_set_field(
			e, ERROR_INVALID_FIELD, "timeout", "a build may take 24 hours at most");
	copy_spec(&copier, spec, &job->spec);
	if (copier.bytes > STRINGS_MAX)
		return error_set_field(e, ERROR_INVALID_FIELD, "steps",
			"the steps are longer than %u bytes together", STRINGS_MAX);
	for (size_t i = 0; i < spec->step_count; i++)
		if (check_step(job, &job->spec.steps[i], i, e) < 0)
			return -1;
	return plan_network(job, spec->network, e);
}

/* ---- keys ---- */

static void build_plan_hash_text(crypto_hash_sha256_state *state, const char *text)
{
	/* With its NUL, and NULL unlike "". */
	if (text)
		crypto_hash_sha256_update(state, (const unsigned char *)text, strlen(text) + 1);
	else
		crypto_hash_sha256_update(state, (const unsigned char *)"\1", 2);
}

static void hash_list(crypto_hash_sha256_state *state, const char *const *list)
{
	for (; list && *list; list++)
		build_plan_hash_text(state, *list);
	build_plan_hash_text(state, NULL);
}

static void end_key(crypto_hash_sha256_state *state, char out[LAYER_KEY_LEN + 1])
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_final(state, hash);
	sodium_bin2hex(out, LAYER_KEY_LEN + 1, hash, sizeof hash);
}

void build_plan_make_keys(struct build_job *job)
{
	const struct build_spec *spec = &job->spec;
	const char *before = job->from ? job->from->id : "base";
	job->keys = mem_new_array(spec->step_count + 1, sizeof *job->keys);
	for (size_t i = 0; i < spec->step_count; i++) {
		const struct build_step *step = &spec->steps[i];
		crypto_hash_sha256_state state;
		char numbers[32];
		crypto_hash_sha256_init(&state);
		build_plan_hash_text(&state, before);
		snprintf(numbers, sizeof numbers, "%d %d", (int)step->kind, step->mode);
		build_plan_hash_text(&state, numbers);
		hash_list(&state, step->argv);
		hash_list(&state, step->env);
		build_plan_hash_text(&state, step->user);
		build_plan_hash_text(&state, step->context);
		build_plan_hash_text(&state, step->source);
		build_plan_hash_text(&state, step->path);
		end_key(&state, job->keys[i]);
		before = job->keys[i];
	}
}

bool build_plan_makes_layer(const struct build_step *step)
{
	return step->kind == BUILD_RUN || step->kind == BUILD_COPY || step->kind == BUILD_WORKDIR;
}

size_t build_plan_cached(struct build_job *job)
{
	const struct build_spec *spec = &job->spec;
	size_t usable = 0;
	while (usable < spec->step_count && !spec->steps[usable].force)
		usable++;
	for (size_t n = spec->no_cache ? 0 : usable; n > 0; n--) {
		struct layer *layer =
			build_plan_makes_layer(&spec->steps[n - 1])
				? layer_cached(job->catalogue, job->build->tenant, job->keys[n - 1])
				: NULL;
		if (layer && strcmp(layer->root, job->root) == 0) {
			memcpy(job->layer, layer->id, ID_SIZE);
			return n;
		}
	}
	return 0;
}
