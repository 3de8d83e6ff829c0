#include "api/files.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/utf8.h"

#define PATH_LEN_MAX 4095

/* ---- in ---- */

static int files_check_query(struct http_request *req, const char *const *known, struct error *e)
{
	const char *name, *value;
	for (size_t i = 0; http_query_at(req, i, &name, &value); i++) {
		const char *const *k = known;
		while (*k && strcmp(*k, name) != 0)
			k++;
		if (!*k)
			return error_set_field(e, ERROR_UNKNOWN_FIELD, name,
				"there is no parameter '%.64s'", name);
	}
	return 0;
}

int files_query_actor(struct http_request *req, const char *const *known, struct files_actor *ret,
	struct error *e)
{
	if (files_check_query(req, known, e) < 0)
		return -1;
	ret->user = http_query(req, "user");
	ret->cwd = http_query(req, "cwd");
	return decode_place(ret->user, ret->cwd, e);
}

static int files_query_path(struct http_request *req, const char **ret, struct error *e)
{
	const char *rest = http_param(req, "path"), *path = http_query(req, "path");
	if (rest && path)
		return error_set_field(e, ERROR_INVALID_FIELD, "path",
			"the path is either in the URL's path or in its query");
	if (rest) {
		char *absolute = http_alloc(req, strlen(rest) + 2);
		if (!absolute)
			return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
		absolute[0] = '/';
		memcpy(absolute + 1, rest, strlen(rest) + 1);
		path = absolute;
	}
	if (!path)
		return error_set_field(e, ERROR_MISSING_FIELD, "path", "\"path\" is missing");
	if (path[0] == '\0' || strlen(path) > PATH_LEN_MAX)
		return error_set_field(e, ERROR_INVALID_FIELD, "path",
			"\"path\" must have 1 to %d bytes", PATH_LEN_MAX);
	*ret = path;
	return decode_path(path, "path", false, e);
}

int files_query_place(struct http_request *req, const char *const *known, struct files_actor *ret,
	const char **path, struct error *e)
{
	return files_query_actor(req, known, ret, e) < 0 ? -1 : files_query_path(req, path, e);
}

int files_query_flag(
	struct http_request *req, const char *name, unsigned flag, unsigned *flags, struct error *e)
{
	bool on = *flags & flag;
	if (query_bool(req, name, &on, e) < 0)
		return -1;
	*flags = on ? *flags | flag : *flags & ~flag;
	return 0;
}

int files_body_name(const char *text, const char *base64, const char *field, const char *or_else,
	struct scratch *memory, const char **ret, struct error *e)
{
	char twin[48];
	size_t len;
	snprintf(twin, sizeof twin, "%sBase64", field);
	if (text && base64)
		return error_set_field(e, ERROR_INVALID_FIELD, twin,
			"only one of \"%s\" and \"%s\" can be given", field, twin);
	if (base64) {
		const char *bytes;
		if (json_bytes(base64, twin, memory, &bytes, &len, e) < 0)
			return -1;
		if (memchr(bytes, '\0', len))
			return error_set_field(e, ERROR_INVALID_FIELD, twin,
				"\"%s\" must not contain a NUL", twin);
		char *copy = scratch_alloc(memory, len + 1);
		memcpy(copy, bytes, len);
		text = copy;
	}
	text = text ? text : or_else;
	if (!text)
		return error_set_field(e, ERROR_MISSING_FIELD, field, "\"%s\" is missing", field);
	if (text[0] == '\0' || strlen(text) > PATH_LEN_MAX)
		return error_set_field(e, ERROR_INVALID_FIELD, field,
			"\"%s\" must have 1 to %d bytes", field, PATH_LEN_MAX);
	*ret = text;
	return 0;
}

int files_body_path(const char *text, const char *base64, const char *field, const char *or_else,
	struct scratch *memory, const char **ret, struct error *e)
{
	if (files_body_name(text, base64, field, or_else, memory, ret, e) < 0)
		return -1;
	return decode_path(*ret, field, false, e);
}

int files_parse_cursor(
	struct http_request *req, const char *text, const char **ret, struct error *e)
{
	size_t len;
	if (!text)
		return 0;
	char *path = http_alloc(req, strlen(text) + 1);
	if (!path ||
		sodium_base642bin((unsigned char *)path, strlen(text), text, strlen(text), NULL,
			&len, NULL, sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0 ||
		strlen(path) != len)
		return error_set_field(e, ERROR_INVALID_FIELD, "cursor",
			"\"cursor\" must be what an earlier answer gave as nextCursor");
	*ret = path;
	return decode_path(path, "cursor", true, e);
}

/* ---- out ---- */

void files_put_name(struct json_writer *w, const char *key, const char *name)
{
	char twin[48];
	json_put_string(w, key, name);
	if (utf8_is_valid(name, strlen(name)))
		return;
	snprintf(twin, sizeof twin, "%sBase64", key);
	json_key(w, twin);
	json_base64(w, name, strlen(name));
}

static const struct {
	unsigned mode;
	const char *name;
} types[] = {
	{S_IFREG, "file"},
	{S_IFDIR, "directory"},
	{S_IFLNK, "symlink"},
	{S_IFIFO, "fifo"},
	{S_IFSOCK, "socket"},
	{S_IFCHR, "characterDevice"},
	{S_IFBLK, "blockDevice"},
};

const char *files_type_name(unsigned mode)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if ((mode & S_IFMT) == types[i].mode)
			return types[i].name;
	return "unknown";
}

int files_parse_type(const char *text, unsigned *ret, struct error *e)
{
	*ret = 0;
	if (!text)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (strcmp(text, types[i].name) == 0) {
			*ret = types[i].mode;
			return 0;
		}
	}
	return error_set_field(e, ERROR_INVALID_FIELD, "type",
		"\"type\" must be \"file\", \"directory\", \"symlink\", \"fifo\", \"socket\", \"characterDevice\" or \"blockDevice\"");
}

static int64_t to_ms(int64_t ns)
{
	return ns >= 0 ? ns / 1000000 : -((999999 - ns) / 1000000);
}

void files_put_entry(struct json_writer *w, const struct file_entry *entry)
{
	char mode[8];
	const char *slash = strrchr(entry->path, '/');
	snprintf(mode, sizeof mode, "%04o", entry->mode & 07777);
	json_begin_object(w);
	json_put_string(w, "name", slash && slash[1] ? slash + 1 : entry->path);
	files_put_name(w, "path", entry->path);
	json_put_string(w, "type", files_type_name(entry->mode));
	json_put_int(w, "size", (int64_t)entry->size);
	json_put_string(w, "mode", mode);
	json_put_int(w, "uid", entry->uid);
	json_put_int(w, "gid", entry->gid);
	if (entry->owner[0])
		json_put_string(w, "owner", entry->owner);
	if (entry->group[0])
		json_put_string(w, "group", entry->group);
	json_put_int(w, "links", entry->links);
	json_put_time(w, "modifiedAt", to_ms(entry->mtime_ns));
	json_put_time(w, "accessedAt", to_ms(entry->atime_ns));
	json_put_time(w, "changedAt", to_ms(entry->ctime_ns));
	if (S_ISLNK(entry->mode))
		files_put_name(w, "target", entry->target);
	json_end_object(w);
}
