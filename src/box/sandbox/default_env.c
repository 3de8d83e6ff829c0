#include "box/sandbox/default_env.h"

#include "base/cleanup.h"
#include "base/trust_store.h"
#include "box/sandbox/object.h"
#include "box/sandbox/trust.h"

static bool is_any(const struct sandbox *s)
{
	(void)s;
	return true;
}

/* Its /usr is the host's: an image may have another libc, without that locale. */
static bool is_base(const struct sandbox *s)
{
	return !s->root[0];
}

static bool has_no_network(const struct sandbox *s)
{
	return s->network.mode == NETWORK_NONE;
}

static bool has_list(const struct sandbox *s)
{
	return s->network.mode == NETWORK_ALLOW || s->network.mode == NETWORK_DENY;
}

static const struct {
	const char *entry;
	bool (*is_for)(const struct sandbox *s);
} variables[] = {
	{"LANG=C.UTF-8", is_base},
	/* A sandbox has no operating system that pip could break for others. */
	{"PIP_BREAK_SYSTEM_PACKAGES=1", is_any},
	/* Node adds a file to its own; the others read one with all in it. */
	{"NODE_EXTRA_CA_CERTS=" TRUST_STORE_FILE, trust_is_extended},
	{"SSL_CERT_FILE=" TRUST_STORE_BUNDLE, trust_is_extended},
	{"REQUESTS_CA_BUNDLE=" TRUST_STORE_BUNDLE, trust_is_extended},
	/* What cannot be reached will not be reached by waiting for more than a minute, either. */
	{"PIP_RETRIES=0", has_no_network},
	{"npm_config_fetch_retries=0", has_no_network},
	{"CARGO_NET_RETRY=0", has_no_network},
	{"npm_config_fetch_retry_mintimeout=500", has_list},
	{"npm_config_fetch_retry_maxtimeout=2000", has_list},
};

size_t default_env(const struct sandbox *s, const char *ret[DEFAULT_ENV_MAX])
{
	_Static_assert(ARRAY_LEN(variables) <= DEFAULT_ENV_MAX, "there is room for all of them");
	size_t count = 0;
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		if (variables[i].is_for(s))
			ret[count++] = variables[i].entry;
	return count;
}
