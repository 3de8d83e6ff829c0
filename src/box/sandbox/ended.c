/* Sandboxes that have ended: only their rows are left, in the store, until the retention is over.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

#include "box/sandbox/object.h"

/* Views an ended sandbox, which has no deadlines. */
static void view_row(const struct sandbox_record *row, struct sandbox_view *out)
{
	*out = (struct sandbox_view){.record = *row};
	out->last_active_ms = row->ended_ms;
	out->lease_end_ms = out->paused_ms = 0;
}

/* ---- one ---- */

struct loading {
	sandbox_loaded_fn *loaded;
	void *arg;
};

static void ended_row_found(void *arg, const void *row, int error)
{
	struct loading *l = arg;
	struct sandbox_view view;
	struct error e;
	if (row)
		view_row(row, &view);
	if (error)
		store_error(&e, error, "the sandbox could not be read from the database");
	l->loaded(l->arg, row ? &view : NULL, error ? &e : NULL);
	free(l);
}

void sandbox_load_ended(
	struct box *b, const char *tenant, const char *id, sandbox_loaded_fn *loaded, void *arg)
{
	struct loading *l = mem_new(sizeof *l);
	*l = (struct loading){loaded, arg};
	store_get_ended_sandbox(b->store, id, tenant, ended_row_found, l);
}

/* ---- many ---- */

static_assert((int)SANDBOX_ORDER_EXECUTIONS == (int)ENDED_BY_EXECUTIONS, "the same order");

struct listing {
	sandbox_listed_fn *listed;
	void *arg;
};

static void ended_row_listed(void *arg, const struct sandbox_record *row, int64_t total)
{
	struct listing *l = arg;
	struct sandbox_view view;
	struct error e;
	if (row)
		view_row(row, &view);
	if (!row && total < 0)
		store_error(&e, (int)total, "the sandboxes could not be read from the database");
	l->listed(l->arg, row ? &view : NULL, total, !row && total < 0 ? &e : NULL);
	if (!row)
		free(l);
}

static const char *or_any(const char *text)
{
	return text ? text : "";
}

void sandbox_list_ended(
	struct box *b, const struct sandbox_filter *f, sandbox_listed_fn *listed, void *arg)
{
	struct listing *l = mem_new(sizeof *l);
	*l = (struct listing){listed, arg};
	const struct ended_query query = {
		.tenant = f->tenant,
		.status = f->status,
		.name = or_any(f->name),
		.project = or_any(f->project),
		.snapshot = or_any(f->snapshot),
		.ephemeral = f->ephemeral,
		.after_ms = f->after_id ? f->after_ms : -1,
		.after_id = or_any(f->after_id),
		.order = (enum ended_order)f->order,
		.backwards = f->backwards,
		.counts = f->counts,
		.offset = f->offset,
		.limit = f->limit,
	};
	store_list_ended_sandboxes(b->store, &query, ended_row_listed, l);
}
