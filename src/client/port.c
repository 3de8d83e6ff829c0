/* Ports of a sandbox. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/failure.h"
#include "client/list.h"
#include "client/transport.h"
#include "json/json.h"

#define FIELD(json_name, kind, member)                                                             \
	{                                                                                          \
		json_name, ANSWER_##kind, offsetof(struct bunker_port, member)                     \
	}

static const struct answer_field port_fields[] = {
	FIELD("port", INTEGER, port),
	FIELD("public", BOOL, is_public),
	FIELD("url", STRING, url),
	FIELD("address", STRING, address),
	FIELD("pid", INTEGER, pid),
	FIELD("command", STRING, command),
	FIELD("id", STRING, id),
	FIELD("token", STRING, token),
	FIELD("expiresAt", STRING, expires_at),
};

static int client_port_decode_item(cJSON *tree, void *item, struct bunker_error *e)
{
	struct bunker_port *port = item;
	(void)e;
	*port = (struct bunker_port){.json = client_answer_to_json(tree)};
	client_answer_decode(tree, port_fields, ARRAY_LEN(port_fields), port);
	return 0;
}

void bunker_port_finish(struct bunker_port *port)
{
	bunker_json_free(port->json);
	*port = (struct bunker_port){0};
}

static void client_port_finish_item(void *item)
{
	bunker_port_finish(item);
}

static const struct list_kind port_list = {"ports", sizeof(struct bunker_port),
	offsetof(struct bunker_port, json), client_port_decode_item, client_port_finish_item};

/* port 0: all of them. */
static void client_port_append_path(struct buf *target, const char *sandbox, int64_t port)
{
	buf_append_str(target, "/v1/sandboxes/");
	client_call_append_escaped(target, sandbox);
	buf_append_str(target, "/ports");
	if (port)
		buf_printf(target, "/%lld", (long long)port);
}

int bunker_port_list(
	struct bunker *b, const char *sandbox, struct bunker_port_list *ret, struct bunker_error *e)
{
	autobuf target = {0};
	void *items;
	client_port_append_path(&target, sandbox, 0);
	int r = client_list(b, &target, &port_list, 0, &items, &ret->count, e);
	if (r == 0)
		ret->items = items;
	return r;
}

void bunker_port_list_finish(struct bunker_port_list *list)
{
	client_list_finish(&port_list, list->items, list->count);
	*list = (struct bunker_port_list){0};
}

char *bunker_port_list_json(const struct bunker_port_list *list)
{
	return client_list_json(&port_list, list->items, list->count);
}

int bunker_port_get(struct bunker *b, const char *sandbox, int64_t port, struct bunker_port *ret,
	struct bunker_error *e)
{
	autobuf target = {0};
	cJSON *tree;
	client_port_append_path(&target, sandbox, port);
	int r = client_call_json(b, "GET", &target, NULL, &tree, e);
	return r < 0 ? r : client_port_decode_item(tree, ret, e);
}

int bunker_port_set_public(struct bunker *b, const char *sandbox, int64_t port, bool is_public,
	struct bunker_port *ret, struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	struct json_writer w = {.out = &body};
	cJSON *tree;
	client_port_append_path(&target, sandbox, port);
	json_begin_object(&w);
	json_put_bool(&w, "public", is_public);
	json_end_object(&w);
	int r = client_call_json(b, "PUT", &target, &body, &tree, e);
	return r < 0 ? r : client_port_decode_item(tree, ret, e);
}

int bunker_port_create_token(struct bunker *b, const char *sandbox, int64_t port,
	const char *expires, struct bunker_port *ret, struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	struct json_writer w = {.out = &body};
	cJSON *tree;
	client_port_append_path(&target, sandbox, port);
	buf_append_str(&target, "/tokens");
	json_begin_object(&w);
	if (expires)
		json_put_string(&w, "expires", expires);
	json_end_object(&w);
	int r = client_call_json(b, "POST", &target, &body, &tree, e);
	if (r < 0)
		return r;
	client_port_decode_item(tree, ret, e);
	ret->port = port;
	return 0;
}

int bunker_port_revoke_token(
	struct bunker *b, const char *sandbox, int64_t port, const char *id, struct bunker_error *e)
{
	autobuf target = {0};
	client_port_append_path(&target, sandbox, port);
	buf_append_str(&target, "/tokens/");
	client_call_append_escaped(&target, id);
	return client_call_nothing(b, "DELETE", &target, NULL, e);
}

int bunker_port_connect(
	struct bunker *b, const char *sandbox, int64_t port, int *fd, struct bunker_error *e)
{
	autobuf target = {0}, rest = {0};
	int status = 0;
	client_port_append_path(&target, sandbox, port);
	buf_append_str(&target, "/connect");
	buf_append_char(&target, '\0');
	if (target.failed)
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	if (client_transport_upgrade(client_call_url(b), target.data, client_call_key(b), "tcp", fd,
		    &rest, &status, e) < 0)
		return -1;
	return status == 101 ? 0 : client_call_fail_refused(e, status, &rest);
}
