/* The rows of code contexts; the end of a sandbox takes its own along. A context never changes. */
#include "base/cleanup.h"
#include "store/internal.h"

#define AT(KIND, member) FIELD_AT(KIND, struct context_row, member)

static const struct field context_fields[] = {
	{AT(TEXT, id), .flags = FIELD_KEY, .column = "id"},
	{AT(TEXT, sandbox), .flags = FIELD_FIXED, .column = "sandbox"},
	{AT(TEXT, language), .flags = FIELD_FIXED, .column = "language"},
	{AT(TEXT, cwd), .flags = FIELD_FIXED, .column = "cwd"},
	{AT(TEXT, user), .flags = FIELD_FIXED, .column = "user"},
	{AT(INTEGER, is_default), .flags = FIELD_FIXED, .column = "is_default"},
	{AT(TIME, created_ms), .flags = FIELD_FIXED, .column = "created_ms"},
};

static const struct field_table fields = {
	context_fields, ARRAY_LEN(context_fields), sizeof(struct context_row)};
const struct store_table store_contexts = {"contexts", &fields, "created_ms, id"};

void store_put_context(
	struct store *s, const struct context_row *row, store_done_fn *done, void *arg)
{
	store_put(s, &store_contexts, row, done, arg);
}

void store_delete_context(struct store *s, const char *id, store_done_fn *done, void *arg)
{
	store_delete(s, &store_contexts, id, done, arg);
}

int store_each_context(struct store *s, void (*each)(void *arg, const void *row), void *arg)
{
	return store_each(s, &store_contexts, NULL, each, arg);
}
