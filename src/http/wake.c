/*
 * Wakes connections: has them resumed at the next turn of the loop, outside of whatever runs now.
 */
#include <utlist.h>

#include "http/connection.h"
#include "http/server.h"

static void wake_on_turn(uv_idle_t *idle);

void http_wake(struct http_connection *c)
{
	struct http_server *s = c->server;
	if (c->woken || c->phase == HTTP_PHASE_CLOSED)
		return;
	c->woken = true;
	DL_APPEND2(s->woken, c, wake_prev, wake_next);
	s->woken_count++;
	uv_idle_start(&s->waker, wake_on_turn);
}

void http_let_sleep(struct http_connection *c)
{
	struct http_server *s = c->server;
	if (!c->woken)
		return;
	c->woken = false;
	DL_DELETE2(s->woken, c, wake_prev, wake_next);
	s->woken_count--;
	if (s->woken_count == 0)
		uv_idle_stop(&s->waker);
}

static void wake_on_turn(uv_idle_t *idle)
{
	struct http_server *s = idle->data;
	/* Connections woken meanwhile wait for the next turn, so that sockets are served first. */
	for (unsigned n = s->woken_count; n > 0 && s->woken; n--) {
		struct http_connection *c = s->woken;
		http_let_sleep(c);
		c->resume(c);
	}
}
