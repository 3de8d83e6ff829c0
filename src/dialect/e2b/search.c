#include "dialect/e2b/search.h"

#include <string.h>

#include "base/clock.h"
#include "op/admission.h"

/* Of each second, and at most at once. */
#define ADDRESS_US       10000
#define ADDRESS_BURST_US 50000
#define ALL_US           50000
#define ALL_BURST_US     100000
#define RETRY_AFTER      "1" /* in seconds */

static bool search_has_time(
	struct search_budget *b, int64_t now_us, int64_t per_second_us, int64_t burst_us)
{
	double back = (double)(now_us - b->at_us) / 1e6 * (double)per_second_us;
	b->spent_us = back < b->spent_us ? b->spent_us - back : 0;
	b->at_us = now_us;
	return b->spent_us < (double)burst_us;
}

static bool search_recent(struct search_state *s, const struct ops *ops, search_matches_fn *matches,
	void *arg, char id[ID_SIZE])
{
	for (size_t i = 0; i < SEARCH_RECENT && s->recent[i][0]; i++) {
		const char *tenant = op_tenant_of(ops, s->recent[i]);
		if (!tenant || !matches(arg, s->recent[i], tenant))
			continue;
		memcpy(id, s->recent[i], ID_SIZE);
		return true;
	}
	return false;
}

static int search_refuse(struct http_request *req, struct error *e)
{
	http_add_header(req, "Retry-After", RETRY_AFTER);
	return error_set(e, ERROR_RESOURCE_EXHAUSTED,
		"too many signatures that name no sandbox; name it with E2b-Sandbox-Id, or try again later");
}

int e2b_search(struct search_state *s, const struct ops *ops, struct http_request *req,
	search_matches_fn *matches, void *arg, char id[ID_SIZE], struct error *e)
{
	struct search_budget *own = &s->addresses[http_client_network(req) % SEARCH_ADDRESSES];
	int64_t began = clock_monotonic_us();
	if (search_recent(s, ops, matches, arg, id))
		return 1;
	if (!search_has_time(own, began, ADDRESS_US, ADDRESS_BURST_US) ||
		!search_has_time(&s->all, began, ALL_US, ALL_BURST_US))
		return search_refuse(req, e);
	bool found = op_find_matching(ops, matches, arg, id);
	double took = (double)(clock_monotonic_us() - began);
	own->spent_us += took;
	s->all.spent_us += took;
	if (found)
		memcpy(s->recent[s->next++ % SEARCH_RECENT], id, ID_SIZE);
	return found;
}
