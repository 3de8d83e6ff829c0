/* Volumes: made, listed, deleted. */
#include "op/volumes.h"

#include "box/disk/volume.h"
#include "op/op_core.h"

static void volume_op_done(struct op *op, const struct volume *v)
{
	struct volume_view view;
	volume_view(v, &view);
	op_done(op, &(struct op_event){.kind = OP_DONE, .volume = &view});
}

static void volume_create_done(void *arg, struct volume *v, const struct error *e)
{
	struct op *op = arg;
	if (!op_awaited(op))
		return;
	if (v)
		volume_op_done(op, v);
	else
		op_fail(op, OP_ERROR, e);
}

static void volume_create_ask(struct op *op)
{
	const struct op_volume_create *request = op_asked(op);
	struct error e = {0};
	op_await(op);
	if (volume_create(op->ops->box, op->tenant, request->name, request->limit,
		    volume_create_done, op, &e) < 0)
		volume_create_done(op, NULL, &e);
}

struct op *op_volume_create(const struct op_call *call, const struct op_volume_create *request)
{
	static const struct op_type type = {"volume.create", true, true, .ask = volume_create_ask};
	return op_ask(call, &type, request, sizeof *request);
}

static void volume_list_ask(struct op *op)
{
	struct volume_view view;
	for (struct volume *v = volume_first(op->ops->box, op->tenant); v; v = volume_next(v)) {
		volume_view(v, &view);
		if (!op_emit(op, &(struct op_event){.kind = OP_ROW, .volume = &view}))
			return;
	}
	op_done(op, &(struct op_event){.kind = OP_DONE});
}

struct op *op_volume_list(const struct op_call *call)
{
	static const struct op_type type = {"volume.list", .ask = volume_list_ask};
	return op_ask(call, &type, NULL, 0);
}

static void volume_get_ask(struct op *op)
{
	struct error e = {0};
	const struct volume *v = op_volume(op, &e);
	if (v)
		volume_op_done(op, v);
	else
		op_fail(op, OP_NO_VOLUME, &e);
}

struct op *op_volume_get(const struct op_call *call)
{
	static const struct op_type type = {"volume.get", .ask = volume_get_ask};
	return op_ask(call, &type, NULL, 0);
}

static void volume_delete_ask(struct op *op)
{
	struct error e = {0};
	struct volume *v = op_volume(op, &e);
	op_await(op);
	if (!v || volume_delete(v, op_called_back, op, &e) < 0)
		op_called_back(op, &e);
}

struct op *op_volume_delete(const struct op_call *call)
{
	static const struct op_type type = {"volume.delete", true, true, .ask = volume_delete_ask};
	return op_ask(call, &type, NULL, 0);
}
