/*
 * The search for the sandbox of a signature that names none, and what it may cost.
 *
 * Every token of every tenant has to be tried, a microsecond for each, and whoever asks has shown
 * no key. So sandboxes that were found lately are tried first, and the whole search has a budget of
 * the loop's time, for each address and in all. A client that names its sandbox, by host name,
 * header or token, never needs it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "http/http.h"

#define SEARCH_RECENT    32
#define SEARCH_ADDRESSES 64

struct search_budget {
	double spent_us; /* of the budget, less what time has given back */
	int64_t at_us;   /* when that was so */
};

/* Zeroed: nothing was searched for yet. */
struct search_state {
	char recent[SEARCH_RECENT][ID_SIZE]; /* "": none */
	unsigned next;
	struct search_budget all, addresses[SEARCH_ADDRESSES];
};

struct ops;
typedef bool search_matches_fn(void *arg, const char *id, const char *tenant);

/* 1: found, in id; 0: there is none; -1: the budget is used up, *e says so. */
int e2b_search(struct search_state *s, const struct ops *ops, struct http_request *req,
	search_matches_fn *matches, void *arg, char id[ID_SIZE], struct error *e);
