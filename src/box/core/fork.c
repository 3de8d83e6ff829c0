/*
 * Forks: one copy of the disk is taken while the sandbox stands still, and every fork begins with a
 * copy of that. It has no row, so a crash leaves nothing: the next start deletes it. A single fork
 * needs none in between.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "box/core/creation.h"
#include "box/disk/disks.h"
#include "box/sandbox/turn.h"

struct fork {
	struct sandbox *source; /* its turn is ours until the copy is taken */
	char source_id[ID_SIZE];
	struct box *box;
	struct disk_name copy;
	unsigned wanted, pending, begun;
	int64_t frozen_us;
	bool failed;
	struct error failure;
	sandbox_forked_fn *forked;
	void *arg;
	char (*ids)[ID_SIZE]; /* of those that were begun; one may be deleted already */
};

static void fork_free(struct fork *f)
{
	free(f->ids);
	free(f);
}

/* The source may be gone meanwhile. */
static void note_fork(const struct fork *f, const char *id)
{
	struct sandbox *s = NULL;
	HASH_FIND(by_id, f->box->sandboxes.by_id, f->source_id, ID_LEN, s);
	if (s)
		event_add(s, EVENT_FORKED, CAUSE_REQUEST,
			(struct event_detail[]){{"sandboxId", id}, {NULL, NULL}});
}

static void fork_end(struct fork *f)
{
	struct box *b = f->box;
	struct sandbox **made = mem_new_array(f->begun + 1, sizeof(struct sandbox *));
	struct fork_result result = {made, 0, f->frozen_us};
	for (unsigned i = 0; i < f->begun; i++) {
		struct sandbox *s = NULL;
		HASH_FIND(by_id, b->sandboxes.by_id, f->ids[i], ID_LEN, s);
		if (s)
			made[result.count++] = s;
	}
	if (f->copy.kind == DISK_SNAPSHOT)
		disks_forget(b, DISK_SNAPSHOT, f->copy.id);
	else
		sandbox_release(f->source);
	if (f->failed)
		for (size_t i = 0; i < result.count; i++)
			sandbox_destroy(made[i], NULL, NULL);
	for (size_t i = 0; !f->failed && i < result.count; i++)
		note_fork(f, made[i]->id);
	f->forked(f->arg, f->failed ? NULL : &result, f->failed ? &f->failure : NULL);
	free(made);
	fork_free(f);
}

static void fork_fail(struct fork *f, const struct error *e)
{
	if (!f->failed)
		f->failure = *e;
	f->failed = true;
}

static void one_created(void *arg, struct sandbox *s, const struct error *e)
{
	struct fork *f = arg;
	if (s && f->copy.kind == DISK_BOX)
		f->frozen_us = s->disk.copy_frozen_us;
	if (!s)
		fork_fail(f, e);
	if (--f->pending == 0)
		fork_end(f);
}

static void create_one(struct fork *f)
{
	struct sandbox *s = f->source;
	struct error e;
	const struct fork_origin origin = {.source = s, .disk = f->copy};
	struct sandbox_spec spec = {
		.settings = s->settings,
		.tenant = s->tenant,
		.has_network = true,
		.fork = &origin,
	};
	spec.name = spec.template_name = NULL;
	spec.workdir = s->workdir[0] ? s->workdir : NULL;
	spec.ephemeral = false;
	f->pending++;
	const struct sandbox *made = sandbox_create(f->box, &spec, one_created, f, &e);
	if (made)
		memcpy(f->ids[f->begun++], made->id, ID_SIZE);
	else
		one_created(f, NULL, &e);
}

static void core_fork_copied(void *arg, const struct keeper_reply *reply)
{
	struct fork *f = arg;
	struct error e;
	f->pending = 1; /* ours, until all are begun */
	if (reply->error) {
		disks_error(&e, reply->error, "the sandbox's disk could not be copied");
		fork_fail(f, &e);
	} else {
		f->frozen_us = reply->frozen_us;
		for (unsigned i = 0; i < f->wanted && !f->failed; i++)
			create_one(f);
	}
	sandbox_release(f->source);
	if (--f->pending == 0)
		fork_end(f);
}

static void fork_has_turn(void *arg, struct sandbox *s, const struct error *e)
{
	struct fork *f = arg;
	struct disk_name from = disk_of(s);
	if (e) {
		f->forked(f->arg, NULL, e);
		fork_free(f);
		return;
	}
	if (f->copy.kind == DISK_SNAPSHOT) {
		f->box->driver->disk_keep(f->box->driver, &f->copy, &from, core_fork_copied, f);
		return;
	}
	create_one(f);
}

int sandbox_fork(struct sandbox *s, unsigned count, sandbox_forked_fn *forked, void *arg,
	struct fork **ret, struct error *e)
{
	char id[ID_SIZE];
	if (count < 1 || count > FORKS_MAX)
		return error_set_field(e, ERROR_INVALID_FIELD, "count",
			"\"count\" must be a number from 1 to %d", FORKS_MAX);
	struct fork *f = mem_new(sizeof *f);
	f->ids = mem_new_array(count, sizeof *f->ids);
	id_generate(id);
	f->source = s;
	memcpy(f->source_id, s->id, ID_SIZE);
	f->box = s->box;
	f->copy = count > 1 ? disk_named(DISK_SNAPSHOT, id) : disk_of(s);
	f->wanted = count;
	f->forked = forked;
	f->arg = arg;
	*ret = f;
	sandbox_take_turn(s, fork_has_turn, f);
	return 0;
}

void sandbox_fork_withdraw(struct fork *f)
{
	struct error e;
	if (f->begun == 0 && !f->failed && sandbox_withdraw_turn(f->source, f))
		return;
	error_set(&e, ERROR_NOT_RUNNING, "the fork was withdrawn");
	fork_fail(f, &e);
	for (unsigned i = 0; i < f->begun; i++) {
		struct sandbox *s = NULL;
		HASH_FIND(by_id, f->box->sandboxes.by_id, f->ids[i], ID_LEN, s);
		if (s)
			sandbox_destroy(s, NULL, NULL);
	}
}
