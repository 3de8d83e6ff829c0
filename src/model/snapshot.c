#include "model/snapshot.h"

#include "base/cleanup.h"

static const char *const snapshot_status_names[] = {
	[DISK_READY] = "ready", [DISK_LOST] = "lost", [DISK_DELETED] = "deleted", NULL};

static bool snapshot_is_counted(const void *view)
{
	return ((const struct snapshot_record *)view)->files >= 0;
}

#define AT(KIND, member) FIELD_AT(KIND, struct snapshot_record, member)
#define CHARS(member)    FIELD_CHARS_AT(struct snapshot_record, member)

/* In the order of the answer. */
/* clang-format off */
static const struct field snapshot_fields[] = {
	{.name = "id", CHARS(id), .flags = FIELD_SHOWN | FIELD_KEY, .column = "id"},
	{.name = "name", AT(TEXT, name), .flags = FIELD_SHOWN, .column = "name", .about = "Empty is none"},
	{.name = "tag", AT(TEXT, tag), .flags = FIELD_SHOWN, .column = "tag", .about = "Empty is none"},
	{.name = "description", AT(TEXT, description), .flags = FIELD_SHOWN, .column = "description"},
	{.name = "status", AT(ENUM, status), .flags = FIELD_SHOWN, .names = snapshot_status_names},
	{.name = "parent", CHARS(parent), .flags = FIELD_SHOWN, .column = "parent",
		.about = "The id of the snapshot that its sandbox began with; empty: none"},
	{.name = "sandboxId", CHARS(sandbox), .flags = FIELD_SHOWN, .column = "sandbox",
		.about = "Of which it was made"},
	{.name = "template", AT(TEXT, template_name), .flags = FIELD_SHOWN, .column = "template"},
	{.name = "createdAt", AT(TIME, created_ms), .flags = FIELD_SHOWN, .column = "created_ms"},
	{.name = "env", AT(ENV, env), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY, .column = "env",
		.about = "What sandboxes made of it begin with"},
	{.name = "metadata", AT(JSON, metadata), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY, .column = "metadata",
		.about = "What its maker said of it"},
	{.name = "sizeBytes", AT(INTEGER, bytes), .flags = FIELD_SHOWN, .column = "bytes",
		.shown_if = snapshot_is_counted,
		.about = "What its files take on the medium, shared or not"},
	{.name = "fileCount", AT(INTEGER, files), .flags = FIELD_SHOWN, .column = "files",
		.shown_if = snapshot_is_counted},
	/* Not shown by the native API. */
	{AT(TEXT, tenant), .column = "tenant"},
	{CHARS(build), .column = "build"},
	{CHARS(root), .column = "root"},
	{AT(BOOL, deleted), .column = "deleted"},
};
/* clang-format on */

const struct field_table snapshot_model = {
	snapshot_fields, ARRAY_LEN(snapshot_fields), sizeof(struct snapshot_record)};

int64_t snapshot_place(const void *view, const char **id)
{
	const struct snapshot_record *snapshot = view;
	*id = snapshot->id;
	return snapshot->created_ms;
}
