#include "egress/first.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

#define TLS_HANDSHAKE 22
#define METHOD_MAX    20

static const char *const methods[] = {"GET ", "HEAD ", "POST ", "PUT ", "PATCH ", "DELETE ",
	"OPTIONS ", "CONNECT ", "TRACE ", "PRI ", "PROPFIND ", "PROPPATCH ", "MKCOL ", "COPY ",
	"MOVE ", "LOCK ", "UNLOCK ", "SEARCH ", "REPORT "};

/* Whether it begins with a method that is known, or is the beginning of one. */
static bool begins_with_method(const uint8_t *data, size_t len, bool *is_part)
{
	*is_part = false;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		size_t size = strlen(methods[i]);
		if (strncasecmp((const char *)data, methods[i], len < size ? len : size) != 0)
			continue;
		if (len >= size)
			return true;
		*is_part = true;
	}
	return false;
}

/* Whether a line can begin a request: some token, then a space. */
static bool begins_with_token(const uint8_t *line, size_t len)
{
	for (size_t i = 0; i < len && i <= METHOD_MAX; i++)
		if (line[i] == ' ' || line[i] == '\t')
			return i > 0;
		else if (!isalnum(line[i]) && !strchr("!#$%&'*+-.^_`|~", line[i]))
			return false;
	return len <= METHOD_MAX;
}

/* Whether " HTTP/" is in the line: servers take methods that nobody knows. */
static bool names_http(const uint8_t *line, size_t len)
{
	static const char version[] = " HTTP/";
	for (size_t i = 0; i + sizeof version - 1 <= len; i++)
		if (strncasecmp((const char *)line + i, version, sizeof version - 1) == 0)
			return true;
	return false;
}

enum first_kind first_look(const uint8_t *data, size_t len)
{
	size_t skip = 0, end;
	bool is_part;
	if (len > 0 && data[0] == TLS_HANDSHAKE)
		return FIRST_TLS;
	while (skip < len && data[skip] && strchr(" \t\r\n", data[skip]))
		skip++; /* servers skip empty lines before a request */
	if (begins_with_method(data + skip, len - skip, &is_part))
		return FIRST_HTTP;
	for (end = skip; end < len && data[end] != '\n'; end++)
		if (data[end] < 0x20 && data[end] != '\r' && data[end] != '\t')
			return FIRST_OTHER;
	if (!begins_with_token(data + skip, end - skip))
		return FIRST_OTHER;
	if (names_http(data + skip, end - skip))
		return FIRST_HTTP;
	if (end < len || len >= REQUEST_MAX)
		return FIRST_OTHER;
	return is_part ? FIRST_MORE : FIRST_TEXT;
}
