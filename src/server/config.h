/*
 * How the server is told what to do: by options, by the environment (BUNKER_LISTEN for --listen and
 * so on), by a file of `name = value` lines. The earlier in that list wins. One table names them
 * all.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "answer/own_url.h"
#include "base/error.h"
#include "base/log.h"
#include "box/core/box.h"
#include "box/sandbox/tenant.h"
#include "server/sandbox_ca.h"
#include "wire/egress.h"

#define CONFIG_FILE       "/etc/bunker/bunker.conf"
#define CONFIG_KEYS_MAX   64
#define CONFIG_QUOTAS_MAX 64

struct config {
	const char *listen;
	const char *data;
	const char *domain;
	const char *public_url;         /* NULL: none */
	const char *trusted_proxy;      /* a list */
	struct own_url_config own_urls; /* as both say */
	const char *file;
	const char *log_level;
	const char *tls_cert, *tls_key;    /* files; NULL: plain HTTP */
	const char *secret_key_file;       /* NULL: the usual one */
	char *file_text;                   /* kept, because the options point into it */
	const char *keys[CONFIG_KEYS_MAX]; /* "KEY" or "TENANT=KEY" */
	size_t key_count;
	struct tenant_quota quotas[CONFIG_QUOTAS_MAX];
	size_t quota_count;
	const char *disk_pool; /* auto, loop or directory */
	int64_t disk_pool_size, max_disk_pool_size;
	bool no_auth, context_tokens, drain, adopt_disks, help;
	const char *build_network;
	enum network_mode build_mode;      /* as build_network says */
	const char *network;               /* none or open, of creates that do not say */
	enum network_mode default_network; /* as network says */
	struct egress_config egress;       /* what bunker-egress is told */
	const char *sandbox_ca_file;       /* NULL: the host's local ones */
	struct sandbox_ca sandbox_ca;      /* what is in it */
	const char *upstream_ca;           /* what brokers check hosts' certificates against */
	struct resources defaults, maxima;
	int64_t total_memory, total_pids; /* of all sandboxes; 0: less than the host has */
	int64_t output_limit, kept_limit, request_memory, retention_ms, watchdog_ms;
	int64_t pool, max_sandboxes, max_executions, max_connections, max_connections_per_address;
};

int config_load(struct config *c, int argc, char **argv, struct error *e);
void config_print_help(void);
