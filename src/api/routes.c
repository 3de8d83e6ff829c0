/* The one list of routes, who may use them, and what handlers share. */
#include "api/routes.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

static const struct {
	const struct api_table *table;
	bool open; /* to everyone, without a key */
} tables[API_MOUNTS] = {
	{&sandbox_table, false},
	{&exec_table, false},
	{&execution_table, false},
	{&template_table, false},
	{&metrics_table, false},
	{&health_table, true},
};

const struct http_route *api_route_at(size_t index)
{
	static const struct http_route end = {.pattern = NULL};
	for (size_t i = 0; i < API_MOUNTS; i++) {
		if (index < tables[i].table->count)
			return &tables[i].table->routes[index];
		index -= tables[i].table->count;
	}
	return &end;
}

/* Without keys, what keeps web pages out is that they cannot be called by our name. */
static bool is_loopback_host(const char *host)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
	size_t len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == len && strncasecmp(names[i], host, len) == 0)
			return true;
	return strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == len;
}

static int admit(struct http_request *req, struct error *e)
{
	const struct api *api = http_ctx(req);
	const char *key = http_header(req, "x-api-key");
	const char *authorization = http_header(req, "authorization");
	if (authorization && strncasecmp(authorization, "Bearer ", 7) == 0)
		key = authorization + 7;
	const char *host = http_header(req, "host");
	if (auth_is_disabled(api->auth) && host && !is_loopback_host(host))
		return error_set(e, ERROR_UNAUTHORIZED,
			"without keys, this server answers only to the name of the loopback interface");
	const char *tenant = auth_find(api->auth, key);
	if (!tenant)
		return error_set(e, ERROR_UNAUTHORIZED,
			"a valid API key is needed, as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'");
	http_set_principal(req, (void *)(uintptr_t)tenant);
	return 0;
}

void api_mounts(struct api *api, struct http_mount out[API_MOUNTS])
{
	for (size_t i = 0; i < API_MOUNTS; i++)
		out[i] = (struct http_mount){tables[i].table->routes, tables[i].table->count,
			tables[i].open ? NULL : admit, api};
}

struct sandbox *api_sandbox(struct http_request *req)
{
	struct sandbox *s = sandbox_find(api_box(req), api_tenant(req), http_param(req, "id"));
	if (!s) {
		struct error e;
		error_set(&e, ERROR_NOT_FOUND, "there is no such sandbox");
		http_respond_error(req, &e);
	}
	return s;
}

static bool is_json(const char *type)
{
	static const char json[] = "application/json";
	size_t len = strlen(json);
	return type && strncasecmp(type, json, len) == 0 &&
	       (type[len] == '\0' || type[len] == ';' || type[len] == ' ');
}

cJSON *api_body(struct http_request *req)
{
	struct error e;
	size_t len;
	cJSON *tree = NULL;
	const char *text = http_body(req, &len);
	if (!is_json(http_header(req, "content-type")))
		error_set(&e, ERROR_UNSUPPORTED_MEDIA_TYPE,
			"the body must be JSON, with 'Content-Type: application/json'");
	else if (json_parse(text, len, &tree, &e) == 0 && !cJSON_IsObject(tree)) {
		cJSON_Delete(take_ptr(tree));
		error_set(&e, ERROR_INVALID_JSON, "the body must be a JSON object");
	}
	if (!tree)
		http_respond_error(req, &e);
	return tree;
}

void api_respond_json(struct http_request *req, int status, struct buf *body)
{
	http_respond(req, status, "application/json", body);
}
