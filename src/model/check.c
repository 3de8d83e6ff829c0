#include "model/check.h"

#include <stdbool.h>
#include <string.h>

static bool has_parent_step(const char *path)
{
	for (const char *p = path; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
			return true;
	}
	return false;
}

int check_path(const char *text, const char *field, struct error *e)
{
	if (!has_parent_step(text))
		return 0;
	return error_set_field(
		e, ERROR_INVALID_FIELD, field, "\"%s\" must not contain '..'", field);
}

int check_absolute_path(const char *text, const char *field, struct error *e)
{
	if (check_path(text, field, e) < 0)
		return -1;
	if (text[0] == '/')
		return 0;
	return error_set_field(
		e, ERROR_INVALID_FIELD, field, "\"%s\" must be an absolute path", field);
}

int check_name(const char *text, const char *field, struct error *e)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	if (!text[0] || (strspn(text, allowed) == strlen(text) && !strchr("-_.", text[0])))
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, field,
		"\"%s\" may have letters, digits, '-', '_' and '.', and must not begin with a sign",
		field);
}

int check_user(const char *text, const char *field, struct error *e)
{
	if (strcspn(text, ":/\n\r\t ") == strlen(text))
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, field,
		"\"%s\" must be the name or number of a user", field);
}

int check_preview_host(const char *text, const char *field, struct error *e)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:[]";
	static const char port[] = "${PORT}";
	const char *p = text;
	while (*p && (strchr(allowed, *p) || strncmp(p, port, sizeof port - 1) == 0))
		p += *p == '$' ? sizeof port - 1 : 1;
	if (!*p)
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, field,
		"\"%s\" must be a host name, perhaps with a port; ${PORT} may stand in it", field);
}
