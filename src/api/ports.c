/*
 * /v1/sandboxes/{id}/ports: what listens in a sandbox, who may see it without a key, and
 * connections to it. What speaks HTTP there is shown by src/dialect/preview.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/json_body.h"
#include "answer/port_token.h"
#include "api/encode.h"
#include "api/lookup.h"
#include "api/routes.h"
#include "json/json.h"
#include "op/life.h"
#include "op/port.h"

#define LIFE_MS     (INT64_C(3600) * 1000)
#define LIFE_MIN_MS 1000
#define LIFE_MAX_MS (INT64_C(30) * 24 * 3600 * 1000)

struct port_body {
	bool is_public;
	int64_t life_ms;
};

struct port_answer {
	struct json_writer w;
	bool begun;
};

#define AT(member) offsetof(struct port_body, member)

static const struct json_field open_fields[] = {
	{"public", FIELD_BOOL, AT(is_public), FIELD_REQUIRED, 0, 0},
};

static const struct json_field token_fields[] = {
	{"expires", FIELD_DURATION, AT(life_ms), 0, LIFE_MIN_MS, LIFE_MAX_MS},
};

static int port_of(const struct http_request *req, int64_t *ret, struct error *e)
{
	const char *text = http_param(req, "port");
	char *end;
	*ret = strtol(text, &end, 10);
	if (text[0] >= '1' && text[0] <= '9' && !*end && *ret <= 65535)
		return 0;
	return error_set_field(
		e, ERROR_INVALID_FIELD, "port", "\"port\" must be a number from 1 to 65535");
}

/* ---- what listens ---- */

static int list_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct port_answer *own = a->own;
	struct json_writer *w = &own->w;
	const struct port_listener *l = event->record;
	(void)e;
	if (!own->begun) {
		*w = (struct json_writer){.out = &a->out};
		json_begin_object(w);
		json_key(w, "ports");
		json_begin_array(w);
		own->begun = true;
	}
	if (event->kind == OP_DONE) {
		json_end_array(w);
		json_end_object(w);
	} else {
		json_begin_object(w);
		json_encode(w, &port_model, l, NULL);
		port_put_url(w, a->req, a->call.sandbox, l->port, "");
		json_end_object(w);
	}
	return 0;
}

static void handle_list_ports(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct port_answer),
		.put = list_put};
	struct answer *a = api_answer(req, &form);
	a->op = op_port_list(&a->call);
	answer_run(a);
}

static int one_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	const struct sandbox_view *view = event->sandbox;
	int64_t port;
	if (port_of(a->req, &port, e) < 0)
		return -1;
	json_begin_object(&w);
	json_put_int(&w, "port", port);
	json_put_bool(&w, "public", port_is_public(view, port));
	port_put_url(&w, a->req, a->call.sandbox, port, "");
	json_end_object(&w);
	return 0;
}

static void handle_get_port(struct http_request *req)
{
	static const struct answer_form form = {
		.type = "application/json", .pace = ANSWER_WHOLE, .put = one_put};
	struct error e = {0};
	int64_t port;
	struct answer *a = api_answer(req, &form);
	if (port_of(req, &port, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_get(&a->call, &(struct op_get){0});
	answer_run(a);
}

/* ---- connections ---- */

static void handle_connect(struct http_request *req)
{
	static const struct answer_form form = {.pace = ANSWER_WHOLE};
	static const struct answer_pass pass = {.tunnel = "tcp"};
	struct error e = {0};
	int64_t port = 0;
	struct answer *a = api_answer(req, &form);
	int r = port_of(req, &port, &e);
	if (r == 0 && !http_wants_upgrade(req, pass.tunnel))
		r = error_set(&e, ERROR_UPGRADE_REQUIRED,
			"this is asked for with Connection: Upgrade and Upgrade: tcp");
	if (r < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_port(&a->call, &(struct op_port){.port = (unsigned)port});
	answer_run_pass(a, &pass);
}

/* ---- for everyone ---- */

static int open_put(struct answer *a, const struct op_event *event, struct error *e)
{
	const bool *is_public = a->own;
	struct json_writer w = {.out = &a->out};
	int64_t port;
	if (event->kind != OP_DONE || port_of(a->req, &port, e) < 0)
		return 0;
	json_begin_object(&w);
	json_put_int(&w, "port", port);
	json_put_bool(&w, "public", *is_public);
	port_put_url(&w, a->req, a->call.sandbox, port, "");
	json_end_object(&w);
	return 0;
}

static void handle_open(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(bool),
		.put = open_put};
	struct op_port_grant grant = {0};
	struct port_body fields = {0};
	struct error e = {0};
	struct answer *a = api_answer(req, &form);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body || port_of(req, &grant.port, &e) < 0 ||
		json_decode(body, open_fields, ARRAY_LEN(open_fields), "", &fields, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	*(bool *)a->own = fields.is_public;
	grant.act = fields.is_public ? OP_PORT_OPEN : OP_PORT_CLOSE;
	a->op = op_port_grant(&a->call, &grant);
	answer_run(a);
}

/* ---- for whoever holds a token ---- */

static int token_put(struct answer *a, const struct op_event *event, struct error *e)
{
	const struct port_grant *grant = event->grant;
	struct json_writer w = {.out = &a->out};
	char token[PORT_TOKEN_SIZE], query[PORT_TOKEN_SIZE + 16];
	(void)e;
	port_token_make(
		server_of(a->req)->auth, a->call.sandbox, (unsigned)grant->port, grant->id, token);
	snprintf(query, sizeof query, "?bunker_token=%s", token);
	json_begin_object(&w);
	json_put_string(&w, "id", grant->id);
	json_put_string(&w, "token", token);
	port_put_url(&w, a->req, a->call.sandbox, grant->port, query);
	json_put_time(&w, "expiresAt", grant->expires_ms);
	json_end_object(&w);
	return 0;
}

static void handle_make_token(struct http_request *req)
{
	static const struct answer_form form = {
		.type = "application/json", .pace = ANSWER_WHOLE, .put = token_put};
	struct op_port_grant grant = {.act = OP_PORT_TOKEN};
	struct port_body fields = {.life_ms = LIFE_MS};
	struct error e = {0};
	struct answer *a = api_answer(req, &form);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body || port_of(req, &grant.port, &e) < 0 ||
		json_decode(body, token_fields, ARRAY_LEN(token_fields), "", &fields, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	grant.life_ms = fields.life_ms;
	a->op = op_port_grant(&a->call, &grant);
	answer_run(a);
}

static void handle_revoke_token(struct http_request *req)
{
	static const struct answer_form form = {.pace = ANSWER_WHOLE};
	struct op_port_grant grant = {.act = OP_PORT_REVOKE};
	struct error e = {0};
	struct answer *a = api_answer(req, &form);
	if (port_of(req, &grant.port, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	/* A malformed id is treated as one that does not exist. */
	snprintf(grant.id, sizeof grant.id, "%s", http_param(req, "token"));
	a->status = 204;
	a->op = op_port_grant(&a->call, &grant);
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/ports", handle_list_ports, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/ports/{port}", handle_get_port, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/ports/{port}/connect", handle_connect, 0,
		.scope = HTTP_SCOPE_USE},
	{HTTP_PUT, "/v1/sandboxes/{id}/ports/{port}", handle_open, SMALL_BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/ports/{port}/tokens", handle_make_token, SMALL_BODY_LIMIT},
	{HTTP_DELETE, "/v1/sandboxes/{id}/ports/{port}/tokens/{token}", handle_revoke_token, 0},
};

const struct route_table port_table = ROUTE_TABLE(routes);
