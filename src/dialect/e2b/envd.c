#include "dialect/e2b/envd.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "dialect/e2b/rpc.h"
#include "dialect/e2b/aliases.h"
#include "op/admission.h"

#define USER_MAX 63

/* ---- which requests are envd's ---- */

unsigned e2b_claims(const struct http_request *req)
{
	const struct http_destination *d = http_destination(req);
	if (d)
		return d->port == E2B_ENVD_PORT   ? E2B_CLAIM_ENVD
		       : d->port == E2B_CODE_PORT ? E2B_CLAIM_CODE
						  : 0;
	/* A browser that asks first does not say which of the two it is for. */
	if (e2b_asks_for_sandbox(req))
		return E2B_CLAIM_ENVD | E2B_CLAIM_CODE;
	return http_header(req, "x-access-token") ? E2B_CLAIM_ENVD : 0;
}

/* ---- admission ---- */

static bool envd_is_at(const struct http_request *req, const char *path)
{
	const char *target = http_target(req);
	size_t len = strlen(path);
	return strncmp(target, path, len) == 0 && (target[len] == '\0' || target[len] == '?');
}

static int check_access(struct http_request *req, const char *id, struct error *e)
{
	char mark[AUTH_MARK_SIZE];
	const struct auth *auth = server_of(req)->auth;
	if (envd_is_at(req, "/health"))
		return 0;
	if (envd_is_at(req, "/files"))
		return e2b_check_file_access(req, id, mark, e) < 0
			       ? -1
			       : auth_admit_mark(auth, req, mark, e);
	if (e2b_has_token(req, id, mark))
		return auth_admit_mark(auth, req, mark, e);
	return error_set(e, ERROR_UNAUTHORIZED,
		"unauthorized access, please provide a valid access token or method signing if supported");
}

int envd_admit(struct http_request *req, struct error *e)
{
	const struct server *d = server_of(req);
	if (e2b_find_destination(req, e) < 0)
		return -1;
	const char *id = http_destination(req)->id;
	if (!op_is_reachable(d->ops, id))
		return error_set(e, ERROR_NOT_RUNNING, "The sandbox was not found");
	return check_access(req, id, e);
}

struct answer *envd_answer(struct http_request *req, const struct answer_form *form)
{
	struct answer *a = answer_new(req, form);
	a->call.sandbox = http_destination(req)->id;
	return a;
}

/* ---- errors ---- */

/* For SDKs a status 502 means that the sandbox is gone, and nothing else does. */
static void encode_gone(const struct http_request *req, struct http_error_answer *answer)
{
	const struct http_destination *d = http_destination(req);
	struct json_writer w = {.out = &answer->body};
	answer->status = 502;
	json_begin_object(&w);
	json_put_string(&w, "sandboxId", d ? d->name : "");
	json_put_string(&w, "message", "The sandbox was not found");
	json_put_int(&w, "code", 502);
	json_end_object(&w);
}

void envd_encode_error(
	struct http_request *req, const struct error *e, struct http_error_answer *answer)
{
	struct json_writer w = {.out = &answer->body};
	if (e->code == ERROR_NOT_RUNNING || e->code == ERROR_PAUSED) {
		encode_gone(req, answer);
		return;
	}
	json_begin_object(&w);
	json_put_int(&w, "code", answer->status);
	json_put_string(&w, "message", e->message);
	json_end_object(&w);
}

/* Before a call is taken its errors are envd's; afterwards they are Connect's. */
void envd_encode_rpc_error(
	struct http_request *req, const struct error *e, struct http_error_answer *answer)
{
	if (e->code == ERROR_NOT_RUNNING || e->code == ERROR_PAUSED ||
		e->code == ERROR_UNAUTHORIZED)
		envd_encode_error(req, e, answer);
	else
		rpc_encode_error(e, answer);
}

/* ---- as whom, and where ---- */

int envd_user(struct http_request *req, const char **ret, struct error *e)
{
	char text[USER_MAX + 2];
	size_t len;
	const char *header = http_header(req, "authorization"), *end;
	*ret = NULL;
	if (!header || strncasecmp(header, "Basic ", 6) != 0)
		return 0;
	if (sodium_base642bin((unsigned char *)text, sizeof text - 1, header + 6,
		    strlen(header + 6), NULL, &len, &end, sodium_base64_VARIANT_ORIGINAL) != 0 ||
		*end)
		return error_set(e, ERROR_UNAUTHORIZED, "invalid username");
	text[len] = '\0';
	text[strcspn(text, ":")] = '\0';
	if (!text[0])
		return 0;
	size_t size = strlen(text) + 1;
	char *user = http_alloc(req, size);
	if (!user)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
	*ret = memcpy(user, text, size);
	return 0;
}

const char *envd_path(const char *path, struct error *e)
{
	if (path[0] != '~')
		return path[0] ? path : ".";
	if (path[1] == '/' || path[1] == '\0') {
		path += 1 + strspn(path + 1, "/");
		return path[0] ? path : ".";
	}
	error_set_field(e, ERROR_INVALID_FIELD, "path", "cannot expand the home of another user");
	return NULL;
}
