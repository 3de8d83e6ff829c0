/* Checks the names of templates and tags. */
#include <string.h>

#include "base/cleanup.h"
#include "model/build.h"
#include "model/template.h"

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_name(const char *text, size_t len, size_t max, bool slashes)
{
	bool begin = true;
	if (len == 0 || len > max)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool slash = slashes && text[i] == '/' && !begin;
		if (!is_word(text[i]) && !slash && (begin || !text[i] || !strchr("._-", text[i])))
			return false;
		begin = slash;
	}
	return !begin;
}

int template_check_name(const char *name, const char *field, struct error *e)
{
	if (is_name(name, strlen(name), TEMPLATE_NAME_MAX, true))
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, field,
		"the name of a template or snapshot has up to %d letters, digits, '.', '_', '-' and '/', and begins with a letter or digit",
		TEMPLATE_NAME_MAX);
}

int template_check_tag(const char *tag, const char *field, struct error *e)
{
	if (is_name(tag, strlen(tag), TEMPLATE_TAG_MAX, false))
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, field,
		"a tag has up to %d letters, digits, '.', '_' and '-', and begins with a letter or digit",
		TEMPLATE_TAG_MAX);
}

static int bad_ref(const char *ref, struct error *e)
{
	return error_set_field(e, ERROR_INVALID_FIELD, "template",
		"'%.64s' is not a name, or name:tag, of a template", ref);
}

int template_split(const char *ref, char name[TEMPLATE_NAME_MAX + 1],
	char tag[TEMPLATE_TAG_MAX + 1], struct error *e)
{
	size_t len = strcspn(ref, ":");
	const char *rest = ref[len] ? ref + len + 1 : "";
	if (!is_name(ref, len, TEMPLATE_NAME_MAX, true) ||
		(ref[len] && !is_name(rest, strlen(rest), TEMPLATE_TAG_MAX, false)))
		return bad_ref(ref, e);
	memcpy(name, ref, len);
	name[len] = '\0';
	memcpy(tag, rest, strlen(rest) + 1);
	return 0;
}

/* ---- fields ---- */

#define AT(KIND, member) FIELD_AT(KIND, struct template_view, member)

/* In the order of the answer. */
/* clang-format off */
static const struct field template_fields[] = {
	{.name = "id", AT(TEXT, id), .flags = FIELD_SHOWN},
	{.name = "name", AT(TEXT, name), .flags = FIELD_SHOWN},
	{.name = "description", AT(TEXT, description), .flags = FIELD_SHOWN},
	{.name = "default", AT(BOOL, is_default), .flags = FIELD_SHOWN},
	{.name = "builtIn", AT(BOOL, built_in), .flags = FIELD_SHOWN},
	{.name = "status", AT(ENUM, status), .flags = FIELD_SHOWN, .names = build_status_names},
	{.name = "size", AT(INTEGER, bytes), .flags = FIELD_SHOWN,
		.about = "Bytes that its latest build has added"},
	{.name = "createdAt", AT(TIME, created_ms), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY},
	{.name = "tags", .kind = FIELD_OWN, .flags = FIELD_SHOWN},
	/* For dialects: the native API does not show these. */
	{AT(BYTES, resources.memory)},
	{AT(CPU, resources.cpu)},
	{AT(BYTES, resources.disk)},
};

static const struct field tag_fields[] = {
	{.name = "tag", FIELD_AT(TEXT, struct tag_view, tag), .flags = FIELD_SHOWN},
	{.name = "build", FIELD_AT(TEXT, struct tag_view, build), .flags = FIELD_SHOWN},
	{.name = "createdAt", FIELD_AT(TIME, struct tag_view, created_ms), .flags = FIELD_SHOWN},
};
/* clang-format on */

const struct field_table template_model = {
	template_fields, ARRAY_LEN(template_fields), sizeof(struct template_view)};
const struct field_table tag_model = {tag_fields, ARRAY_LEN(tag_fields), sizeof(struct tag_view)};
