#include "model/event.h"

#include "base/cleanup.h"

#define AT(KIND, member) FIELD_AT(KIND, struct event_view, member)

/* In the order of the answer. */
/* clang-format off */
static const struct field event_fields[] = {
	{.name = "number", AT(COUNT, number), .flags = FIELD_SHOWN},
	{.name = "sandboxId", AT(TEXT, sandbox), .flags = FIELD_SHOWN},
	{.name = "type", AT(TEXT, type), .flags = FIELD_SHOWN},
	{.name = "cause", AT(TEXT, cause), .flags = FIELD_SHOWN},
	{.name = "createdAt", AT(TIME, time_ms), .flags = FIELD_SHOWN},
	{.name = "details", AT(ENV, details), .flags = FIELD_SHOWN},
};
/* clang-format on */

const struct field_table event_model = {
	event_fields, ARRAY_LEN(event_fields), sizeof(struct event_view)};
