#include "box/link/egress_link.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static_assert(sizeof(struct tell_head) == sizeof(struct egress_head) &&
		      offsetof(struct tell_head, id) == offsetof(struct egress_head, id),
	"messages begin alike");
static_assert(offsetof(struct egress_policy, rules_size) + sizeof(struct tell_part) ==
		      sizeof(struct egress_policy),
	"the fixed part ends with the part's place");

static void egress_link_told(void *arg, const void *message, size_t len)
{
	struct egress_link *l = arg;
	union egress_told told = {0};
	memcpy(&told, message, len < sizeof told ? len : sizeof told);
	if (told.head.op == EGRESS_DENIED && len == sizeof told.denied)
		told.denied.host[sizeof told.denied.host - 1] = '\0';
	else if (told.head.op == EGRESS_TRAFFIC && len == sizeof told.traffic)
		told.traffic.host[sizeof told.traffic.host - 1] = '\0';
	else if (told.head.op != EGRESS_COUNTS || len != sizeof told.counts)
		return;
	l->told(l->told_arg, &told);
}

static const struct tell_protocol egress_protocol = {
	.peer = EGRESS_NAME,
	.begin = EGRESS_BEGIN,
	.set = EGRESS_POLICY,
	.forget = EGRESS_FORGET,
	.end = EGRESS_END,
	.done = EGRESS_DONE,
	.fixed_size = sizeof(struct egress_policy),
	.part_max = EGRESS_RULES_PART,
	.told = egress_link_told,
};

void egress_link_open(struct egress_link *l, uv_loop_t *loop, const char *run_dir,
	egress_told_fn *told, void *told_arg)
{
	char path[108];
	snprintf(path, sizeof path, "%s/" EGRESS_SOCKET, run_dir);
	l->told = told;
	l->told_arg = told_arg;
	tell_link_open(&l->link, &egress_protocol, loop, path, l);
	tell_link_connect(&l->link);
}

void egress_link_set(struct egress_link *l, const char *id, const struct driver_policy *policy,
	tell_done_fn *done, void *arg)
{
	struct egress_policy fixed = {.mode = policy->mode};
	memcpy(fixed.broker, policy->broker, strnlen(policy->broker, ID_LEN));
	tell_link_set(&l->link, id, &fixed, policy->rules, done, arg);
}
