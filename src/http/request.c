/*
 * The request: from a head's text to a route, what handlers may ask about it, and the memory that
 * goes with it. The head is copied into that memory and cut into strings there, so that everything
 * a handler gets lives until the request has been answered, whatever happens to the receive buffer.
 *
 * The id is the connection's random id with the request's number: unique, cheap, and in the log one
 * sees which requests shared a connection.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "http/budget.h"
#include "http/connection.h"
#include "http/parsed.h"
#include "http/server.h"

/* Buffers that have grown beyond this are not kept for the next request. */
#define KEEP_MAX 16384

struct http_block {
	struct http_block *next;
	_Alignas(max_align_t) char data[];
};

static int admit_request(struct http_request *req, struct error *e);
static int find_rest(struct http_request *req, const char *text);
static void add_origin_fields(struct http_request *req, const struct http_match *match);
static void log_access(const struct http_request *req);
static void empty_buffer(struct buf *b);

void http_request_begin(struct http_connection *c)
{
	struct http_request *req = &c->request;
	snprintf(req->id, sizeof req->id, "%s-%llu", c->id, (unsigned long long)++c->request_count);
	req->started_us = 0;
	req->head.method = HTTP_GET;
	req->head.method_known = false;
	req->head.method_text = "";
	req->head.http10 = false;
	req->head.target = "";
	req->head.field_count = 0;
	req->target.segment_count = 0;
	req->target.pair_count = 0;
	req->mount = NULL;
	req->route = NULL;
	req->principal = NULL;
	req->has_destination = false;
	req->sink = (struct http_body_sink){0};
	req->aborted = NULL;
	req->status = 0;
	req->arena_used = 0;
	c->cut = false;
	c->body_state = HTTP_BODY_TOLD;
	c->body_paused = false;
	c->piece_len = c->body_unread = 0;
	c->keepalive_ms = 0;
	c->upgraded = c->sized = c->overfull = c->asked = c->head_unsent = c->chunk_unsent =
		c->stream_ended = false;
}

int http_request_parse(struct http_request *req, const char *head, size_t len, struct error *e)
{
	char *text = http_alloc(req, len);
	if (!text)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
	memcpy(text, head, len);
	req->started_us = clock_monotonic_us();
	return http_parse_head(text, len, &req->head, e);
}

int http_request_route(struct http_request *req, struct error *e)
{
	const struct http_head *head = &req->head;
	size_t size = strlen(head->target) + 1;
	char *text = http_alloc(req, size);
	if (!text)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
	memcpy(text, head->target, size);
	int refused = http_split_target(text, &req->target, e);
	const struct http_server *server = req->connection->server;
	if (server->addressed)
		server->addressed(req);
	struct http_match match = http_router_find(
		server->router, req, &req->target, head->method_known, head->method);
	req->mount = match.mount;
	req->allowed = match.allowed;
	if (match.allowed && match.mount->any_origin && http_header(req, "origin"))
		add_origin_fields(req, &match);
	if (refused && !match.route)
		return refused;
	if (match.allowed && !match.route && head->method_known && head->method == HTTP_OPTIONS)
		match = (struct http_match){&http_options, http_options.routes, "/", match.allowed};
	if (!match.allowed)
		return error_set(e, ERROR_ROUTE_NOT_FOUND, "there is nothing at this path");
	if (!match.route) {
		http_request_add_allow(req);
		return error_set(e, ERROR_METHOD_NOT_ALLOWED, "this path has other methods");
	}
	req->mount = match.mount;
	req->route = match.route;
	req->pattern = match.pattern;
	if (find_rest(req, text) < 0)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
	if (req->mount->guard && req->mount->guard(req, e) < 0)
		return -1;
	int r = req->mount->admit ? admit_request(req, e) : 0;
	return r < 0 ? r : http_budget_join(req->connection, e);
}

static int admit_request(struct http_request *req, struct error *e)
{
	int r = req->mount->admit(req, e);
	if (r == 0)
		req->connection->server->known(req->connection);
	return r;
}

/* text is where the target's segments are. */
static int find_rest(struct http_request *req, const char *text)
{
	struct http_param_position at;
	if (!http_pattern_find(req->pattern, NULL, &at))
		return 0;
	const char *first = req->target.segments[at.index];
	if (at.kind == HTTP_PARAM_RAW_REST) {
		req->rest = req->head.target + (first - text);
		return 0;
	}
	char *rest = http_alloc(req, strlen(req->head.target) + 1);
	if (!rest)
		return -ENOMEM;
	req->rest = rest;
	for (size_t i = at.index; i < req->target.segment_count; i++) {
		rest = stpcpy(rest, req->target.segments[i]);
		if (i + 1 < req->target.segment_count)
			*rest++ = '/';
	}
	return 0;
}

bool http_is_preflight(const struct http_request *req)
{
	return req->head.method_known && req->head.method == HTTP_OPTIONS &&
	       http_header(req, "origin") && http_header(req, "access-control-request-method");
}

static void add_origin_fields(struct http_request *req, const struct http_match *match)
{
	char allow[HTTP_ALLOW_SIZE];
	const char *wanted = http_header(req, "access-control-request-headers");
	http_add_header(req, "Access-Control-Allow-Origin", "*");
	if (!http_is_preflight(req)) {
		http_add_header(req, "Access-Control-Expose-Headers", "*");
		return;
	}
	http_format_allow(match->allowed, allow);
	http_add_header(req, "Access-Control-Allow-Methods", allow);
	/* By name: '*' does not stand for Authorization. */
	if (wanted)
		http_add_header(req, "Access-Control-Allow-Headers", wanted);
	http_add_header(req, "Access-Control-Max-Age", "600");
}

void http_request_add_allow(struct http_request *req)
{
	char allow[HTTP_ALLOW_SIZE];
	http_format_allow(req->allowed, allow);
	http_add_header(req, "Allow", allow);
}

void http_request_end(struct http_request *req)
{
	if (req->started_us)
		log_access(req);
	req->started_us = 0;
	while (req->blocks) {
		struct http_block *block = req->blocks;
		req->blocks = block->next;
		free(block);
	}
	http_parse_drop(req);
	empty_buffer(&req->body);
	empty_buffer(&req->fields);
	empty_buffer(&req->connection->out_head);
	buf_finish(&req->connection->out_body);
	http_budget_leave(req->connection);
}

static void log_access(const struct http_request *req)
{
	log_debug("request", "id", req->id, "method", req->head.method_text, "target",
		req->head.target, "status", log_num(req->status), "us",
		log_num(clock_monotonic_us() - req->started_us));
}

static void empty_buffer(struct buf *b)
{
	if (b->cap > KEEP_MAX || b->failed)
		buf_finish(b);
	b->len = 0;
}

void *http_alloc(struct http_request *req, size_t size)
{
	const size_t align = _Alignof(max_align_t);
	if (size <= sizeof req->arena - req->arena_used) {
		char *p = req->arena + req->arena_used;
		size_t padded = (size + align - 1) / align * align;
		req->arena_used += padded;
		return memset(p, 0, size);
	}
	struct http_block *block = mem_new(sizeof *block + size);
	block->next = req->blocks;
	req->blocks = block;
	return block->data;
}

char *http_copy(struct http_request *req, const char *text)
{
	size_t size = text ? strlen(text) + 1 : 0;
	return text ? memcpy(http_alloc(req, size), text, size) : NULL;
}

/* ---- what handlers ask ---- */

void *http_ctx(const struct http_request *req)
{
	return req->mount->ctx;
}

enum http_method http_method(const struct http_request *req)
{
	return req->head.method_known ? req->head.method : HTTP_ANY;
}

const char *http_method_text(const struct http_request *req)
{
	return req->head.method_text;
}

const char *http_request_id(const struct http_request *req)
{
	return req->id;
}

const char *http_target(const struct http_request *req)
{
	return req->head.target;
}

const char *http_param(const struct http_request *req, const char *name)
{
	struct http_param_position at;
	if (!http_pattern_find(req->pattern, name, &at))
		return NULL;
	return at.kind == HTTP_PARAM_SEGMENT ? req->target.segments[at.index] : req->rest;
}

const char *http_query(const struct http_request *req, const char *name)
{
	const char *key, *value;
	for (size_t i = 0; http_query_at(req, i, &key, &value); i++)
		if (strcmp(key, name) == 0)
			return value;
	return NULL;
}

bool http_query_at(
	const struct http_request *req, size_t index, const char **name, const char **value)
{
	if (index >= req->target.pair_count)
		return false;
	*name = req->target.pairs[index].name;
	*value = req->target.pairs[index].value;
	return true;
}

const char *http_header(const struct http_request *req, const char *name)
{
	return http_head_field(&req->head, name);
}

bool http_header_at(
	const struct http_request *req, size_t index, const char **name, const char **value)
{
	if (index >= req->head.field_count)
		return false;
	*name = req->head.fields[index].name;
	*value = req->head.fields[index].value;
	return true;
}

bool http_header_has_token(const struct http_request *req, const char *name, const char *token)
{
	return http_head_has_token(&req->head, name, token);
}

bool http_wants_upgrade(const struct http_request *req, const char *protocol)
{
	const struct http_head *head = &req->head;
	bool has_body = head->chunked || head->content_length > 0;
	return head->method_known && head->method == HTTP_GET && !head->http10 && !has_body &&
	       http_header_has_token(req, "Connection", "upgrade") &&
	       http_header_has_token(req, "Upgrade", protocol);
}

bool http_has_type(const struct http_request *req, const char *type)
{
	const char *given = http_header(req, "content-type");
	size_t len = strlen(type);
	return given && strncasecmp(given, type, len) == 0 &&
	       (given[len] == '\0' || given[len] == ';' || given[len] == ' ');
}

const char *http_body(const struct http_request *req, size_t *len)
{
	*len = req->body.len;
	return req->body.len ? req->body.data : "";
}

int64_t http_content_length(const struct http_request *req)
{
	return req->head.chunked ? -1 : (int64_t)req->head.content_length;
}

void http_set_destination(struct http_request *req, const struct http_destination *destination)
{
	req->destination = *destination;
	req->has_destination = true;
}

bool http_client_address(const struct http_request *req, struct address *ret)
{
	if (req->connection->has_from)
		*ret = req->connection->from;
	return req->connection->has_from;
}

const struct http_destination *http_destination(const struct http_request *req)
{
	return req->has_destination ? &req->destination : NULL;
}

enum http_scope http_route_scope(const struct http_route *route)
{
	if (route->scope != HTTP_SCOPE_BY_METHOD)
		return route->scope;
	return route->method == HTTP_GET ? HTTP_SCOPE_READ : HTTP_SCOPE_USE;
}

enum http_scope http_needed_scope(const struct http_request *req)
{
	const struct http_head *head = &req->head;
	bool looks = head->method_known && (head->method == HTTP_GET || head->method == HTTP_HEAD);
	if (req->route->scope == HTTP_SCOPE_BY_METHOD && req->route->method == HTTP_ANY && looks)
		return HTTP_SCOPE_READ;
	return http_route_scope(req->route);
}

void http_set_principal(struct http_request *req, void *principal)
{
	req->principal = principal;
}

void *http_principal(const struct http_request *req)
{
	return req->principal;
}

void http_on_abort(struct http_request *req, void (*aborted)(void *arg), void *arg)
{
	req->aborted = aborted;
	req->aborted_arg = arg;
	if (req->connection->lost)
		http_wake(req->connection);
}
