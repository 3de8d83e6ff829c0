#include "model/destination.h"

#include "base/cleanup.h"

#define AT(KIND, member) FIELD_AT(KIND, struct destination_view, member)

/* In the order of the answer. */
/* clang-format off */
static const struct field destination_fields[] = {
	{.name = "host", AT(TEXT, host), .flags = FIELD_SHOWN,
		.about = "The name that decided, else one that the sandbox was told the address for, else the address"},
	{.name = "port", AT(INTEGER, port), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.about = "Missing where a name was asked for and refused"},
	{.name = "address", FIELD_CHARS_AT(struct destination_view, address), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.about = "The one that was used last"},
	{.name = "other", AT(BOOL, is_other), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.about = "Stands for destinations that were too many, and has no host"},
	{.name = "connections", AT(COUNT, connections), .flags = FIELD_SHOWN, .about = "That were opened"},
	{.name = "failed", AT(COUNT, failed), .flags = FIELD_SHOWN, .about = "That were allowed, and could not be opened"},
	{.name = "refused", AT(COUNT, refused), .flags = FIELD_SHOWN, .about = "Connections and questions for the name"},
	{.name = "bytesIn", AT(COUNT, bytes_in), .flags = FIELD_SHOWN},
	{.name = "bytesOut", AT(COUNT, bytes_out), .flags = FIELD_SHOWN},
	{.name = "lastUsedAt", AT(TIME, used_ms), .flags = FIELD_SHOWN},
};
/* clang-format on */

const struct field_table destination_model = {
	destination_fields, ARRAY_LEN(destination_fields), sizeof(struct destination_view)};
