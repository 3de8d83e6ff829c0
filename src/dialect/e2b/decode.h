/* Values that several of E2B's bodies have. */
#pragma once

#include "dialect/e2b/routes.h"

/* What a timeout is that was not given. */
#define E2B_TIMEOUT_V1_S 15
#define E2B_TIMEOUT_V2_S 300

/* Seconds, as E2B counts a sandbox's life. */
int e2b_check_timeout(int64_t seconds, struct error *e);
int e2b_metadata(const cJSON *metadata, struct scratch *memory, const char **ret, struct error *e);
/*
 * What a sandbox may reach: the internet, unless allow_internet_access (which may be NULL) or the
 * lists allowOut and denyOut of the network say otherwise.
 */
int e2b_decode_network(const cJSON *network, const cJSON *internet, struct scratch *memory,
	struct network_settings *ret, struct error *e);
/* {domain: [{transform: {headers}}]} as our rules; ${e2b.secrets.NAME} is our ${secret:NAME}. */
int e2b_decode_rules(
	const cJSON *rules, struct scratch *memory, struct strings *ret, struct error *e);
/* Who may see its ports: everyone, unless allowPublicTraffic is false. */
int e2b_decode_previews(const cJSON *network, struct sandbox_settings *out, struct error *e);
/* Is it there, and not empty? */
bool e2b_is_asked_for(const cJSON *value);
