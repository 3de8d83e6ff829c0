#include "op/keys.h"

#include <string.h>

#include "box/key/keys.h"
#include "op/op_core.h"

static bool op_has_all_keys(const struct op *op)
{
	return strcmp(op->tenant, KEY_SERVER_TENANT) == 0;
}

/* Finds a key that the caller may manage. No other function hands out keys. */
static struct key *op_key_find(const struct op *op, const char *id_or_name, struct error *e)
{
	struct key *key = keys_find(op->ops->keys, op->tenant, id_or_name);
	if (!key && op_has_all_keys(op))
		key = keys_find(op->ops->keys, NULL, id_or_name);
	if (!key)
		error_set(e, ERROR_NOT_FOUND, "there is no such API key");
	return key;
}

/* ---- create ---- */

static void op_key_made(
	void *arg, const struct key_record *record, const char *text, const struct error *e)
{
	struct op *op = arg;
	if (!op_awaited(op))
		return;
	if (e) {
		op_fail(op, OP_ERROR, e);
		return;
	}
	struct key_record shown = *record;
	shown.text = text;
	op_done(op, &(struct op_event){.kind = OP_DONE, .key = &shown});
}

static void key_create_ask(struct op *op)
{
	struct key_record request = *(const struct key_record *)op_asked(op);
	struct error e = {0};
	if (!request.tenant || !request.tenant[0])
		request.tenant = op->tenant;
	op_await(op);
	if (strcmp(request.tenant, op->tenant) == 0 || op_has_all_keys(op)) {
		key_create(op->ops->keys, &request, op_key_made, op);
		return;
	}
	error_set_field(&e, ERROR_SCOPE_MISSING, "tenant",
		"keys of another tenant are made by an admin of the tenant " KEY_SERVER_TENANT);
	op_key_made(op, NULL, NULL, &e);
}

struct op *op_key_create(const struct op_call *call, const struct key_record *request)
{
	static const struct op_type type = {"key.create", true, true, .ask = key_create_ask};
	return op_ask(call, &type, request, sizeof *request);
}

/* ---- list, get ---- */

static bool key_list_row(void *arg, const struct key_record *record)
{
	return op_emit(arg, &(struct op_event){.kind = OP_ROW, .key = record});
}

static void key_list_ask(struct op *op)
{
	const struct op_key *request = op_asked(op);
	const char *wanted = request->key ? request->key : op->tenant;
	if (op_has_all_keys(op))
		keys_each(op->ops->keys, request->key, key_list_row, op);
	else if (strcmp(wanted, op->tenant) == 0)
		keys_each(op->ops->keys, op->tenant, key_list_row, op);
	op_done(op, &(struct op_event){.kind = OP_DONE});
}

struct op *op_key_list(const struct op_call *call, const char *tenant)
{
	static const struct op_type type = {"key.list", .ask = key_list_ask};
	return op_ask(call, &type, &(struct op_key){.key = tenant}, sizeof(struct op_key));
}

static void key_get_ask(struct op *op)
{
	const struct op_key *request = op_asked(op);
	struct error e = {0};
	struct key_record record;
	const struct key *key = op_key_find(op, request->key, &e);
	if (!key) {
		op_fail(op, OP_ERROR, &e);
		return;
	}
	key_view(key, &record);
	op_done(op, &(struct op_event){.kind = OP_DONE, .key = &record});
}

struct op *op_key_get(const struct op_call *call, const struct op_key *request)
{
	static const struct op_type type = {"key.get", .ask = key_get_ask};
	return op_ask(call, &type, request, sizeof *request);
}

/* ---- rotate, revoke ---- */

static void key_rotate_ask(struct op *op)
{
	const struct op_key *request = op_asked(op);
	struct error e = {0};
	struct key *key = op_key_find(op, request->key, &e);
	op_await(op);
	if (key)
		key_rotate(key, request->grace_ms, request->life_ms, op_key_made, op);
	else
		op_key_made(op, NULL, NULL, &e);
}

struct op *op_key_rotate(const struct op_call *call, const struct op_key *request)
{
	static const struct op_type type = {"key.rotate", true, true, .ask = key_rotate_ask};
	return op_ask(call, &type, request, sizeof *request);
}

static void key_revoke_ask(struct op *op)
{
	const struct op_key *request = op_asked(op);
	struct error e = {0};
	struct key *key = op_key_find(op, request->key, &e);
	op_await(op);
	if (key)
		key_revoke(key, op_called_back, op);
	else
		op_called_back(op, &e);
}

struct op *op_key_revoke(const struct op_call *call, const struct op_key *request)
{
	static const struct op_type type = {"key.revoke", true, true, .ask = key_revoke_ask};
	return op_ask(call, &type, request, sizeof *request);
}
