#include "op/secrets.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "box/sandbox/secret_use.h"
#include "op/op_core.h"

/* The name lives with the operation: it is needed after the request's memory is gone. */
struct secret_op {
	char name[SECRET_NAME_MAX + 1];
	char *value;
};

static struct op *secret_ask(
	const struct op_call *call, const struct op_type *type, const struct op_secret *request)
{
	struct secret_op asked = {.value = request->value};
	struct error e = {0};
	if (secret_check_name(request->name, "name", &e) < 0) {
		if (request->value)
			explicit_bzero(request->value, strlen(request->value));
		return op_refuse(call, &e);
	}
	memcpy(asked.name, request->name, strlen(request->name) + 1);
	return op_ask(call, type, &asked, sizeof asked);
}

static void secret_tell(struct op *op)
{
	const struct secret_op *request = op_asked(op);
	struct secret_record record;
	struct error e = {0};
	if (secret_use_get(op->ops->box, op->tenant, request->name, &record)) {
		op_done(op, &(struct op_event){.kind = OP_DONE, .secret = &record});
		return;
	}
	error_set(&e, ERROR_NOT_FOUND, "there is no such secret");
	op_fail(op, OP_ERROR, &e);
}

/* ---- put, delete ---- */

static void secret_was_put(void *arg, const struct error *e)
{
	struct op *op = arg;
	if (!op_awaited(op))
		return;
	if (e)
		op_fail(op, OP_ERROR, e);
	else
		secret_tell(op);
}

static void secret_put_ask(struct op *op)
{
	const struct secret_op *request = op_asked(op);
	size_t len = strlen(request->value);
	/* The request's memory may go with the operation, before the call returns. */
	autofree char *value = mem_copy_text(request->value);
	explicit_bzero(request->value, len);
	op_await(op);
	secret_use_put(op->ops->box, op->tenant, request->name, value, secret_was_put, op);
	explicit_bzero(value, len);
}

struct op *op_secret_put(const struct op_call *call, const struct op_secret *request)
{
	static const struct op_type type = {"secret.put", true, true, .ask = secret_put_ask};
	return secret_ask(call, &type, request);
}

static void secret_delete_ask(struct op *op)
{
	const struct secret_op *request = op_asked(op);
	op_await(op);
	secret_use_delete(op->ops->box, op->tenant, request->name, op_called_back, op);
}

struct op *op_secret_delete(const struct op_call *call, const struct op_secret *request)
{
	static const struct op_type type = {"secret.delete", true, true, .ask = secret_delete_ask};
	return secret_ask(call, &type, request);
}

/* ---- list, get ---- */

static bool secret_list_row(void *arg, const struct secret_record *record)
{
	return op_emit(arg, &(struct op_event){.kind = OP_ROW, .secret = record});
}

static void secret_list_ask(struct op *op)
{
	secret_use_each(op->ops->box, op->tenant, secret_list_row, op);
	op_done(op, &(struct op_event){.kind = OP_DONE});
}

struct op *op_secret_list(const struct op_call *call)
{
	static const struct op_type type = {"secret.list", .ask = secret_list_ask};
	return op_ask(call, &type, NULL, 0);
}

struct op *op_secret_get(const struct op_call *call, const struct op_secret *request)
{
	static const struct op_type type = {"secret.get", .ask = secret_tell};
	return secret_ask(call, &type, request);
}
