/*
 * Deadlines: one per connection, for whatever it waits for at the moment. Handlers have none.
 *
 * Deadlines move with every request, while timers are costly to move. So the timer is left alone
 * when a deadline moves away: it fires too early, finds nothing to do and is set again.
 */
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "http/connection.h"
#include "http/server.h"

#define NO_DEADLINE UINT64_MAX

static void arm_timer(struct http_connection *c);
static void deadline_on_timer(uv_timer_t *timer);

void http_set_deadline(struct http_connection *c, uint64_t ms)
{
	c->deadline = ms ? uv_now(c->server->loop) + ms : NO_DEADLINE;
	arm_timer(c);
}

static void arm_timer(struct http_connection *c)
{
	bool active = uv_is_active((uv_handle_t *)&c->timer);
	if (c->deadline == NO_DEADLINE || (active && c->timer_due <= c->deadline))
		return;
	uint64_t now = uv_now(c->server->loop);
	c->timer_due = c->deadline;
	/* Fails only when the connection is closed, and then nothing waits any more. */
	uv_timer_start(&c->timer, deadline_on_timer, c->deadline > now ? c->deadline - now : 0, 0);
}

static void deadline_on_timer(uv_timer_t *timer)
{
	struct http_connection *c = timer->data;
	if (c->deadline <= uv_now(c->server->loop)) {
		c->deadline = NO_DEADLINE;
		c->expire(c);
	}
	arm_timer(c);
}

bool http_client_reads(struct http_connection *c)
{
	size_t before = c->write_left;
	c->write_left = http_unread_by_client(c);
	return c->write_left < before;
}

/*
 * The kernel's share counts: it takes megabytes at a time, so that our own queue may stand still
 * for long while a slow client reads all the time.
 */
size_t http_unread_by_client(const struct http_connection *c)
{
	uv_os_fd_t fd;
	int kernel = 0;
	if (uv_fileno((const uv_handle_t *)&c->tcp, &fd) == 0)
		ioctl(fd, SIOCOUTQ, &kernel);
	return uv_stream_get_write_queue_size((const uv_stream_t *)&c->tcp) + (size_t)kernel;
}
