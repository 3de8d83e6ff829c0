#include "http/parsed.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "http/budget.h"
#include "http/server.h"
#include "json/json.h"

#define LARGE (1u << 20)

struct http_parsing {
	uv_work_t work;
	struct http_connection *connection; /* NULL: it is gone */
	struct buf body;
	int result;
	cJSON *tree;
	struct error error;
};

static void parsing_work(uv_work_t *work)
{
	struct http_parsing *p = work->data;
	p->result = json_parse(p->body.data, p->body.len, &p->tree, &p->error);
}

static void parsing_free(struct http_parsing *p)
{
	buf_finish(&p->body);
	cJSON_Delete(p->tree);
	free(p);
}

static void parsing_done(uv_work_t *work, int status)
{
	struct http_parsing *p = work->data;
	struct http_connection *c = p->connection;
	(void)status;
	if (!c) {
		parsing_free(p);
		return;
	}
	c->request.body = buf_take(&p->body);
	c->request.is_parsed = true;
	c->parsed(c);
}

static bool may_be_object(const struct buf *text)
{
	size_t i = 0;
	while (i < text->len && strchr(" \t\r\n", text->data[i]))
		i++;
	return i < text->len && text->data[i] == '{';
}

bool http_parse_body(struct http_connection *c)
{
	struct http_request *req = &c->request;
	if (req->body.len < LARGE || !may_be_object(&req->body))
		return false;
	struct http_parsing *p = req->parsing = mem_new(sizeof *p);
	p->work.data = p;
	p->connection = c;
	p->body = buf_take(&req->body);
	uv_queue_work(c->server->loop, &p->work, parsing_work, parsing_done);
	return true;
}

void http_parse_forget(struct http_connection *c)
{
	if (c->request.parsing)
		c->request.parsing->connection = NULL;
}

void http_parse_drop(struct http_request *req)
{
	if (req->is_parsed)
		parsing_free(take_ptr(req->parsing));
	req->is_parsed = false;
}

int http_json(struct http_request *req, cJSON **ret, struct error *e)
{
	struct http_parsing *p = req->parsing;
	int r;
	if (req->is_parsed) {
		r = p->result;
		*ret = take_ptr(p->tree);
		if (r < 0)
			*e = p->error;
		http_parse_drop(req);
	} else {
		r = json_parse(req->body.data, req->body.len, ret, e);
	}
	if (req->body.len >= LARGE) {
		buf_finish(&req->body);
		http_budget_hold_body(req->connection, 0, e);
	}
	return r;
}
