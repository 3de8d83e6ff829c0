#include "client/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "client/answer.h"
#include "client/failure.h"
#include "client/transport.h"
#include "json/json.h"

/* Creating may build a template first; anything slower than this is stuck. */
#define SILENCE_S 300

struct bunker {
	struct transport_url url;
	char *api_key;
	unsigned patience_s;
};

/* The destination of a response's body: the line callback if a stream succeeds, else the text. */
struct receiver {
	struct lines *lines;
	bunker_data_fn *data;
	void *arg;
	struct buf text;
	struct bunker_error *e;
};

/* Returns whether a key can be sent in a header: no space, no control byte, only ASCII. */
static bool key_is_sendable(const char *key)
{
	if (!*key)
		return false;
	for (; *key; key++)
		if (*key <= ' ' || *key >= 0x7f)
			return false;
	return true;
}

int bunker_open(struct bunker **ret, const char *url, const char *api_key, struct bunker_error *e)
{
	struct transport_url parsed;
	if (client_transport_parse_url(url, &parsed, e) < 0)
		return -1;
	if (api_key && !key_is_sendable(api_key))
		return client_fail(e, BUNKER_INVALID_ARGUMENT,
			"the API key is empty or has characters that no key has");
	autofree struct bunker *b = calloc(1, sizeof *b);
	if (!b)
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	b->url = parsed;
	if (api_key && !(b->api_key = strdup(api_key)))
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	*ret = take_ptr(b);
	return 0;
}

void bunker_close(struct bunker *b)
{
	if (!b)
		return;
	free(b->api_key);
	free(b);
}

void bunker_set_patience(struct bunker *b, unsigned seconds)
{
	b->patience_s = seconds;
}

unsigned client_call_patience(const struct bunker *b)
{
	return b->patience_s;
}

const struct transport_url *client_call_url(const struct bunker *b)
{
	return &b->url;
}

const char *client_call_key(const struct bunker *b)
{
	return b->api_key;
}

void client_call_append_escaped(struct buf *target, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "-_.~";
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (strchr(plain, *p))
			buf_append_char(target, (char)*p);
		else
			buf_printf(target, "%%%02X", *p);
	}
}

void client_call_append_query(struct buf *target, const char *name, const char *value)
{
	if (!value)
		return;
	buf_append_char(target, memchr(target->data, '?', target->len) ? '&' : '?');
	buf_append_str(target, name);
	buf_append_char(target, '=');
	client_call_append_escaped(target, value);
}

struct refusal {
	const char *code;
	const char *message;
	const char *field;
};

static const struct answer_field refusal_fields[] = {
	{"code", ANSWER_STRING, offsetof(struct refusal, code)},
	{"message", ANSWER_STRING, offsetof(struct refusal, message)},
	{"field", ANSWER_STRING, offsetof(struct refusal, field)},
};

int client_call_fail(struct bunker_error *e, int http_status, const cJSON *error)
{
	struct refusal why;
	client_answer_decode(error, refusal_fields, ARRAY_LEN(refusal_fields), &why);
	if (*why.code)
		client_fail(e, why.code, "%s", *why.message ? why.message : why.code);
	else
		client_fail(e, BUNKER_INVALID_RESPONSE, "the server answered with HTTP status %d",
			http_status);
	if (e) {
		e->http_status = http_status;
		snprintf(e->field, sizeof e->field, "%s", why.field);
	}
	return -1;
}

static int client_call_receive(void *arg, int status, const char *data, size_t len)
{
	struct receiver *receiver = arg;
	if (receiver->lines && status == 200)
		return client_lines_feed(receiver->lines, data, len, receiver->e);
	if (receiver->data && (status == 200 || status == 206))
		return receiver->data(receiver->arg, data, len) == 0
			       ? 0
			       : client_fail(receiver->e, BUNKER_STOPPED, "stopped");
	if (len > LINES_MAX - receiver->text.len)
		return client_fail(receiver->e, BUNKER_INVALID_RESPONSE,
			"the server's answer is longer than %zu bytes", LINES_MAX);
	buf_append(&receiver->text, data, len);
	return 0;
}

static int client_call_exchange(struct bunker *b, struct transport_request *request,
	struct buf *target, const struct buf *body, struct receiver *receiver, int *status)
{
	buf_append_char(target, '\0');
	if (target->failed || (body && body->failed))
		return client_fail(receiver->e, BUNKER_OUT_OF_MEMORY, "out of memory");
	request->target = target->data;
	request->api_key = b->api_key;
	if (body) {
		request->body = body->data;
		request->body_len = body->len;
	}
	int r = client_transport_exchange(
		&b->url, request, client_call_receive, receiver, status, receiver->e);
	if (r == 0 && receiver->text.failed)
		return client_fail(receiver->e, BUNKER_OUT_OF_MEMORY, "out of memory");
	return r;
}

/* An answer that is not JSON (a proxy's page) still has its status. */
int client_call_fail_refused(struct bunker_error *e, int status, const struct buf *text)
{
	autojson *tree = NULL;
	if (text->len > 0)
		json_parse(text->data, text->len, &tree, NULL);
	return client_call_fail(e, status, cJSON_GetObjectItemCaseSensitive(tree, "error"));
}

static int parse_answer(const struct buf *text, cJSON **ret, struct bunker_error *e)
{
	static const char empty[] = "{}";
	struct error why;
	bool none = text->len == 0;
	int r = json_parse(none ? empty : text->data, none ? strlen(empty) : text->len, ret, &why);
	if (r < 0)
		return client_fail(e, BUNKER_INVALID_RESPONSE,
			"the server's answer is not usable: %s", why.message);
	return 0;
}

static int call_for_json(struct bunker *b, struct transport_request *request, struct buf *target,
	const struct buf *body, cJSON **ret, struct bunker_error *e)
{
	struct receiver receiver = {.e = e};
	int status = 0;
	int r = client_call_exchange(b, request, target, body, &receiver, &status);
	if (r == 0 && (status < 200 || status > 299))
		r = client_call_fail_refused(e, status, &receiver.text);
	if (r == 0)
		r = parse_answer(&receiver.text, ret, e);
	buf_finish(&receiver.text);
	return r;
}

int client_call_json(struct bunker *b, const char *method, struct buf *target,
	const struct buf *body, cJSON **ret, struct bunker_error *e)
{
	struct transport_request request = {
		.method = method, .accept = "application/json", .silence_s = SILENCE_S};
	return call_for_json(b, &request, target, body, ret, e);
}

int client_call_nothing(struct bunker *b, const char *method, struct buf *target,
	const struct buf *body, struct bunker_error *e)
{
	autojson *tree = NULL;
	return client_call_json(b, method, target, body, &tree, e);
}

/* However long the server takes with what it got. */
int client_call_upload(struct bunker *b, const char *method, struct buf *target, const char *type,
	bunker_read_fn *source, void *arg, cJSON **ret, struct bunker_error *e)
{
	struct transport_request request = {.method = method,
		.accept = "application/json",
		.source = source,
		.source_arg = arg,
		.source_type = type};
	return call_for_json(b, &request, target, NULL, ret, e);
}

int client_call_lines(struct bunker *b, const char *method, struct buf *target,
	const struct buf *body, struct lines *lines, struct bunker_error *e)
{
	struct transport_request request = {.method = method, .accept = "application/x-ndjson"};
	struct receiver receiver = {.lines = lines, .e = e};
	int status = 0;
	int r = client_call_exchange(b, &request, target, body, &receiver, &status);
	if (r == 0 && status != 200)
		r = client_call_fail_refused(e, status, &receiver.text);
	buf_finish(&receiver.text);
	return r;
}

int client_call_bytes(struct bunker *b, struct buf *target, const char *accept,
	bunker_data_fn *data, void *arg, struct bunker_error *e)
{
	struct transport_request request = {.method = "GET", .accept = accept};
	struct receiver receiver = {.data = data, .arg = arg, .e = e};
	int status = 0;
	int r = client_call_exchange(b, &request, target, NULL, &receiver, &status);
	if (r == 0 && status != 200 && status != 206)
		r = client_call_fail_refused(e, status, &receiver.text);
	buf_finish(&receiver.text);
	return r;
}
