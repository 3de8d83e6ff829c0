#include "model/secret.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define AT(KIND, member) FIELD_AT(KIND, struct secret_record, member)

/* In the order of the answer. */
/* clang-format off */
static const struct field secret_fields[] = {
	{FIELD_CHARS_AT(struct secret_record, id), .flags = FIELD_KEY, .column = "id"},
	{AT(TEXT, tenant), .flags = FIELD_FIXED, .column = "tenant"},
	{.name = "name", AT(TEXT, name), .flags = FIELD_SHOWN | FIELD_FIXED, .column = "name"},
	{.name = "createdAt", AT(TIME, created_ms), .flags = FIELD_SHOWN | FIELD_FIXED,
		.column = "created_ms"},
	{.name = "updatedAt", AT(TIME, updated_ms), .flags = FIELD_SHOWN, .column = "updated_ms",
		.about = "When its value was given last"},
	{.name = "sandboxes", AT(INTEGER, sandboxes), .flags = FIELD_SHOWN,
		.about = "How many sandboxes have a rule that names it"},
	{.name = "readable", AT(BOOL, readable), .flags = FIELD_SHOWN,
		.about = "False: it was stored under a key that the server does not have any more"},
	{.name = "value", AT(TEXT, value), .flags = FIELD_CREATE | FIELD_REQUIRED | FIELD_NOT_EMPTY,
		.max = SECRET_VALUE_MAX, .check = secret_check_value,
		.about = "Never shown again"},
	{AT(LIST, sealed), .column = "sealed"},
};
/* clang-format on */

const struct field_table secret_model = {
	secret_fields, ARRAY_LEN(secret_fields), sizeof(struct secret_record)};

static const char name_begins[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
static const char name_goes_on[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789-";

/* Returns 0 if no name begins here. */
static size_t secret_name_length(const char *text)
{
	size_t len = text[0] && strchr(name_begins, text[0]) ? strspn(text, name_goes_on) : 0;
	return len <= SECRET_NAME_MAX ? len : 0;
}

int secret_check_name(const char *text, const char *field, struct error *e)
{
	size_t len = secret_name_length(text);
	if (len > 0 && !text[len])
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, field,
		"\"%s\" must be a letter or '_' and then at most %d letters, digits, '_' and '-'",
		field, SECRET_NAME_MAX - 1);
}

int secret_check_value(const char *text, const char *field, struct error *e)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if ((*c < ' ' && *c != '\t') || *c == 0x7f)
			return error_set_field(e, ERROR_INVALID_FIELD, field,
				"\"%s\" must be one line without control characters: it goes into headers",
				field);
	return 0;
}

int secret_find_reference(const char **at, const char **begin, char name[SECRET_NAME_MAX + 1])
{
	*begin = strstr(*at, SECRET_REFERENCE);
	if (!*begin)
		return 0;
	const char *text = *begin + strlen(SECRET_REFERENCE);
	size_t len = secret_name_length(text);
	if (len == 0 || text[len] != '}')
		return -EINVAL;
	memcpy(name, text, len);
	name[len] = '\0';
	*at = text + len + 1;
	return 1;
}
