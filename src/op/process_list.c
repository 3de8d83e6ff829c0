/*
 * Lists of executions, from memory and from the store, told at the caller's pace: what the caller
 * cannot take now is not held, but looked at again when it can.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "op/op_core.h"
#include "op/process.h"

/*
 * Rows that the store is asked for at once. One may have 512 KiB of arguments, so more of them are
 * asked for only behind a slice of small ones.
 */
#define SLICE       16
#define SLICE_SMALL 64
#define SMALL_BYTES (64u * 1024)

struct list_op {
	struct op op;
	struct op_process_list request;
	unsigned left;
	bool more;
	/* For running executions: */
	bool collected;
	char (*ids)[ID_SIZE];
	size_t count, next;
	/* For ended executions: */
	char place[ID_SIZE]; /* of the last row that was told, or where the page begins */
	unsigned asked, seen;
	size_t bytes;  /* of the slice's arguments */
	bool skipped;  /* something of the slice was not told */
	bool complete; /* the store has no more */
};

static void process_list_advance(struct list_op *l);

static bool process_list_tell(struct list_op *l, const struct execution_view *view)
{
	return op_emit(&l->op, &(struct op_event){.kind = OP_EXECUTION, .execution = view});
}

/* ---- those that have ended ---- */

/* Asks for one more than is told: whether there is one. */
static void list_ended_row(void *arg, const struct execution_view *view, const struct error *e)
{
	struct list_op *l = arg;
	if (view) {
		l->seen++;
		l->bytes += view->command.len;
		l->skipped |= l->op.paused;
		if (l->op.gone || l->skipped || l->more)
			return;
		l->more = l->left == 0;
		if (l->more)
			return;
		l->left--;
		l->request.before_ms = view->started_ms;
		memcpy(l->place, view->id, ID_SIZE);
		process_list_tell(l, view);
		return;
	}
	if (!op_awaited(&l->op))
		return;
	l->complete = l->more || (!l->skipped && l->seen < l->asked);
	if (e)
		op_fail(&l->op, OP_ERROR, e);
	else if (!l->op.paused)
		process_list_advance(l);
}

static unsigned process_list_slice(const struct list_op *l)
{
	unsigned slice = l->asked && l->bytes < SMALL_BYTES ? SLICE_SMALL : SLICE;
	return l->left < slice ? l->left + 1 : slice;
}

static void process_list_read(struct list_op *l)
{
	const struct op_process_list *r = &l->request;
	struct error e;
	struct sandbox_view view = {0};
	const struct sandbox *s = l->op.tenant ? NULL : op_sandbox(&l->op, &e);
	if (s)
		sandbox_view(s, &view);
	l->asked = process_list_slice(l);
	l->seen = 0;
	l->bytes = 0;
	l->skipped = false;
	op_await(&l->op);
	execution_list_ended(l->op.ops->box,
		&(struct execution_filter){.tenant = l->op.tenant ? l->op.tenant : view.tenant,
			.sandbox_id = l->op.sandbox,
			.kinds = r->kinds,
			.before_ms = r->before_ms,
			.before_id = l->place,
			.limit = l->asked},
		list_ended_row, l);
}

/* ---- those that run ---- */

static bool process_list_wants(const struct list_op *l, const struct execution *x)
{
	struct execution_view view;
	const struct op_process_list *r = &l->request;
	execution_view(x, &view);
	return !execution_has_ended(x) && (!r->name || strcmp(view.name, r->name) == 0) &&
	       (!r->kinds || ((r->kinds >> view.kind) & 1));
}

/* Collects ids, not pointers: the caller may take its time between two rows. */
static void process_list_collect(struct list_op *l)
{
	struct execution_view view;
	struct error e;
	const struct sandbox *s = l->request.running && l->request.before_ms == 0 && l->op.sandbox
					  ? op_sandbox(&l->op, &e)
					  : NULL;
	size_t room = 0;
	l->collected = true;
	for (struct execution *x = s ? execution_first(s) : NULL; x; x = execution_next(x)) {
		if (!process_list_wants(l, x))
			continue;
		if (l->count == room)
			l->ids = mem_resize(l->ids, room = room ? room * 2 : 16, sizeof *l->ids);
		execution_view(x, &view);
		memcpy(l->ids[l->count++], view.id, ID_SIZE);
	}
}

/* False: the caller has left, or can take no more. */
static bool process_list_running(struct list_op *l)
{
	struct execution_view view;
	while (l->next < l->count) {
		struct execution *x =
			execution_find(l->op.ops->box, l->op.tenant, l->ids[l->next++]);
		if (!x || execution_has_ended(x))
			continue;
		execution_view(x, &view);
		if (!process_list_tell(l, &view) || l->op.paused)
			return false;
	}
	return true;
}

/* ---- an operation ---- */

static void process_list_advance(struct list_op *l)
{
	if (!l->collected)
		process_list_collect(l);
	if (!process_list_running(l))
		return;
	if (l->request.ended && !l->complete)
		process_list_read(l);
	else
		op_done(&l->op, &(struct op_event){.kind = OP_DONE, .more = l->more});
}

static void process_list_resume(struct op *op)
{
	process_list_advance((struct list_op *)op);
}

static void process_list_release(struct op *op, enum op_end end)
{
	struct list_op *l = (struct list_op *)op;
	(void)end;
	free(l->ids);
	l->ids = NULL;
	l->count = 0;
}

struct op *op_process_list(const struct op_call *call, const struct op_process_list *request)
{
	static const struct op_type type = {
		"process.list", .resume = process_list_resume, .release = process_list_release};
	struct sandbox *s;
	struct list_op *l = (struct list_op *)op_new(call, &type, sizeof *l, &s);
	l->request = *request;
	l->left = request->limit;
	if (request->before_id)
		memcpy(l->place, request->before_id, strnlen(request->before_id, ID_LEN));
	return &l->op;
}
