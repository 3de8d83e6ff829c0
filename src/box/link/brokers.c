#include "box/link/brokers.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/broker.h"

#define ASK_US (200 * 1000) /* between two tries to have it started */

static_assert(sizeof(struct tell_head) == sizeof(struct broker_head) &&
		      offsetof(struct tell_head, id) == offsetof(struct broker_head, id),
	"messages begin alike");
static_assert(offsetof(struct broker_sandbox, entries_size) + sizeof(struct tell_part) ==
		      sizeof(struct broker_sandbox),
	"the fixed part ends with the part's place");

struct broker {
	struct brokers *brokers;
	struct tell_link link;
	char id[ID_SIZE];
	bool asking;
	int64_t asked_us;
	UT_hash_handle by_id;
};

/* ---- one broker ---- */

static struct broker *brokers_find(struct brokers *b, const char *id)
{
	struct broker *broker = NULL;
	HASH_FIND(by_id, b->by_id, id, ID_LEN, broker);
	return broker;
}

/* One that is being started, or stopped, is asked for again; everything else is final. */
static bool broker_may_come(int error)
{
	return error == EAGAIN || error == EPIPE || error == ECONNRESET;
}

static void broker_started(void *arg, const struct network_reply *reply)
{
	struct broker *broker = brokers_find(arg, reply->id);
	if (!broker)
		return;
	broker->asking = false;
	if (reply->error == 0) {
		tell_link_connect(&broker->link);
	} else if (!broker_may_come(reply->error)) {
		log_error("bunker-broker could not be started", "broker", reply->id, "failed",
			network_step_name((enum network_step)reply->step), "error",
			strerror(reply->error));
		tell_link_fail(&broker->link, reply->error);
	}
}

static void broker_ask(struct broker *broker)
{
	struct brokers *b = broker->brokers;
	broker->asking = true;
	broker->asked_us = clock_monotonic_us();
	b->ask(b->ask_arg, broker->id, broker_started, b);
}

static void broker_absent(void *arg)
{
	struct broker *broker = arg;
	if (!broker->asking && clock_monotonic_us() - broker->asked_us >= ASK_US)
		broker_ask(broker);
}

static const struct tell_protocol broker_protocol = {
	.peer = BROKER_NAME,
	.begin = BROKER_BEGIN,
	.set = BROKER_SANDBOX,
	.forget = BROKER_FORGET,
	.end = BROKER_END,
	.done = BROKER_DONE,
	.fixed_size = sizeof(struct broker_sandbox),
	.part_max = BROKER_RULES_PART,
	.absent = broker_absent,
};

static struct broker *broker_new(struct brokers *b, const char *id)
{
	char path[108];
	struct broker *broker = mem_new(sizeof *broker);
	broker->brokers = b;
	memcpy(broker->id, id, ID_LEN);
	snprintf(path, sizeof path, "%s/" BROKER_SOCKET_PREFIX "%s.sock", b->run_dir, broker->id);
	tell_link_open(&broker->link, &broker_protocol, b->loop, path, broker);
	broker->link.complete = b->complete;
	b->open++;
	HASH_ADD(by_id, b->by_id, id, ID_LEN, broker);
	broker_ask(broker);
	return broker;
}

static void broker_closed(void *arg)
{
	struct broker *broker = arg;
	struct brokers *b = broker->brokers;
	free(broker);
	if (--b->open == 0 && b->closed)
		b->closed(b->closed_arg);
}

static void broker_close(struct broker *broker)
{
	HASH_DELETE(by_id, broker->brokers->by_id, broker);
	tell_link_close(&broker->link, broker_closed, broker);
}

/* ---- all of them ---- */

void brokers_set(struct brokers *b, const char *broker, const char *sandbox,
	const struct buf *entries, tell_done_fn *done, void *arg)
{
	const struct broker_sandbox fixed = {.entries_size = 0};
	struct broker *found = brokers_find(b, broker);
	if (!found)
		found = broker_new(b, broker);
	tell_link_set(&found->link, sandbox, &fixed, entries, done, arg);
}

struct broker_forgetting {
	struct broker *broker;
	tell_done_fn *done;
	void *arg;
};

/* A broker without a sandbox is left alone, and ends. */
static void broker_forgot(void *arg, int error)
{
	struct broker_forgetting *f = arg;
	if (f->done)
		f->done(f->arg, error);
	if (tell_link_is_empty(&f->broker->link) &&
		brokers_find(f->broker->brokers, f->broker->id) == f->broker)
		broker_close(f->broker);
	free(f);
}

void brokers_forget(
	struct brokers *b, const char *broker, const char *sandbox, tell_done_fn *done, void *arg)
{
	struct broker *found = brokers_find(b, broker);
	if (!found)
		found = broker_new(b, broker);
	struct broker_forgetting *f = mem_new(sizeof *f);
	*f = (struct broker_forgetting){found, done, arg};
	tell_link_forget(&found->link, sandbox, broker_forgot, f);
}

void brokers_complete(struct brokers *b)
{
	b->complete = true;
	for (struct broker *broker = b->by_id; broker; broker = broker->by_id.next)
		tell_link_complete(&broker->link);
}

bool brokers_are_busy(const struct brokers *b)
{
	for (const struct broker *broker = b->by_id; broker; broker = broker->by_id.next)
		if (tell_link_is_busy(&broker->link))
			return true;
	return false;
}

void brokers_open(struct brokers *b, const char *run_dir)
{
	snprintf(b->run_dir, sizeof b->run_dir, "%s", run_dir);
}

void brokers_close(struct brokers *b, void (*closed)(void *arg), void *arg)
{
	struct broker *broker, *next;
	b->closed = closed;
	b->closed_arg = arg;
	b->open++; /* ours, until all are asked to close */
	HASH_ITER (by_id, b->by_id, broker, next)
		broker_close(broker);
	if (--b->open == 0)
		closed(arg);
}
