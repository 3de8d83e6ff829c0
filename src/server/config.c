#include "server/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/units.h"
#include "server/network.h"
#include "server/quota.h"
#include "server/sandbox_ca.h"

enum option_kind {
	OPTION_TEXT,
	OPTION_FLAG,
	OPTION_KEYS,
	OPTION_QUOTAS,
	OPTION_RESOLVERS,
	OPTION_RANGES,
	OPTION_PRIVATE_RANGES,
	OPTION_SIZE,
	OPTION_CPU,
	OPTION_DURATION,
	OPTION_NUMBER
};

struct config_option {
	const char *name;
	enum option_kind kind;
	size_t offset;
	const char *argument;
	const char *initial; /* as a user would write it */
	int64_t min, max;
	const char *help;
};

#define AT(member) offsetof(struct config, member)

static const struct config_option options[] = {
	{"listen", OPTION_TEXT, AT(listen), "HOST:PORT", "127.0.0.1:2468", 0, 0, "where to listen"},
	{"data", OPTION_TEXT, AT(data), "DIR", "/var/lib/bunker", 0, 0,
		"database, disks of the sandboxes, local API key"},
	{"api-key", OPTION_KEYS, 0, "[TENANT=]KEY", NULL, 0, 0,
		"accept this key besides the stored ones; may be repeated"},
	{"secret-key-file", OPTION_TEXT, AT(secret_key_file), "FILE", NULL, 0, 0,
		"the key under which tenants' secrets are stored, as 64 hexadecimal digits (default: DATA/secret-key, which is made)"},
	{"no-auth", OPTION_FLAG, AT(no_auth), NULL, NULL, 0, 0,
		"ask for no key; only when listening on loopback"},
	{"context-tokens", OPTION_FLAG, AT(context_tokens), NULL, NULL, 0, 0,
		"ask for a sandbox's access token on E2B's /contexts, too"},
	{"domain", OPTION_TEXT, AT(domain), "D", "localhost", 0, 0,
		"the domain under which sandboxes are named, as /health tells clients"},
	{"public-url", OPTION_TEXT, AT(public_url), "URL", NULL, 0, 0,
		"where clients reach this server, if a proxy in between does not say (default: the Host that they send)"},
	{"trusted-proxy", OPTION_TEXT, AT(trusted_proxy), "CIDR,…", "127.0.0.0/8,::1", 0, 0,
		"addresses of proxies whose Forwarded and X-Forwarded-Host, -Proto and -Prefix are believed; or none"},
	{"config", OPTION_TEXT, AT(file), "FILE", NULL, 0, 0,
		"read options from FILE (default: " CONFIG_FILE ", if it exists)"},
	{"adopt-disks", OPTION_FLAG, AT(adopt_disks), NULL, NULL, 0, 0,
		"go on with a database that the disks do not belong to: those it does not know are set aside for a day"},
	{"drain", OPTION_FLAG, AT(drain), NULL, NULL, 0, 0,
		"destroy all sandboxes when told to stop, instead of leaving them running"},
	{"memory", OPTION_SIZE, AT(defaults.memory), "SIZE", "1Gi", 16 << 20, INT64_C(1) << 46,
		"memory of a sandbox that does not ask for another amount"},
	{"cpu", OPTION_CPU, AT(defaults.cpu), "CPU", "1000m", 10, 1024000, "the same for CPU"},
	{"pids", OPTION_NUMBER, AT(defaults.pids), "N", "512", 2, 1 << 22,
		"the same for processes and threads"},
	{"open-files", OPTION_NUMBER, AT(defaults.open_files), "N", "4096", 16, 1 << 20,
		"the same for open files of a process"},
	{"disk", OPTION_SIZE, AT(defaults.disk), "SIZE", "10Gi", 1 << 20, INT64_C(1) << 50,
		"the same for what it writes to its disk"},
	{"max-memory", OPTION_SIZE, AT(maxima.memory), "SIZE", "64Gi", 16 << 20, INT64_C(1) << 46,
		"the most memory a sandbox may ask for"},
	{"max-cpu", OPTION_CPU, AT(maxima.cpu), "CPU", "64", 10, 1024000, "the same for CPU"},
	{"max-pids", OPTION_NUMBER, AT(maxima.pids), "N", "4096", 2, 1 << 22,
		"the same for processes and threads"},
	{"max-open-files", OPTION_NUMBER, AT(maxima.open_files), "N", "16384", 16, 1 << 20,
		"the same for open files of a process"},
	{"max-disk", OPTION_SIZE, AT(maxima.disk), "SIZE", "1Ti", 1 << 20, INT64_C(1) << 50,
		"the same for its disk"},
	{"total-memory", OPTION_SIZE, AT(total_memory), "SIZE", "0", 0, INT64_C(1) << 50,
		"memory of all sandboxes together; 0: what this machine has, less a sixteenth"},
	{"total-pids", OPTION_NUMBER, AT(total_pids), "N", "0", 0, 1 << 22,
		"processes and threads of all sandboxes together; 0: three quarters of this machine's"},
	{"disk-pool", OPTION_TEXT, AT(disk_pool), "KIND", "auto", 0, 0,
		"where disks are when DIR is not on btrfs: loop (a file with a btrfs), directory, or auto"},
	{"disk-pool-size", OPTION_SIZE, AT(disk_pool_size), "SIZE", "16Gi", 256 << 20,
		INT64_C(1) << 50, "size of a new pool file; it takes only what is written"},
	{"max-disk-pool-size", OPTION_SIZE, AT(max_disk_pool_size), "SIZE", "1Ti", 256 << 20,
		INT64_C(1) << 50, "to which the pool file may grow when it fills"},
	{"max-sandboxes", OPTION_NUMBER, AT(max_sandboxes), "N", "1000", 1, 50000,
		"sandboxes of one tenant"},
	{"quota", OPTION_QUOTAS, 0, "[TENANT=]LIMITS", NULL, 0, 0,
		"what a tenant (or everyone) may have at once, as sandboxes:N,cpu:CPU,memory:SIZE,disk:SIZE; may be repeated"},
	{"max-executions", OPTION_NUMBER, AT(max_executions), "N", "256", 1, 1000,
		"commands at once in one sandbox"},
	{"max-connections", OPTION_NUMBER, AT(max_connections), "N", "4096", 1, 100000,
		"open HTTP connections"},
	{"max-connections-per-address", OPTION_NUMBER, AT(max_connections_per_address), "N", "256",
		0, 100000, "the same of one address (of IPv6: one /64) but loopback; 0: no limit"},
	{"request-memory", OPTION_SIZE, AT(request_memory), "SIZE", "512Mi", 256 << 20,
		INT64_C(1) << 40,
		"memory for the bodies and answers of all requests; one tenant has an eighth of it"},
	{"output-limit", OPTION_SIZE, AT(output_limit), "SIZE", "8Mi", 1024, INT64_C(1) << 40,
		"bytes kept of each output stream of a command"},
	{"kept-limit", OPTION_SIZE, AT(kept_limit), "SIZE", "1Gi", 1 << 20, INT64_C(1) << 50,
		"bytes kept of one tenant's commands and their output; the oldest go first"},
	{"retention", OPTION_DURATION, AT(retention_ms), "TIME", "24h", 1000,
		INT64_C(10) * 365 * 24 * 3600 * 1000, "how long results can be asked for"},
	{"pool", OPTION_NUMBER, AT(pool), "N", "8", 0, 256, "sandboxes kept booted in advance"},
	{"build-network", OPTION_TEXT, AT(build_network), "none|open", "open", 0, 0,
		"what a template build may reach that does not say so; with none, no build reaches anything"},
	{"network", OPTION_TEXT, AT(network), "none|open", "none", 0, 0,
		"what a sandbox may reach that is created without saying so"},
	{"resolver", OPTION_RESOLVERS, 0, "ADDR[:PORT],…", NULL, 0, 0,
		"resolvers that sandboxes' names are asked of; may be repeated (default: those of /etc/resolv.conf)"},
	{"bandwidth", OPTION_SIZE, AT(egress.bandwidth), "SIZE", "0", 0, INT64_C(1) << 40,
		"bytes a second that a sandbox may send to the internet, and receive; 0: no limit"},
	{"connection-rate", OPTION_NUMBER, AT(egress.connection_rate), "N", "1000", 0, 1000000,
		"connections to the internet that a sandbox may open in a second, the next ones wait; 0: no limit"},
	{"private-networks", OPTION_PRIVATE_RANGES, AT(egress.private_ranges), "CIDR,…", NULL, 0, 0,
		"private ranges that sandboxes' allow lists may name"},
	{"public-networks", OPTION_RANGES, AT(egress.public_ranges), "CIDR,…", NULL, 0, 0,
		"private or otherwise not global ranges that sandboxes with a network may reach as if they were"},
	{"tls-cert", OPTION_TEXT, AT(tls_cert), "FILE", NULL, 0, 0,
		"certificate with its chain (PEM): the port speaks TLS, and plain HTTP only to loopback"},
	{"tls-key", OPTION_TEXT, AT(tls_key), "FILE", NULL, 0, 0,
		"its key (PEM, without a passphrase); both are read again when they change"},
	{"sandbox-ca", OPTION_TEXT, AT(sandbox_ca_file), "FILE", NULL, 0, 0,
		"certificates of CAs that every sandbox and build trusts (default: those in " SANDBOX_CA_DIRECTORY
		")"},
	{"upstream-ca", OPTION_TEXT, AT(upstream_ca), "FILE", "/etc/ssl/certs/ca-certificates.crt",
		0, 0, "certificates (PEM) that those of hosts with rules are checked against"},
	{"watchdog", OPTION_DURATION, AT(watchdog_ms), "TIME", "30s", 0, 3600000,
		"replace the process that talks to the network when it has not answered for this long; 0s: never"},
	{"log-level", OPTION_TEXT, AT(log_level), "LEVEL", "info", 0, 0,
		"error, warn, info or debug"},
};

void config_print_help(void)
{
	printf("usage: bunker serve [options]\n\n"
	       "Runs the server in the foreground. It needs root: it makes namespaces, mounts and\n"
	       "cgroups. The part that talks to the network gives its privileges up first.\n\n"
	       "Each option can also be set in the environment (--listen as BUNKER_LISTEN) or in a\n"
	       "file of `name = value` lines. Options win over the environment, that over the file.\n\n");
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		char left[64];
		const char *argument = options[i].argument ? options[i].argument : "";
		snprintf(left, sizeof left, "--%s %s", options[i].name, argument);
		printf("  %-28s %s", left, options[i].help);
		if (options[i].initial)
			printf(" [%s]", options[i].initial);
		printf("\n");
	}
	printf("  %-28s %s\n", "--help", "show this");
}

/* ---- one value ---- */

static int config_parse_number(const char *text, int64_t *ret)
{
	char *end;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return text[0] < '0' || text[0] > '9' || *end || errno ? -EINVAL : 0;
}

static int parse_flag(const char *text, bool *ret)
{
	*ret = strcmp(text, "true") == 0 || strcmp(text, "1") == 0 || strcmp(text, "yes") == 0;
	return *ret || strcmp(text, "false") == 0 || strcmp(text, "0") == 0 ||
			       strcmp(text, "no") == 0
		       ? 0
		       : -EINVAL;
}

static int set_amount(const struct config_option *o, const char *text, int64_t *ret)
{
	int r = o->kind == OPTION_SIZE       ? units_parse_size(text, ret)
		: o->kind == OPTION_CPU      ? units_parse_millicores(text, ret)
		: o->kind == OPTION_DURATION ? units_parse_duration_ms(text, ret)
					     : config_parse_number(text, ret);
	return r < 0 || *ret < o->min || *ret > o->max ? -EINVAL : 0;
}

/* `text` is borrowed for as long as the program runs. */
static int set_option(struct config *c, const struct config_option *o, const char *text,
	const char *origin, struct error *e)
{
	void *at = (char *)c + o->offset;
	int r = 0;
	switch (o->kind) {
	case OPTION_TEXT:
		*(const char **)at = text;
		break;
	case OPTION_FLAG:
		r = parse_flag(text, at);
		break;
	case OPTION_KEYS:
		if (c->key_count == CONFIG_KEYS_MAX)
			return error_set(
				e, ERROR_INVALID_REQUEST, "more than %d keys", CONFIG_KEYS_MAX);
		c->keys[c->key_count++] = text;
		break;
	case OPTION_QUOTAS:
		if (c->quota_count == CONFIG_QUOTAS_MAX)
			return error_set(
				e, ERROR_INVALID_REQUEST, "more than %d quotas", CONFIG_QUOTAS_MAX);
		return quota_parse(text, &c->quotas[c->quota_count++], e);
	case OPTION_RESOLVERS:
		return network_add_resolvers(&c->egress, text, e);
	case OPTION_RANGES:
		return network_add_public(&c->egress, text, e);
	case OPTION_PRIVATE_RANGES:
		return network_add_private(&c->egress, text, e);
	default:
		r = set_amount(o, text, at);
	}
	if (r < 0)
		return error_set(e, ERROR_INVALID_REQUEST, "%s: '%s' is not a valid value for %s",
			origin, text, o->name);
	return 0;
}

static const struct config_option *find_option(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (strlen(options[i].name) == len && strncmp(options[i].name, name, len) == 0)
			return &options[i];
	return NULL;
}

/* ---- the sources, weakest first ---- */

static int load_initial(struct config *c, struct error *e)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (options[i].initial &&
			set_option(c, &options[i], options[i].initial, "built in", e) < 0)
			return -1;
	return 0;
}

static char *config_trim(char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	for (char *end = s + strlen(s); end > s && isspace((unsigned char)end[-1]);)
		*--end = '\0';
	return s;
}

static int load_line(struct config *c, char *line, const char *path, struct error *e)
{
	line = config_trim(line);
	if (*line == '\0' || *line == '#')
		return 0;
	char *equals = strchr(line, '=');
	if (!equals)
		return error_set(
			e, ERROR_INVALID_REQUEST, "%s: '%s' is no `name = value`", path, line);
	*equals = '\0';
	char *name = config_trim(line);
	const struct config_option *o = find_option(name, strlen(name));
	if (!o || o->offset == AT(file))
		return error_set(
			e, ERROR_INVALID_REQUEST, "%s: there is no option '%s'", path, name);
	return set_option(c, o, config_trim(equals + 1), path, e);
}

static int load_file(struct config *c, const char *path, bool must_exist, struct error *e)
{
	struct buf text = {0};
	int r = fd_read_file_at(AT_FDCWD, path, &text, 1 << 20);
	if (r == -ENOENT && !must_exist)
		return 0;
	if (r < 0)
		return error_set_errno(e, r, "cannot read %s", path);
	char *lines = c->file_text = buf_take_str(&text); /* the values stay in it */
	char *save = NULL;
	for (char *line = strtok_r(lines, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (load_line(c, line, path, e) < 0)
			return -1;
	return 0;
}

static void environment_name(const char *option, char out[64])
{
	int n = snprintf(out, 64, "BUNKER_%s", option);
	for (int i = 0; i < n; i++)
		out[i] = out[i] == '-' ? '_' : (char)toupper((unsigned char)out[i]);
}

static int load_environment(struct config *c, struct error *e)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		char name[64];
		environment_name(options[i].name, name);
		const char *value = getenv(name);
		if (value && set_option(c, &options[i], value, name, e) < 0)
			return -1;
	}
	return 0;
}

static int load_arguments(struct config *c, int argc, char **argv, struct error *e)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			c->help = true;
			continue;
		}
		if (strncmp(argv[i], "--", 2) != 0)
			return error_set(e, ERROR_INVALID_REQUEST,
				"there is no argument '%s'; see bunker serve --help", argv[i]);
		size_t len = strcspn(argv[i] + 2, "=");
		const struct config_option *o = find_option(argv[i] + 2, len);
		const char *value = argv[i][2 + len] ? argv[i] + 3 + len : NULL;
		if (!o)
			return error_set(e, ERROR_INVALID_REQUEST,
				"there is no option '%s'; see bunker serve --help", argv[i]);
		if (!value)
			value = o->kind == OPTION_FLAG ? "true" : argv[++i];
		if (!value)
			return error_set(e, ERROR_INVALID_REQUEST, "--%s needs a value", o->name);
		if (set_option(c, o, value, "command line", e) < 0)
			return -1;
	}
	return 0;
}

/* Otherwise every sandbox that asks for nothing would be refused. */
static int check_defaults(const struct config *c, struct error *e)
{
	const struct resources *d = &c->defaults, *m = &c->maxima;
	if (d->memory <= m->memory && d->cpu <= m->cpu && d->pids <= m->pids &&
		d->open_files <= m->open_files && d->disk <= m->disk)
		return 0;
	return error_set(e, ERROR_INVALID_REQUEST,
		"a default is above its maximum: compare --memory, --cpu, --pids, --open-files and --disk with "
		"--max-memory, --max-cpu, --max-pids, --max-open-files and --max-disk");
}

static int check_pool(const struct config *c, struct error *e)
{
	static const char *const kinds[] = {"auto", "loop", "directory"};
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(c->disk_pool, kinds[i]) == 0)
			return 0;
	return error_set(e, ERROR_INVALID_REQUEST,
		"--disk-pool is auto, loop or directory, and not '%s'", c->disk_pool);
}

static int read_mode(const char *option, const char *text, enum network_mode *ret, struct error *e)
{
	*ret = strcmp(text, "open") == 0 ? NETWORK_OPEN : NETWORK_NONE;
	if (*ret == NETWORK_OPEN || strcmp(text, "none") == 0)
		return 0;
	return error_set(
		e, ERROR_INVALID_REQUEST, "--%s is none or open, and not '%s'", option, text);
}

static int check_networks(struct config *c, struct error *e)
{
	if (strcmp(c->build_network, "host") == 0)
		return error_set(e, ERROR_INVALID_REQUEST,
			"--build-network host is gone: builds have a network of their own, which is open by "
			"default; what it shall reach of this host's private networks is said by "
			"--public-networks");
	if (read_mode("build-network", c->build_network, &c->build_mode, e) < 0)
		return -1;
	return read_mode("network", c->network, &c->default_network, e);
}

static int check_own_urls(struct config *c, struct error *e)
{
	if (c->public_url && own_url_parse(c->public_url, &c->own_urls.public_url) < 0)
		return error_set(e, ERROR_INVALID_REQUEST,
			"--public-url is a URL such as https://bunker.example.com, and not '%s'",
			c->public_url);
	if (own_url_parse_trusted(c->trusted_proxy, &c->own_urls) < 0)
		return error_set(e, ERROR_INVALID_REQUEST,
			"--trusted-proxy is none or at most %d ranges such as 10.0.0.0/8, and not '%s'",
			OWN_URL_TRUSTED_MAX, c->trusted_proxy);
	return 0;
}

int config_load(struct config *c, int argc, char **argv, struct error *e)
{
	*c = (struct config){0};
	struct config early = {0};
	/* Where the file is can only be known from the stronger sources. */
	if (load_environment(&early, e) < 0 || load_arguments(&early, argc, argv, e) < 0)
		return -1;
	if (load_initial(c, e) < 0 ||
		load_file(c, early.file ? early.file : CONFIG_FILE, early.file != NULL, e) < 0 ||
		load_environment(c, e) < 0)
		return -1;
	if (load_arguments(c, argc, argv, e) < 0)
		return -1;
	if (check_pool(c, e) < 0 || check_networks(c, e) < 0 || check_own_urls(c, e) < 0)
		return -1;
	if (sandbox_ca_load(&c->sandbox_ca, c->sandbox_ca_file, e) < 0)
		return -1;
	return check_defaults(c, e);
}
