/*
 * The connection of a sandbox to its init, until it can be used.
 *
 * An init that was there before us names every process it has. Some of them have exited: their ends
 * may have been told to clients already, and may even be in the store. Such a process must not be
 * shown as running again or counted twice, so the connection is reported only when those ends have
 * arrived and are stored. An init that announces an end and then keeps it is not waited for long.
 */
#include "box/sandbox/connect.h"

#include <errno.h>
#include <stdio.h>
#include <utlist.h>

#include "base/clock.h"
#include "box/sandbox/failure.h"
#include "box/sandbox/object.h"

#define SETTLE_US 5000000

static void connect_succeeded(struct sandbox *s, int error)
{
	sandbox_connected_fn *callback = s->init.connected;
	s->init.connected = NULL;
	s->init.unheard &= error != 0;
	s->init.settling = 0;
	s->init.greeted_us = 0;
	if (error) {
		init_link_close(s->init.link);
		s->init.link = NULL;
	}
	callback(s->init.connected_arg, s, error);
}

void sandbox_not_connected(struct sandbox *s, int error)
{
	connect_succeeded(s, error);
}

static void connected_if_settled(struct sandbox *s)
{
	if (s->init.connected && s->init.greeted_us && s->init.settling == 0)
		connect_succeeded(s, 0);
}

void sandbox_settled(struct sandbox *s)
{
	s->init.settling -= s->init.settling > 0;
	connected_if_settled(s);
}

void sandbox_check_settling(struct box *b)
{
	int64_t now = clock_monotonic_us();
	struct sandbox *s, *next;
	DL_FOREACH_SAFE (b->sandboxes.order, s, next)
		if (s->init.connected && s->init.greeted_us && now - s->init.greeted_us > SETTLE_US)
			connect_succeeded(s, 0);
}

static void link_frame(void *arg, const struct frame_header *h, const char *payload)
{
	sandbox_parts_frame(arg, h, payload);
}

static void link_ready(void *arg)
{
	struct sandbox *s = arg;
	s->init.greeted_us = clock_monotonic_us();
	connected_if_settled(s);
}

static void sandbox_connect_link_lost(void *arg)
{
	struct sandbox *s = arg;
	if (s->init.connected)
		connect_succeeded(s, -ECONNRESET);
	else if (s->pooled)
		s->box->hooks->pooled_lost(s);
	else
		sandbox_fail(s, "its init ended");
}

static const struct init_events link_events = {link_frame, link_ready, sandbox_connect_link_lost};

struct init_link *sandbox_link_new(struct sandbox *s)
{
	return init_link_new(s->box->loop, &link_events, s);
}

void sandbox_connect(struct sandbox *s, sandbox_connected_fn *callback, void *arg)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s.sock", s->box->config.run_dir, s->id);
	s->init.connected = callback;
	s->init.connected_arg = arg;
	s->init.greeted_us = 0;
	s->init.records = s->init.settling = 0;
	if (!s->init.link)
		s->init.link = sandbox_link_new(s);
	int r = init_link_connect(s->init.link, path);
	if (r < 0)
		connect_succeeded(s, r);
}
