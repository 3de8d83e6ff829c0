#include "http/budget.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/mem.h"
#include "http/server.h"

#define RETRY_AFTER  "1" /* in seconds */
#define SMALL_ANSWER (64u * 1024)

struct http_account {
	size_t bytes;
	unsigned requests;
	UT_hash_handle hh;
	char name[];
};

static struct http_account *account_join(struct http_server *s, const char *name)
{
	struct http_account *a;
	HASH_FIND_STR(s->accounts, name, a);
	if (!a) {
		a = mem_new(sizeof *a + strlen(name) + 1);
		memcpy(a->name, name, strlen(name) + 1);
		HASH_ADD_STR(s->accounts, name, a);
	}
	a->requests++;
	return a;
}

static void budget_set(struct http_connection *c, size_t *held, size_t bytes)
{
	if (!c->account)
		return;
	c->account->bytes += bytes - *held;
	c->server->held += bytes - *held;
	*held = bytes;
}

static int budget_refuse(struct http_connection *c, const char *whose, struct error *e)
{
	http_add_header(&c->request, "Retry-After", RETRY_AFTER);
	c->server->counters.requests_unaffordable++;
	return error_set(e, ERROR_RESOURCE_EXHAUSTED,
		"the requests of %s hold all the memory for bodies and answers; try again later",
		whose);
}

static bool budget_exceeds(const struct http_connection *c, size_t more)
{
	size_t limit = c->server->limits.account_memory;
	return limit && c->account->bytes + more > limit;
}

static int budget_check(struct http_connection *c, size_t more, struct error *e)
{
	const struct http_limits *l = &c->server->limits;
	if (budget_exceeds(c, more))
		return budget_refuse(c, "the tenant", e);
	if (l->memory && c->server->held + more > l->memory)
		return budget_refuse(c, "all tenants together", e);
	return 0;
}

int http_budget_join(struct http_connection *c, struct error *e)
{
	const struct http_server *s = c->server;
	const char *name = s->account_of ? s->account_of(s->account_arg, &c->request) : NULL;
	c->account = account_join(c->server, name ? name : "");
	return c->request.head.method == HTTP_DELETE ? 0 : budget_check(c, 1, e);
}

int http_budget_hold_body(struct http_connection *c, size_t bytes, struct error *e)
{
	if (bytes > c->held_body && budget_check(c, bytes - c->held_body, e) < 0)
		return -1;
	budget_set(c, &c->held_body, bytes);
	return 0;
}

int http_budget_check_answer(struct http_connection *c, size_t bytes, struct error *e)
{
	bool is_alone =
		!c->account || c->account->bytes == c->held_body + c->held_answer + c->held_queue;
	if (c->request.head.method != HTTP_GET || bytes < SMALL_ANSWER || is_alone)
		return 0;
	return budget_check(c, bytes, e);
}

void http_budget_hold_answer(struct http_connection *c, size_t bytes)
{
	budget_set(c, &c->held_answer, bytes);
}

void http_budget_hold_queue(struct http_connection *c, size_t bytes)
{
	budget_set(c, &c->held_queue, bytes);
}

bool http_budget_is_kept(const struct http_connection *c)
{
	const struct http_server *s = c->server;
	return !c->account ||
	       (!budget_exceeds(c, 0) && !(s->limits.memory && s->held > s->limits.memory));
}

void http_budget_leave(struct http_connection *c)
{
	struct http_account *a = c->account;
	if (!a)
		return;
	budget_set(c, &c->held_body, 0);
	budget_set(c, &c->held_answer, 0);
	budget_set(c, &c->held_queue, 0);
	c->account = NULL;
	if (--a->requests > 0)
		return;
	HASH_DEL(c->server->accounts, a);
	free(a);
}
