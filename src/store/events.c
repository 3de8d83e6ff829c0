/* The events of sandboxes. They go with their sandbox's row, by a trigger. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "store/internal.h"

#define AT(KIND, member) FIELD_AT(KIND, struct event_row, member)

static const struct field event_fields[] = {
	{AT(TEXT, sandbox), .flags = FIELD_KEY, .column = "sandbox"},
	{AT(INTEGER, number), .flags = FIELD_KEY, .column = "number"},
	{AT(TIME, time_ms), .column = "time_ms"},
	{AT(TEXT, type), .column = "type"},
	{AT(TEXT, cause), .column = "cause"},
	{AT(ENV, details), .column = "details"},
};

static const struct field_table fields = {
	event_fields, ARRAY_LEN(event_fields), sizeof(struct event_row)};
const struct store_table store_events = {"events", &fields, "sandbox, number"};

static const char sql_expire[] = "DELETE FROM events WHERE sandbox = ? AND number <= ?";

#define FOUND                                                                                      \
	"SELECT $columns FROM events WHERE sandbox = ?1"                                           \
	" AND EXISTS (SELECT 1 FROM sandboxes WHERE id = ?1 AND tenant = ?2)"
static const char sql_upwards[] = FOUND " AND number > ?3 ORDER BY number LIMIT ?4";
static const char sql_backwards[] = FOUND " AND number < ?3 ORDER BY number DESC LIMIT ?4";

void store_put_event(struct store *s, const struct event_row *row, store_done_fn *done, void *arg)
{
	store_put(s, &store_events, row, done, arg);
}

void store_expire_events(struct store *s, const char *sandbox, int64_t up_to)
{
	struct operation *op = operation_new(sql_expire);
	operation_add_text(op, sandbox);
	operation_add_int(op, up_to);
	store_submit(s, op, NULL, NULL);
}

struct listing {
	store_events_fn *found;
	void *arg;
	struct event_row *rows;
	size_t count, limit;
};

static void take_row(struct operation *op, const struct value *v, size_t count)
{
	struct listing *l = op->arg;
	(void)count;
	if (v && l->count < l->limit)
		store_read(&store_events, v, &l->rows[l->count++]);
	if (v)
		return;
	l->found(l->arg, op->error ? NULL : l->rows, l->count);
	free(l->rows);
	free(l);
}

void store_list_events(struct store *s, const char *tenant, const char *sandbox, int64_t after,
	bool backwards, unsigned limit, store_events_fn *found, void *arg)
{
	struct listing *l = mem_new(sizeof *l);
	l->rows = mem_new_array(limit + 1, sizeof *l->rows);
	l->found = found;
	l->arg = arg;
	l->limit = limit;
	struct operation *op =
		operation_new(store_sql(s, &store_events, backwards ? sql_backwards : sql_upwards));
	operation_add_text(op, sandbox);
	operation_add_text(op, tenant);
	operation_add_int(op, backwards && after == 0 ? INT64_MAX : after);
	operation_add_int(op, limit);
	op->row = take_row;
	store_submit_read(s, op, l);
}
