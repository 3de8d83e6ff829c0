/*
 * A sandbox's network: its header rules are given to bunker-broker, whose certificates it is made
 * to trust, its policy to bunker-egress, then bunker-wire leads what the sandbox sends there. All
 * are asked anew after every boot and every start of the server; none does anything twice. Off is
 * the other way round: what is open is reset, which takes the routes, and then those go.
 */
#include "box/sandbox/network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/sandbox/brokering.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"
#include "box/sandbox/sandbox_row.h"
#include "box/sandbox/status.h"
#include "box/sandbox/trust.h"
#include "box/sandbox/turn.h"

#define RETRY_MS   20
#define TIMEOUT_US (5 * 1000000)

/* One change under way. */
struct networking {
	struct sandbox *sandbox;
	uv_timer_t timer; /* for another try, while bunker-egress is being started again */
	int64_t began_us;
	sandbox_done_fn *done;
	void *arg;
};

/* What the operator opened for lists, and what is open to all. */
static int network_check_opened(
	const struct egress_config *c, const struct network_settings *network, struct error *e)
{
	struct address_range opened[2 * EGRESS_RANGES_MAX];
	memcpy(opened, c->private_ranges, c->private_count * sizeof *opened);
	memcpy(opened + c->private_count, c->public_ranges, c->public_count * sizeof *opened);
	return network_check_lists(network, opened, c->private_count + c->public_count, e);
}

int network_check(
	struct box *b, const char *tenant, const struct network_settings *network, struct error *e)
{
	if (network_check_opened(&b->config.egress, network, e) < 0 ||
		brokering_check(b, tenant, &network->rules, e) < 0)
		return -1;
	if (network->mode == NETWORK_NONE || b->network_lack == NETWORK_STEP_NONE)
		return 0;
	return error_set_field(e, ERROR_UNAVAILABLE, "network.mode",
		"this host cannot give a sandbox a network: %s failed (see bunker doctor)",
		network_step_name(b->network_lack));
}

enum network_mode network_grant(const struct box *b, enum network_mode mode, bool is_wish)
{
	if (!is_wish || mode != NETWORK_OPEN || b->network_lack == NETWORK_STEP_NONE)
		return mode;
	log_info("a sandbox gets no network: this host has none to give", "failed",
		network_step_name(b->network_lack));
	return NETWORK_NONE;
}

/* ---- one step after the other ---- */

static void networking_free(uv_handle_t *handle)
{
	free(handle->data);
}

static void networking_end(struct networking *n, const struct error *e)
{
	struct sandbox *s = n->sandbox;
	struct box *b = s->box;
	if (e && s->networked) {
		s->networked = false;
		b->driver->policy_forget(b->driver, s->id, NULL, NULL);
		brokering_end(s);
	}
	uv_close((uv_handle_t *)&n->timer, networking_free);
	n->done(n->arg, e);
	box_check_closed(b);
}

static void networking_fail(struct networking *n, int error, const char *what)
{
	struct error e;
	error_set(&e, ERROR_UNAVAILABLE, "the sandbox's network: %s failed: %s", what,
		strerror(error));
	networking_end(n, &e);
}

static void network_switched(void *arg, const struct network_reply *reply);
static void network_switched_off(void *arg, const struct network_reply *reply);

static void network_switch_on(uv_timer_t *timer)
{
	struct networking *n = timer->data;
	struct driver *d = n->sandbox->box->driver;
	d->network_on(d, n->sandbox->id, network_switched, n);
}

static void network_switched(void *arg, const struct network_reply *reply)
{
	struct networking *n = arg;
	bool again = reply->error == EAGAIN || reply->error == EPIPE || reply->error == ECONNRESET;
	if (reply->error == 0)
		networking_end(n, NULL);
	else if (again && clock_monotonic_us() - n->began_us < TIMEOUT_US)
		uv_timer_start(&n->timer, network_switch_on, RETRY_MS, 0);
	else
		networking_fail(n, reply->error, network_step_name((enum network_step)reply->step));
}

static void network_allowed(void *arg, int error)
{
	struct networking *n = arg;
	struct driver *d = n->sandbox->box->driver;
	if (error)
		networking_fail(n, error, "telling bunker-egress its policy");
	else if (n->sandbox->network.mode == NETWORK_NONE)
		d->network_off(d, n->sandbox->id, network_switched_off, n);
	else
		network_switch_on(&n->timer);
}

static void network_forgotten(void *arg, int error)
{
	struct networking *n = arg;
	if (error)
		networking_fail(n, error, "ending its connections");
	else
		networking_end(n, NULL);
}

static void network_switched_off(void *arg, const struct network_reply *reply)
{
	struct networking *n = arg;
	struct sandbox *s = n->sandbox;
	if (reply->error) {
		networking_fail(n, reply->error, network_step_name((enum network_step)reply->step));
		return;
	}
	s->networked = false;
	s->box->driver->policy_forget(s->box->driver, s->id, network_forgotten, n);
}

static void network_tell_egress(struct networking *n)
{
	struct sandbox *s = n->sandbox;
	struct driver *d = s->box->driver;
	autobuf rules = {0};
	char broker[ID_SIZE];
	network_pack_rules(&s->network, &rules);
	buf_require(&rules);
	const struct driver_policy policy = {s->network.mode, brokering_broker(s, broker), &rules};
	d->policy_set(d, s->id, &policy, network_allowed, n);
}

static void network_trusted(void *arg, const struct error *e)
{
	if (e)
		networking_end(arg, e);
	else
		network_tell_egress(arg);
}

/* The broker knows the rules by now, and what egress hands to it is carried out by them. */
static void network_brokered(void *arg, const struct error *e)
{
	struct networking *n = arg;
	struct sandbox *s = n->sandbox;
	if (e) {
		networking_end(n, e);
		return;
	}
	autofree char *pem = brokering_pem(s);
	if (pem || s->trust.own)
		trust_apply(s, pem, network_trusted, n);
	else
		network_tell_egress(n);
}

void network_apply(struct sandbox *s, sandbox_done_fn *done, void *arg)
{
	struct networking *n = mem_new(sizeof *n);
	*n = (struct networking){
		.sandbox = s, .began_us = clock_monotonic_us(), .done = done, .arg = arg};
	uv_timer_init(s->box->loop, &n->timer);
	n->timer.data = n;
	s->networked = true;
	brokering_apply(s, network_brokered, n);
}

/* Nothing of a namespace is left when its sockets are closed here. */
static void network_ended(struct sandbox *s, bool failed, const struct error *e)
{
	(void)failed;
	(void)e;
	if (!s->networked)
		return;
	s->networked = false;
	s->box->driver->policy_forget(s->box->driver, s->id, NULL, NULL);
	brokering_end(s);
}

const struct sandbox_part network_part = {.ended = network_ended};

/* ---- what egress tells ---- */

static void network_denied(struct sandbox *s, const struct egress_denied *denied)
{
	char address[ADDRESS_TEXT_SIZE] = "", port[8] = "";
	if (denied->has_address) {
		address_format(&denied->address, address);
		snprintf(port, sizeof port, "%u", denied->port);
	}
	const struct event_detail all[] = {
		{"host", denied->host}, {"address", address}, {"port", port}};
	struct event_detail details[ARRAY_LEN(all) + 1] = {0};
	size_t count = 0;
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].value[0])
			details[count++] = all[i];
	event_add(s, EVENT_DENIED, CAUSE_POLICY, details);
}

/* Names are written by hostile programs. */
static bool host_is_printable(const char *host)
{
	for (; *host; host++)
		if (*host <= ' ' || *host >= 0x7f)
			return false;
	return true;
}

void network_told(void *box, const union egress_told *told)
{
	struct box *b = box;
	struct sandbox *s = NULL;
	HASH_FIND(by_id, b->sandboxes.by_id, told->head.id, ID_LEN, s);
	if (!s || b->closing)
		return;
	if (told->head.op == EGRESS_DENIED && host_is_printable(told->denied.host)) {
		network_denied(s, &told->denied);
	} else if (told->head.op == EGRESS_COUNTS) {
		s->network_in += (int64_t)told->counts.bytes_in;
		s->network_out += (int64_t)told->counts.bytes_out;
	} else if (told->head.op == EGRESS_TRAFFIC && host_is_printable(told->traffic.host)) {
		traffic_take(s, &told->traffic);
	}
}

/* ---- a change by request ---- */

struct network_change {
	struct sandbox *sandbox;
	struct network_settings network;
	sandbox_done_fn *done;
	void *arg;
};

static void change_free(struct network_change *c)
{
	fields_free(&network_model, &c->network);
	free(c);
}

static void change_end(struct network_change *c, const struct error *e)
{
	struct sandbox *s = c->sandbox;
	c->done(c->arg, e);
	change_free(c);
	sandbox_release(s);
}

static void change_applied(void *arg, const struct error *e)
{
	change_end(arg, e);
}

static void change_stored(void *arg, int error)
{
	struct network_change *c = arg;
	struct sandbox *s = c->sandbox;
	struct error e;
	if (error) {
		error_set(&e, ERROR_INTERNAL, "the change could not be stored");
		change_end(c, &e);
	} else if (sandbox_is_awake(s) || s->status == SANDBOX_PAUSED) {
		network_apply(s, change_applied, c);
	} else {
		change_end(c, NULL); /* the next boot does it */
	}
}

/* The old lists go with the change. */
static void change_swap(struct network_change *c)
{
	struct network_settings old = c->sandbox->network;
	c->sandbox->network = c->network;
	c->network = old;
}

static void change_granted(void *arg, struct sandbox *s, const struct error *e)
{
	struct network_change *c = arg;
	struct error why;
	if (e) {
		box_answer_later(s->box, c->done, c->arg, e);
		change_free(c);
		return;
	}
	change_swap(c);
	if (brokering_prepare(s, &why) < 0) {
		change_swap(c);
		change_end(c, &why);
		return;
	}
	event_add(s, EVENT_UPDATED, CAUSE_REQUEST, NULL);
	sandbox_store(s, s->intent, change_stored, c);
}

int sandbox_set_network(struct sandbox *s, const struct network_settings *network, bool is_wish,
	sandbox_done_fn *done, void *arg, struct error *e)
{
	if (s->ending.doomed)
		return error_set(e, ERROR_NOT_FOUND, "the sandbox is being deleted");
	struct network_settings granted = *network;
	granted.mode = network_grant(s->box, network->mode, is_wish);
	if (network_check(s->box, s->tenant, &granted, e) < 0)
		return -1;
	struct network_change *c = mem_new(sizeof *c);
	*c = (struct network_change){.sandbox = s, .done = done, .arg = arg};
	fields_copy(&network_model, 0, network_model.size, &c->network, &granted);
	sandbox_take_turn(s, change_granted, c);
	return 0;
}
