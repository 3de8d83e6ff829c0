#include "model/volume.h"

#include "base/cleanup.h"

#define AT(KIND, member) FIELD_AT(KIND, struct volume_view, member)

/* In the order of the answer. */
/* clang-format off */
static const struct field volume_fields[] = {
	{.name = "id", AT(TEXT, id), .flags = FIELD_SHOWN},
	{.name = "name", AT(TEXT, name), .flags = FIELD_SHOWN},
	{.name = "status", AT(ENUM, status), .flags = FIELD_SHOWN, .names = disk_status_names},
	{.name = "size", AT(BYTES, limit), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.about = "What it may hold; absent when the server cannot limit it"},
	{.name = "sandboxes", AT(INTEGER, mounts), .flags = FIELD_SHOWN, .about = "How many have it"},
	{.name = "createdAt", AT(TIME, created_ms), .flags = FIELD_SHOWN},
};
/* clang-format on */

const struct field_table volume_model = {
	volume_fields, ARRAY_LEN(volume_fields), sizeof(struct volume_view)};
