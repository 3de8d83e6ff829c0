#include "model/checkpoint.h"

#include "base/cleanup.h"

#define AT(KIND, member) FIELD_AT(KIND, struct checkpoint_view, member)

/* In the order of the answer. */
/* clang-format off */
static const struct field checkpoint_fields[] = {
	{.name = "id", AT(TEXT, id), .flags = FIELD_SHOWN},
	{.name = "name", AT(TEXT, name), .flags = FIELD_SHOWN},
	{.name = "parent", AT(TEXT, parent), .flags = FIELD_SHOWN,
		.about = "The id of the checkpoint before it, in the sense of the disk; empty: none"},
	{.name = "status", AT(ENUM, status), .flags = FIELD_SHOWN, .names = disk_status_names},
	{.name = "createdAt", AT(TIME, created_ms), .flags = FIELD_SHOWN},
	/* For dialects: the native API does not show it. */
	{AT(TEXT, parent_name)},
};
/* clang-format on */

const struct field_table checkpoint_model = {
	checkpoint_fields, ARRAY_LEN(checkpoint_fields), sizeof(struct checkpoint_view)};
