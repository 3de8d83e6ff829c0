#include "store/volumes.h"

#include "base/cleanup.h"
#include "store/internal.h"

#define AT(KIND, member) FIELD_AT(KIND, struct volume_row, member)

static const struct field volume_fields[] = {
	{AT(TEXT, id), .flags = FIELD_KEY, .column = "id"},
	{AT(TEXT, tenant), .column = "tenant"},
	{AT(TEXT, name), .column = "name"},
	{AT(BYTES, limit), .column = "size"},
	{AT(TIME, created_ms), .column = "created_ms"},
};

static const struct field_table fields = {
	volume_fields, ARRAY_LEN(volume_fields), sizeof(struct volume_row)};
const struct store_table store_volumes = {"volumes", &fields, "created_ms, id"};

void store_put_volume(struct store *s, const struct volume_row *row, store_done_fn *done, void *arg)
{
	store_put(s, &store_volumes, row, done, arg);
}

void store_delete_volume(struct store *s, const char *id, store_done_fn *done, void *arg)
{
	store_delete(s, &store_volumes, id, done, arg);
}

int store_each_volume(struct store *s, void (*each)(void *arg, const void *row), void *arg)
{
	return store_each(s, &store_volumes, NULL, each, arg);
}
