/*
 * Whether a connection may be. The address that the sandbox chose decides only where a list names
 * it; else a name does, which the first bytes say (TLS, HTTP), or which the sandbox was told that
 * address for (pins.h). Until it is decided no byte goes anywhere.
 *
 * Where a sandbox has rules the first bytes are looked at in any case: a connection to a name with
 * rules goes to an address that we find, and through the broker (brokered.c). The others go on as
 * if there were no rules.
 *
 * A server that speaks first is waited for by its client, who sends nothing. So after a moment
 * without bytes a connection whose address suffices is opened; what the client sends then is still
 * looked at before it goes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "egress/connection.h"
#include "stream/peer.h"

#define QUIET_MS     250  /* without bytes, on ports whose servers may speak first */
#define QUIET_WEB_MS 4000 /* on ports whose clients do */
#define TEXT_MS      1000 /* for a line that is no request to end */
#define HEAD_MS      (10 * 1000)

static const struct policy *policy_of(const struct connection *x)
{
	return &x->client->policy;
}

/* ---- names ---- */

struct name_question {
	const struct policy *policy;
	uint16_t port;
	enum verdict wanted;
};

static bool name_has_verdict(void *arg, const char *name)
{
	const struct name_question *q = arg;
	return policy_of_name(q->policy, name, q->port) == q->wanted;
}

/* A name that the sandbox was told this address for, and that has this verdict; or NULL. */
static const char *pinned_name(
	const struct connection *x, const struct address_port *a, enum verdict wanted)
{
	struct name_question q = {policy_of(x), a->port, wanted};
	return pins_find(&x->client->pins, &a->address, loop.now_ms, name_has_verdict, &q);
}

static void decide_set_name(struct connection *x, const char *name)
{
	char *copy = mem_copy_text(name);
	free(x->name);
	x->name = copy;
}

/* Whether the sandbox may reach what this name stands for, wherever it wants to go. */
static bool name_passes(const struct connection *x, const char *name)
{
	enum verdict verdict = policy_of_name(policy_of(x), name, x->destination.port);
	if (verdict != VERDICT_NONE || policy_of(x)->mode == NETWORK_ALLOW)
		return verdict == VERDICT_ALLOWED;
	return policy_of_address(policy_of(x), &x->destination) != VERDICT_DENIED;
}

/* Whether its destination suffices. *name is set if that was told for a name. */
static bool destination_passes(const struct connection *x, const char **name)
{
	const struct policy *p = policy_of(x);
	enum verdict verdict = policy_of_address(p, &x->destination);
	*name = NULL;
	if (verdict == VERDICT_ALLOWED)
		return true;
	*name = pinned_name(x, &x->destination, VERDICT_ALLOWED);
	if (*name || p->mode == NETWORK_ALLOW || verdict == VERDICT_DENIED)
		return *name != NULL;
	return !pinned_name(x, &x->destination, VERDICT_DENIED);
}

/* ---- first bytes ---- */

struct first {
	enum first_kind kind;
	bool malformed;
	bool is_name; /* `host` is a name */
	char host[FIRST_NAME_SIZE];
};

/* Returns how many bytes were there, 0 at the end, or a negative error. */
static ssize_t first_read(const struct connection *x, struct first *ret)
{
	static uint8_t data[FIRST_MAX];
	struct request request;
	int r = 1;
	*ret = (struct first){0};
	ssize_t n = recv(x->inner.fd, data, sizeof data, MSG_PEEK | MSG_DONTWAIT);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	ret->kind = first_look(data, (size_t)n);
	if (ret->kind == FIRST_TLS) {
		r = hello_read(data, (size_t)n, ret->host);
		ret->is_name = ret->host[0] != '\0';
	} else if (ret->kind == FIRST_HTTP) {
		r = request_read(data, (size_t)n, &request);
		memcpy(ret->host, request.host, sizeof ret->host);
		ret->is_name = request.is_name;
	}
	ret->malformed = r < 0 || (r == 0 && n == (ssize_t)sizeof data);
	if (r == 0 && !ret->malformed)
		ret->kind = FIRST_MORE;
	return n;
}

/* What its address alone says: VERDICT_NONE if a name has to be known. */
static enum verdict decide_by_address(const struct policy *p, const struct address_port *a)
{
	enum verdict verdict = policy_of_address(p, a);
	if (p->mode == NETWORK_OPEN || verdict == VERDICT_ALLOWED)
		return VERDICT_ALLOWED;
	if (p->mode == NETWORK_NONE)
		return VERDICT_DENIED;
	if (p->mode == NETWORK_DENY && verdict == VERDICT_NONE)
		return p->denies_names ? VERDICT_NONE : VERDICT_ALLOWED;
	return p->allows_names ? VERDICT_NONE : VERDICT_DENIED;
}

/* Whether it would be opened without a look at it, if there were no rules. */
static bool address_suffices(const struct connection *x)
{
	return decide_by_address(policy_of(x), &x->destination) == VERDICT_ALLOWED;
}

static bool first_is_brokered(const struct connection *x, const struct first *first)
{
	return !first->malformed && first->is_name &&
	       policy_is_brokered(policy_of(x), first->host, x->destination.port);
}

static void decide_named(struct connection *x, const struct first *first)
{
	if (!name_passes(x, first->host)) {
		connection_refuse(x, first->kind == FIRST_HTTP, first->host);
		return;
	}
	if (first->kind == FIRST_HTTP)
		requests_begin(x, first->host);
	decide_set_name(x, first->host);
	dial_name(x);
}

/* It may be reached by its name, or where the sandbox wants to go, which is then asked of the
 * address that the name has. */
static void decide_brokered(struct connection *x, const struct first *first)
{
	if (!name_passes(x, first->host) && !address_suffices(x)) {
		connection_refuse(x, first->kind == FIRST_HTTP, first->host);
		return;
	}
	x->is_brokered = true;
	x->is_tls = first->kind == FIRST_TLS;
	decide_set_name(x, first->host);
	dial_name(x);
}

/* Its address suffices: it was looked at for the sake of the rules alone. */
static void decide_unbrokered(struct connection *x, const struct first *first)
{
	if (first->is_name && !first->malformed)
		decide_set_name(x, first->host);
	dial_destination(x);
}

/* No name was said. For TLS and HTTP that is not enough where names are to be allowed. */
static void decide_nameless(struct connection *x, const struct first *first)
{
	const char *name;
	bool says_none = first->kind == FIRST_TLS || first->kind == FIRST_HTTP;
	if (!destination_passes(x, &name) || (says_none && policy_of(x)->mode == NETWORK_ALLOW)) {
		connection_refuse(x, first->kind == FIRST_HTTP, first->host);
		return;
	}
	if (first->kind == FIRST_HTTP)
		requests_begin(x, first->host);
	if (name)
		decide_set_name(x, name);
	dial_destination(x);
}

/* Nothing came. */
static void decide_quiet(struct connection *x, bool at_end)
{
	bool web = x->destination.port == 80 || x->destination.port == 443;
	int64_t waited = loop.now_ms - x->since_ms;
	const char *name;
	if (waited < (web ? QUIET_WEB_MS : QUIET_MS) && !at_end)
		return;
	if (destination_passes(x, &name)) {
		x->unseen = true;
		if (name)
			decide_set_name(x, name);
		dial_destination(x);
	} else if (at_end || waited > (web ? HEAD_MS : QUIET_WEB_MS)) {
		connection_refuse(x, false, NULL);
	}
}

void decide_look(struct connection *x)
{
	struct first first;
	ssize_t n = first_read(x, &first);
	if (n == 0 || n == -EAGAIN || n == -EINTR) {
		decide_quiet(x, n == 0);
	} else if (n < 0) {
		connection_reset(x);
	} else if (first.kind == FIRST_MORE ||
		   (first.kind == FIRST_TEXT && loop.now_ms - x->since_ms < TEXT_MS)) {
		if (loop.now_ms - x->since_ms > HEAD_MS)
			connection_refuse(x, false, NULL);
	} else {
		x->looked = true;
		if (first_is_brokered(x, &first))
			decide_brokered(x, &first);
		else if (address_suffices(x))
			decide_unbrokered(x, &first);
		else if (first.malformed)
			connection_refuse(x, first.kind == FIRST_HTTP, first.host);
		else if (first.is_name)
			decide_named(x, &first);
		else
			decide_nameless(x, &first);
	}
}

/* The server has spoken already, so that there is no other to be dialled. */
static bool late_name_passes(const struct connection *x, const struct first *first)
{
	if (first_is_brokered(x, first))
		return false;
	if (address_suffices(x))
		return true;
	if (first->malformed || !first->is_name)
		return !first->malformed && policy_of(x)->mode == NETWORK_DENY;
	if (!name_passes(x, first->host))
		return false;
	return policy_of(x)->mode == NETWORK_DENY ||
	       pins_have(&x->client->pins, first->host, &x->reached.address, loop.now_ms);
}

bool decide_late(struct connection *x)
{
	struct first first;
	ssize_t n = first_read(x, &first);
	if (n < 0 && n != -EAGAIN && n != -EINTR) {
		connection_reset(x);
		return false;
	}
	if (n < 0 || (n > 0 && first.kind == FIRST_MORE))
		return true;
	bool says_name = n > 0 && (first.kind == FIRST_TLS || first.kind == FIRST_HTTP);
	if (says_name && x->received == 0) {
		dial_forget(x);
		x->unseen = false;
		connection_set_stage(x, STAGE_LOOKING);
		decide_look(x);
		return false;
	}
	if (says_name && !late_name_passes(x, &first)) {
		connection_refuse(x, false, first.host);
		return false;
	}
	if (says_name && first.kind == FIRST_HTTP && !address_suffices(x))
		requests_begin(x, first.host);
	if (says_name && first.is_name && !first.malformed)
		decide_set_name(x, first.host);
	x->unseen = false;
	x->looked = n > 0;
	return true;
}

/* ---- verdicts ---- */

void decide_begin(struct connection *x)
{
	enum verdict verdict = decide_by_address(policy_of(x), &x->destination);
	connection_set_stage(x, STAGE_LOOKING);
	if (verdict == VERDICT_ALLOWED && !policy_of(x)->brokers_names)
		dial_destination(x);
	else if (verdict == VERDICT_DENIED)
		connection_refuse(x, false, NULL);
	else
		decide_look(x);
}

/* Whether the rules of now have it where it is: with this broker, or with none. */
static bool broker_holds(const struct connection *x)
{
	const struct policy *p = policy_of(x);
	if (!x->looked || !x->name)
		return true;
	if (policy_is_brokered(p, x->name, x->destination.port) != x->is_brokered)
		return false;
	return !x->broker || memcmp(x->broker->id, p->broker, ID_SIZE) == 0;
}

bool decide_holds(const struct connection *x)
{
	const struct policy *p = policy_of(x);
	const struct address_port *a = x->stage == STAGE_RESOLVING ? &x->destination : &x->reached;
	if (!broker_holds(x))
		return false;
	if (x->stage != STAGE_RESOLVING && !guard_allows(x->client, &a->address, a->port))
		return false;
	if (p->mode == NETWORK_NONE || p->mode == NETWORK_OPEN)
		return p->mode == NETWORK_OPEN;
	enum verdict address = policy_of_address(p, a), name = VERDICT_NONE;
	if (x->name)
		name = policy_of_name(p, x->name, a->port);
	if (address == VERDICT_ALLOWED || name == VERDICT_ALLOWED || p->mode == NETWORK_ALLOW)
		return address == VERDICT_ALLOWED || name == VERDICT_ALLOWED;
	if (address == VERDICT_DENIED || name == VERDICT_DENIED)
		return false;
	/* One that nobody has looked at may be to any name. */
	return !p->denies_names || x->name || (x->looked && !pinned_name(x, a, VERDICT_DENIED));
}
