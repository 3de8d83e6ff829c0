/*
 * The other side of a connection: the addresses that it may have are tried one after the other. An
 * address counts if the guard takes it, and a list does not deny it.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "egress/connection.h"

#define ANSWERS_MS 10000 /* for a name to be found */
#define TRY_MS     5000  /* for one address, while there is another */

static const uint16_t question_types[2] = {DNS_A, DNS_AAAA};

/* ---- one address after the other ---- */

static bool candidate_passes(const struct connection *x, const struct address *a)
{
	const struct policy *p = &x->client->policy;
	const struct address_port to = {*a, x->destination.port};
	if (!guard_allows(x->client, a, x->destination.port))
		return false;
	enum verdict name = x->name ? policy_of_name(p, x->name, to.port) : VERDICT_NONE;
	if (p->mode == NETWORK_OPEN || name == VERDICT_ALLOWED)
		return true;
	enum verdict address = policy_of_address(p, &to);
	/* A name that is denied is reached only where its own address is allowed. */
	if (p->mode == NETWORK_DENY && name != VERDICT_DENIED)
		return address != VERDICT_DENIED;
	return address == VERDICT_ALLOWED;
}

static int dial_try(struct connection *x)
{
	const int on = 1;
	const struct linger by_reset = {.l_onoff = 1};
	struct sockaddr_storage to;
	socklen_t len = address_to_socket(&x->reached, &to);
	x->outer.fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (x->outer.fd < 0)
		return -errno;
	setsockopt(x->outer.fd, SOL_SOCKET, SO_LINGER, &by_reset, sizeof by_reset);
	setsockopt(x->outer.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (connect(x->outer.fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS) {
		int r = -errno;
		close(take_fd(&x->outer.fd));
		return r;
	}
	return loop_add(&x->outer, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

static bool is_any_name(void *arg, const char *name)
{
	(void)arg;
	(void)name;
	return true;
}

/* The name that it was decided by, or else one that the sandbox was told the address for. */
static const char *dial_shown_name(const struct connection *x)
{
	return x->name ? x->name
		       : pins_find(&x->client->pins, &x->reached.address, loop.now_ms, is_any_name,
				 NULL);
}

static void dial_count(struct connection *x)
{
	if (x->counts_for)
		x->counts_for->open--; /* opened a second time, by a name that came late */
	x->counts_for = destination_find(
		&x->client->destinations, dial_shown_name(x), &x->reached, loop.now_ms);
	x->counts_for->total.connections++;
	x->counts_for->open++;
}

/* What could not be reached is told by a reset. */
static void dial_next(struct connection *x)
{
	loop_remove(&x->outer);
	connection_set_stage(x, STAGE_DIALLING);
	bool passes = x->candidate > 0 || x->candidate_count == 0;
	while (x->candidate < x->candidate_count) {
		x->reached =
			(struct address_port){x->candidates[x->candidate++], x->destination.port};
		if (!candidate_passes(x, &x->reached.address))
			continue;
		passes = true;
		if (dial_try(x) == 0)
			return;
	}
	if (passes)
		destination_find(
			&x->client->destinations, dial_shown_name(x), &x->reached, loop.now_ms)
			->total.failed++;
	else
		tell_denied(x->client, x->name, &x->reached);
	connection_reset(x);
}

void dial_finish(struct connection *x)
{
	int error = 0;
	socklen_t len = sizeof error;
	if (getsockopt(x->outer.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error) {
		dial_next(x);
		return;
	}
	if (x->is_brokered) {
		brokered_begin(x);
		return;
	}
	connection_set_stage(x, STAGE_OPEN);
	dial_count(x);
	connection_relay(x);
}

static void add_candidate(struct connection *x, const struct address *a)
{
	if (x->candidate_count < CANDIDATES_MAX)
		x->candidates[x->candidate_count++] = *a;
}

void dial_destination(struct connection *x)
{
	x->candidate = x->candidate_count = 0;
	add_candidate(x, &x->destination.address);
	dial_next(x);
}

/* ---- names ---- */

/* The sandbox's choice first, then those of its family. */
static void candidates_order(struct connection *x)
{
	bool v4 = address_is_v4(&x->destination.address);
	unsigned sorted = 0;
	for (int pass = 0; pass < 2; pass++)
		for (unsigned i = sorted; i < x->candidate_count; i++) {
			const struct address a = x->candidates[i];
			if (pass == 0 ? !address_is_equal(&a, &x->destination.address)
				      : address_is_v4(&a) != v4)
				continue;
			x->candidates[i] = x->candidates[sorted];
			x->candidates[sorted++] = a;
		}
}

static bool collect_address(void *arg, const struct address *a)
{
	add_candidate(arg, a);
	return false; /* nothing is to be written */
}

static void dial_answered(struct connection *x, int which, const uint8_t *answer, size_t len)
{
	uint8_t out[DNS_QUERY_MAX];
	x->lookups[which] = NULL;
	x->question.type = question_types[which];
	if (answer)
		dns_write_answer(&x->question, answer, len, collect_address, x, out, sizeof out);
	if (x->lookups[0] || x->lookups[1])
		return;
	candidates_order(x);
	dial_next(x);
}

static void dial_answered_v4(void *arg, const uint8_t *answer, size_t len)
{
	dial_answered(arg, 0, answer, len);
}

static void dial_answered_v6(void *arg, const uint8_t *answer, size_t len)
{
	dial_answered(arg, 1, answer, len);
}

/* With too many questions under way it is tried again at the next tick. */
static void dial_ask(struct connection *x)
{
	static lookup_done_fn *const answered[2] = {dial_answered_v4, dial_answered_v6};
	x->candidate = x->candidate_count = 0;
	for (int i = 0; i < 2; i++) {
		struct dns_question q;
		if (dns_make_question(x->name, question_types[i], &q) < 0) {
			connection_reset(x);
			return;
		}
		x->question = q;
		x->lookups[i] = lookup_begin(x->client, &q, answered[i], x);
		if (!x->lookups[i]) {
			dial_forget(x);
			return;
		}
	}
}

void dial_name(struct connection *x)
{
	if (pins_have(&x->client->pins, x->name, &x->destination.address, loop.now_ms) &&
		candidate_passes(x, &x->destination.address)) {
		dial_destination(x);
		return;
	}
	connection_set_stage(x, STAGE_RESOLVING);
	dial_ask(x);
}

void dial_tick(struct connection *x)
{
	int64_t waited = loop.now_ms - x->since_ms;
	if (x->stage == STAGE_RESOLVING && waited > ANSWERS_MS)
		connection_reset(x);
	else if (x->stage == STAGE_RESOLVING && !x->lookups[0] && !x->lookups[1])
		dial_ask(x);
	else if (x->stage == STAGE_DIALLING && waited > TRY_MS && x->candidate < x->candidate_count)
		dial_next(x);
}

void dial_forget(struct connection *x)
{
	for (int i = 0; i < 2; i++) {
		lookup_cancel(x->lookups[i]);
		x->lookups[i] = NULL;
	}
	loop_remove(&x->outer);
}
