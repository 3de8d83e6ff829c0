/* Templates, builds, tags and layers. What is deleted takes along what belongs to it, by triggers.
 */
#include "store/templates.h"

#include "base/cleanup.h"
#include "store/internal.h"

#define AT(KIND, member) FIELD_AT(KIND, struct template_row, member)

static const struct field template_fields[] = {
	{AT(TEXT, id), .flags = FIELD_KEY, .column = "id"},
	{AT(TEXT, tenant), .column = "tenant"},
	{AT(TEXT, name), .column = "name"},
	{AT(TEXT, description), .column = "description"},
	{AT(TIME, created_ms), .column = "created_ms"},
};

static const struct field_table template_table = {
	template_fields, ARRAY_LEN(template_fields), sizeof(struct template_row)};
const struct store_table store_templates = {"templates", &template_table, "created_ms, id"};

#undef AT
#define AT(KIND, member) FIELD_AT(KIND, struct build_row, member)

static const struct field build_fields[] = {
	{AT(TEXT, id), .flags = FIELD_KEY, .column = "id"},
	{AT(TEXT, template_id), .column = "template"},
	{AT(TEXT, status), .column = "status"},
	{AT(TEXT, reason), .column = "reason"},
	{AT(TEXT, origin), .column = "origin"},
	{AT(TEXT, digest), .column = "digest"},
	{AT(TEXT, root), .column = "root"},
	{AT(TEXT, layer), .column = "layer"},
	{AT(INTEGER, failed_step), .column = "failed_step"},
	{AT(TIME, created_ms), .column = "created_ms"},
	{AT(TIME, started_ms), .column = "started_ms"},
	{AT(TIME, ended_ms), .column = "ended_ms"},
	{AT(BYTES, bytes), .column = "bytes"},
	{AT(LIST, config), .column = "config"},
	{AT(LIST, tags), .column = "tags"},
};

static const struct field_table build_table = {
	build_fields, ARRAY_LEN(build_fields), sizeof(struct build_row)};
const struct store_table store_builds = {"builds", &build_table, "created_ms, id"};

#undef AT
#define AT(KIND, member) FIELD_AT(KIND, struct tag_row, member)

static const struct field tag_fields[] = {
	{AT(TEXT, template_id), .flags = FIELD_KEY, .column = "template"},
	{AT(TEXT, tag), .flags = FIELD_KEY, .column = "tag"},
	{AT(TEXT, build_id), .column = "build"},
	{AT(TIME, created_ms), .column = "created_ms"},
};

static const struct field_table tag_table = {
	tag_fields, ARRAY_LEN(tag_fields), sizeof(struct tag_row)};
const struct store_table store_tags = {"tags", &tag_table, "template, tag"};

#undef AT
#define AT(KIND, member) FIELD_AT(KIND, struct layer_row, member)

static const struct field layer_fields[] = {
	{AT(TEXT, id), .flags = FIELD_KEY, .column = "id"},
	{AT(TEXT, tenant), .column = "tenant"},
	{AT(TEXT, key), .column = "key"},
	{AT(TEXT, root), .column = "root"},
	{AT(BYTES, bytes), .column = "bytes"},
	{AT(TIME, created_ms), .column = "created_ms"},
	{AT(TIME, used_ms), .column = "used_ms"},
};

static const struct field_table layer_table = {
	layer_fields, ARRAY_LEN(layer_fields), sizeof(struct layer_row)};
const struct store_table store_layers = {"layers", &layer_table, "created_ms, id"};

static const char sql_delete_tag[] = "DELETE FROM tags WHERE template = ? AND tag = ?";

void store_put_template(
	struct store *s, const struct template_row *row, store_done_fn *done, void *arg)
{
	store_put(s, &store_templates, row, done, arg);
}

void store_delete_template(struct store *s, const char *id, store_done_fn *done, void *arg)
{
	store_delete(s, &store_templates, id, done, arg);
}

void store_put_build(struct store *s, const struct build_row *row, store_done_fn *done, void *arg)
{
	store_put(s, &store_builds, row, done, arg);
}

void store_delete_build(struct store *s, const char *id, store_done_fn *done, void *arg)
{
	store_delete(s, &store_builds, id, done, arg);
}

void store_put_tag(struct store *s, const struct tag_row *row, store_done_fn *done, void *arg)
{
	store_put(s, &store_tags, row, done, arg);
}

void store_delete_tag(
	struct store *s, const char *template_id, const char *tag, store_done_fn *done, void *arg)
{
	struct operation *op = operation_new(sql_delete_tag);
	operation_add_text(op, template_id);
	operation_add_text(op, tag);
	store_submit(s, op, done, arg);
}

void store_put_layer(struct store *s, const struct layer_row *row, store_done_fn *done, void *arg)
{
	store_put(s, &store_layers, row, done, arg);
}

void store_delete_layer(struct store *s, const char *id, store_done_fn *done, void *arg)
{
	store_delete(s, &store_layers, id, done, arg);
}

int store_each_template(struct store *s, void (*each)(void *arg, const void *row), void *arg)
{
	return store_each(s, &store_templates, NULL, each, arg);
}

int store_each_build(struct store *s, void (*each)(void *arg, const void *row), void *arg)
{
	return store_each(s, &store_builds, NULL, each, arg);
}

int store_each_tag(struct store *s, void (*each)(void *arg, const void *row), void *arg)
{
	return store_each(s, &store_tags, NULL, each, arg);
}

int store_each_layer(struct store *s, void (*each)(void *arg, const void *row), void *arg)
{
	return store_each(s, &store_layers, NULL, each, arg);
}
