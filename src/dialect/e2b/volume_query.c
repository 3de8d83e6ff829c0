/* What the content's routes share: who may, which volume, which path, what is to be made. */
#include "dialect/e2b/volumes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TOKEN_KIND "e2b volume"
#define USER_ID    1000 /* `user`, whom a new volume belongs to */

/* ---- admission ---- */

void e2b_volume_token(const struct http_request *req, const char *id, char out[AUTH_TOKEN_SIZE])
{
	auth_make_token(server_of(req)->auth, auth_mark(req), TOKEN_KIND, id, out);
}

int e2b_admit_volume(struct http_request *req, struct error *e)
{
	char id[ID_SIZE], mark[AUTH_MARK_SIZE];
	const struct auth *auth = server_of(req)->auth;
	const char *header = http_header(req, "authorization");
	if (header && strncasecmp(header, "Bearer ", 7) == 0 &&
		auth_open_token(auth, TOKEN_KIND, header + 7, id, mark) &&
		strcmp(id, http_param(req, "volume")) == 0)
		return auth_admit_mark(auth, req, mark, e);
	return error_set(e, ERROR_UNAUTHORIZED,
		"the volume's own token is needed, as 'Authorization: Bearer TOKEN'");
}

/* ---- the query ---- */

/* Appends a name with its slash, or takes the last one off for "..". */
static size_t add_name(char *out, size_t len, const char *name, size_t name_len)
{
	if (name_len == 0 || (name_len == 1 && name[0] == '.'))
		return len;
	if (name_len == 2 && name[0] == '.' && name[1] == '.') {
		while (len > 0 && out[--len] != '/')
			;
		return len;
	}
	out[len++] = '/';
	memcpy(out + len, name, name_len);
	return len + name_len;
}

static int clean_path(struct http_request *req, const char **ret, struct error *e)
{
	const char *path = http_query(req, "path");
	size_t len = 0;
	if (!path)
		return error_set_field(e, ERROR_MISSING_FIELD, "path", "\"path\" is required");
	if (strlen(path) > VOLUME_PATH_MAX)
		return error_set_field(
			e, ERROR_NAME_TOO_LONG, "path", "\"path\" is longer than 4095 bytes");
	char *clean = http_alloc(req, strlen(path) + 2);
	if (!clean)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
	while (*path) {
		size_t name_len = strcspn(path, "/");
		len = add_name(clean, len, path, name_len);
		path += name_len + (path[name_len] == '/');
	}
	if (len == 0)
		clean[len++] = '/';
	clean[len] = '\0';
	*ret = clean;
	return 0;
}

/* An empty value is an absent one here, too. */
static int query_force(const struct http_request *req, bool *ret, struct error *e)
{
	const char *text = http_query(req, "force");
	return text && text[0] ? query_bool(req, "force", ret, e) : 0;
}

int e2b_volume_make(
	struct http_request *req, unsigned default_mode, struct volume_make *ret, struct error *e)
{
	int64_t uid = USER_ID, gid = USER_ID, mode = default_mode;
	*ret = (struct volume_make){0};
	if (query_optional_number(req, "uid", 0, VOLUME_OWNER_MAX, &uid, e) < 0 ||
		query_optional_number(req, "gid", 0, VOLUME_OWNER_MAX, &gid, e) < 0 ||
		query_optional_number(req, "mode", 0, VOLUME_MODE_MAX, &mode, e) < 0 ||
		query_force(req, &ret->force, e) < 0)
		return -1;
	ret->mode = (unsigned)mode;
	snprintf(ret->owner, sizeof ret->owner, "%d:%d", (int)uid, (int)gid);
	return 0;
}

struct answer *e2b_volume_answer(struct http_request *req, const struct answer_form *form)
{
	struct answer *a = answer_new(req, form);
	a->call.volume = http_param(req, "volume");
	return a;
}

void e2b_volume_explain(const char *path, const struct error *why, struct error *e)
{
	*e = *why;
	if (why->code == ERROR_NOT_FOUND)
		error_set(e, ERROR_NOT_FOUND, "path '%.250s' not found", path);
	else if (why->code == ERROR_ALREADY_EXISTS)
		error_set(e, ERROR_ALREADY_EXISTS, "path '%.250s' already exists", path);
}

void e2b_volume_serve(struct http_request *req, volume_begin_fn *begin)
{
	static const struct answer_form refused_form = {.pace = ANSWER_WHOLE};
	struct error e = {0};
	const char *path = NULL;
	if (clean_path(req, &path, &e) < 0 || begin(req, path, &e) < 0)
		answer_refuse(e2b_volume_answer(req, &refused_form), &e);
}
