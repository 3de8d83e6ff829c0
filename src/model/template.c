/* What templates and their tags may be called. */
#include <string.h>

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
