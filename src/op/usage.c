#include "op/usage.h"

#include "box/core/box.h"
#include "box/sandbox/tenant.h"
#include "box/sandbox/usage.h"
#include "op/op_core.h"

/* ---- of sandboxes ---- */

/* False: the operation is gone. */
static bool usage_tell(struct op *op, const struct sandbox *s, const struct usage_view *now)
{
	struct sandbox_view view;
	struct usage_sample samples[USAGE_SAMPLES_MAX];
	const struct usage_report report = {
		&view, now, samples, .sample_count = usage_samples(s, samples)};
	sandbox_view(s, &view);
	return op_emit(op, &(struct op_event){.kind = OP_ROW, .used = &report});
}

static void usage_measured(void *arg, const struct usage_view *now)
{
	struct op *op = arg;
	struct error e;
	if (!op_awaited(op))
		return;
	error_set(&e, ERROR_NOT_FOUND, "there is no such sandbox");
	const struct sandbox *s = op_sandbox(op, &e);
	if (!s || !now)
		op_fail(op, OP_NO_SANDBOX, &e);
	else if (usage_tell(op, s, now))
		op_done(op, &(struct op_event){.kind = OP_DONE});
}

static void usage_ask(struct op *op)
{
	struct error e;
	const struct op_usage *request = op_asked(op);
	struct sandbox *s = op_sandbox(op, &e);
	if (!s) {
		op_fail(op, OP_NO_SANDBOX, &e);
	} else if (request->measures || usage_is_stale(s)) {
		op_await(op);
		usage_measure(s, usage_measured, op);
	} else if (usage_tell(op, s, NULL)) {
		op_done(op, &(struct op_event){.kind = OP_DONE});
	}
}

static void usage_past(struct op *op, const struct sandbox_view *view)
{
	const struct usage_report report = {.sandbox = view};
	if (op_emit(op, &(struct op_event){.kind = OP_ROW, .used = &report}))
		op_done(op, &(struct op_event){.kind = OP_DONE});
}

struct op *op_usage(const struct op_call *call, const struct op_usage *request)
{
	static const struct op_type type = {"usage", .ask = usage_ask, .past = usage_past};
	return op_ask(call, &type, request, sizeof *request);
}

static void usages_ask(struct op *op)
{
	const struct op_usages *request = op_asked(op);
	for (size_t i = 0; i < request->count; i++) {
		const struct sandbox *s = sandbox_find(op->ops->box, op->tenant, request->ids[i]);
		if (s && !usage_tell(op, s, NULL))
			return;
	}
	op_done(op, &(struct op_event){.kind = OP_DONE});
}

struct op *op_usages(const struct op_call *call, const struct op_usages *request)
{
	static const struct op_type type = {"usages", .ask = usages_ask};
	return op_ask(call, &type, request, sizeof *request);
}

/* ---- of tenants, of the server ---- */

static void quota_ask(struct op *op)
{
	struct tenant_amounts limit, used;
	tenant_show(op->ops->box, op->tenant, &limit, &used);
	op_done(op, &(struct op_event){.kind = OP_DONE, .quota = {&limit, &used}});
}

struct op *op_quota(const struct op_call *call)
{
	static const struct op_type type = {"quota", .ask = quota_ask};
	return op_ask(call, &type, NULL, 0);
}

static void counters_ask(struct op *op)
{
	struct box_counters counters;
	box_counters(op->ops->box, &counters);
	op_done(op, &(struct op_event){.kind = OP_DONE, .counters = &counters});
}

struct op *op_counters(const struct op_call *call)
{
	static const struct op_type type = {"counters", .ask = counters_ask};
	return op_ask(call, &type, NULL, 0);
}
