/*
 * Parameters as those who send forms write them:
 *
 * - browsers, undici, httpx and urllib3 2 put names into quotes, with %22, %0D and %0A for the
 * three bytes that cannot be there, and nothing else escaped; so only these three are decoded;
 * - curl and older ones escape quotes and backslashes by a backslash; a backslash before anything
 * else is one, as in names from Windows;
 * - urllib3 1 writes names beyond ASCII as filename*=utf-8''…, percent-encoded; it wins over
 * filename.
 *
 * Refused: parameters twice, unterminated quotes, other charsets than UTF-8, and %00 in filename*.
 */
#include "http/disposition.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "http/parser.h"
#include "base/utf8.h"

struct parameter {
	const char *name;
	char *value;
};

static int next_parameter(char **text, struct parameter *ret, struct error *e);
static bool trim_end(char *text);
static int cut_quoted(char **text, char **value, struct error *e);
static void decode_browser(char *text);
static int decode_extended(char *text, char **value, struct error *e);
static int set_once(const char **place, const char *value, struct error *e);
static bool is_boundary(const char *text);
static int disposition_set_malformed(struct error *e);

int disposition_parse(char *text, struct disposition *ret, struct error *e)
{
	const char *extended = NULL;
	char *kind = strsep(&text, ";");
	*ret = (struct disposition){0};
	if (!trim_end(kind) || strcasecmp(kind, "form-data") != 0)
		return disposition_set_malformed(e);
	while (text) {
		struct parameter p = {.name = ""};
		int r = next_parameter(&text, &p, e);
		if (r < 0)
			return r;
		if (strcasecmp(p.name, "name") == 0) {
			decode_browser(p.value);
			r = set_once(&ret->name, p.value, e);
		} else if (strcasecmp(p.name, "filename") == 0) {
			decode_browser(p.value);
			r = set_once(&ret->filename, p.value, e);
		} else if (strcasecmp(p.name, "filename*") == 0) {
			r = decode_extended(p.value, &p.value, e);
			if (r == 0)
				r = set_once(&extended, p.value, e);
		}
		if (r < 0)
			return r;
	}
	if (extended)
		ret->filename = extended;
	return ret->name ? 0 : disposition_set_malformed(e);
}

static int set_once(const char **place, const char *value, struct error *e)
{
	if (*place || !value || !utf8_is_valid(value, strlen(value)))
		return disposition_set_malformed(e);
	*place = value;
	return 0;
}

/* ---- parameters ---- */

/* *text is behind a ";", and afterwards behind the next one, or NULL. */
static int next_parameter(char **text, struct parameter *ret, struct error *e)
{
	char *name = *text + strspn(*text, " \t");
	char *value = strchr(name, '=');
	if (!value || !http_is_token(name, (size_t)(value - name)))
		return disposition_set_malformed(e);
	*value++ = '\0';
	ret->name = name;
	*text = value;
	if (*value == '"')
		return cut_quoted(text, &ret->value, e);
	ret->value = strsep(text, ";");
	/* "'" and "%" may be in tokens, so filename* is one, too. */
	bool token = trim_end(ret->value) && http_is_token(ret->value, strlen(ret->value));
	return token ? 0 : disposition_set_malformed(e);
}

/* Cuts spaces off; false when something comes behind them. */
static bool trim_end(char *text)
{
	size_t len = strcspn(text, " \t");
	bool clean = text[len + strspn(text + len, " \t")] == '\0';
	text[len] = '\0';
	return clean;
}

static int cut_quoted(char **text, char **value, struct error *e)
{
	char *in = *text + 1;
	char *out = in;
	*value = in;
	while (*in && *in != '"') {
		if (in[0] == '\\' && (in[1] == '"' || in[1] == '\\'))
			in++;
		*out++ = *in++;
	}
	if (!*in)
		return disposition_set_malformed(e);
	in++;
	in += strspn(in, " \t");
	*out = '\0';
	if (*in && *in != ';')
		return disposition_set_malformed(e);
	*text = *in ? in + 1 : NULL;
	return 0;
}

/* ---- encodings ---- */

static void decode_browser(char *text)
{
	static const struct {
		const char *code;
		char byte;
	} codes[] = {{"%22", '"'}, {"%0D", '\r'}, {"%0A", '\n'}};
	char *out = text;
	for (const char *in = text; *in; out++) {
		*out = *in;
		size_t len = 1;
		for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
			if (strncasecmp(in, codes[i].code, 3) == 0) {
				*out = codes[i].byte;
				len = 3;
			}
		}
		in += len;
	}
	*out = '\0';
}

/* utf-8'LANGUAGE'percent-encoded */
static int decode_extended(char *text, char **value, struct error *e)
{
	char *language = strchr(text, '\'');
	char *in = language ? strchr(language + 1, '\'') : NULL;
	if (!in || language - text != 5 || strncasecmp(text, "utf-8", 5) != 0)
		return disposition_set_malformed(e);
	char *out = ++in;
	*value = out;
	while (*in) {
		char byte = *in++;
		if (byte == '%') {
			int high = http_hex_digit(in[0]);
			int low = high < 0 ? -1 : http_hex_digit(in[1]);
			if (low < 0 || high + low == 0)
				return disposition_set_malformed(e);
			byte = (char)(high * 16 + low);
			in += 2;
		}
		*out++ = byte;
	}
	*out = '\0';
	return 0;
}

/* ---- boundaries ---- */

int multipart_find_boundary(
	const char *type, char boundary[MULTIPART_BOUNDARY_MAX + 1], struct error *e)
{
	static const char form[] = "multipart/form-data";
	size_t len = type ? strcspn(type, "; \t") : 0;
	const char *found = NULL;
	if (len != strlen(form) || strncasecmp(type, form, len) != 0)
		return error_set(e, ERROR_UNSUPPORTED_MEDIA_TYPE,
			"the body must be a form, with 'Content-Type: multipart/form-data'");
	len += strspn(type + len, " \t");
	autofree char *copy = type[len] == ';' ? strdup(type + len + 1) : NULL;
	char *text = copy;
	while (text) {
		struct parameter p = {.name = ""};
		int r = next_parameter(&text, &p, e);
		if (r == 0 && strcasecmp(p.name, "boundary") == 0)
			r = set_once(&found, p.value, e);
		if (r < 0)
			return r;
	}
	if (!found || !is_boundary(found))
		return disposition_set_malformed(e);
	memcpy(boundary, found, strlen(found) + 1);
	return 0;
}

static bool is_boundary(const char *text)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789'()+_,-./:=? ";
	size_t len = strlen(text);
	return len > 0 && len <= MULTIPART_BOUNDARY_MAX && strspn(text, allowed) == len &&
	       text[len - 1] != ' ';
}

static int disposition_set_malformed(struct error *e)
{
	return error_set(e, ERROR_INVALID_REQUEST,
		"the form is malformed: a Content-Type or Content-Disposition cannot be read");
}
