#include "model/key.h"

#include "base/cleanup.h"
#include "model/check.h"

static const char *const key_scope_names[] = {
	[KEY_READ] = "read", [KEY_USE] = "use", [KEY_ADMIN] = "admin", NULL};
static const char *const key_origin_names[] = {
	[KEY_CREATED] = "created", [KEY_LOCAL] = "local", [KEY_OPTION] = "option", NULL};

#define AT(KIND, member) FIELD_AT(KIND, struct key_record, member)

/* In the order of the answer. */
/* clang-format off */
static const struct field key_fields[] = {
	{.name = "id", AT(TEXT, id), .flags = FIELD_SHOWN | FIELD_KEY, .column = "id"},
	{.name = "name", AT(TEXT, name),
		.flags = FIELD_SHOWN | FIELD_CREATE | FIELD_REQUIRED | FIELD_NOT_EMPTY,
		.max = KEY_NAME_MAX, .check = check_name, .column = "name"},
	{.name = "tenant", AT(TEXT, tenant), .flags = FIELD_SHOWN | FIELD_CREATE,
		.max = KEY_TENANT_MAX, .check = check_name, .column = "tenant",
		.about = "Without it that of the key which makes it"},
	{.name = "scope", AT(ENUM, scope), .flags = FIELD_SHOWN | FIELD_CREATE,
		.names = key_scope_names, .missing = "use", .column = "scope",
		.about = "Each includes those before it"},
	{.name = "origin", AT(ENUM, origin), .flags = FIELD_SHOWN, .names = key_origin_names,
		.column = "origin"},
	{.name = "createdAt", AT(TIME, created_ms), .flags = FIELD_SHOWN, .column = "created_ms"},
	{.name = "expiresAt", AT(TIME, expires_ms), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.column = "expires_ms", .about = "Absent: never"},
	{.name = "lastUsedAt", AT(TIME, used_ms), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.column = "used_ms", .about = "To the minute; absent: never"},
	{.name = "rotatedAt", AT(TIME, rotated_ms), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.column = "rotated_ms"},
	{.name = "previousUntil", AT(TIME, previous_ms), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.column = "previous_ms", .about = "Until when the key before the rotation is good"},
	{.name = "expiresIn", AT(DURATION, life_ms), .flags = FIELD_CREATE,
		.min = KEY_LIFE_MIN_MS, .max = KEY_LIFE_MAX_MS},
	{.name = "key", AT(TEXT, text), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.about = "What is sent; shown this once"},
	{AT(LIST, hash), .column = "hash"},
	{AT(LIST, previous), .column = "previous"},
};
/* clang-format on */

const struct field_table key_model = {key_fields, ARRAY_LEN(key_fields), sizeof(struct key_record)};
