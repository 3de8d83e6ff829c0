/*
 * Puts the rooms together: store, core, API, HTTP. Nothing here has privilege: the first thing it
 * does is to give it up, the last is to open the port.
 */
#include "server/front.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/schedule.h"
#include "base/trim.h"
#include "op/op.h"
#include "server/confine.h"
#include "server/dialects.h"
#include "store/store.h"

#define CLOSE_GRACE_MS 2000
#define TENANT_MAX     63

struct front {
	const struct front_config *f;
	uv_loop_t loop;
	uv_signal_t signals[2];
	struct store *store;
	struct box *box;
	struct auth *auth;
	struct ops ops;
	struct server server;
	struct services services;
	char sandbox_domain[256];
	char run_dir[128], spool_dir[128], contexts_dir[128], database[128];
	bool stopping;
	int status;
};

/* ---- keys ---- */

static void add_stored_key(void *arg, const char *tenant, const uint8_t hash[STORE_HASH_SIZE])
{
	auth_add(arg, tenant, hash);
}

/* "KEY", of the tenant `default`, or "TENANT=KEY". */
static int add_configured_key(struct front *fr, const char *text, struct error *e)
{
	uint8_t hash[AUTH_HASH_SIZE];
	char tenant[TENANT_MAX + 1] = "default";
	const char *equals = strchr(text, '=');
	if (equals && (equals == text || equals - text > TENANT_MAX))
		return error_set(e, ERROR_INVALID_REQUEST,
			"the name of a tenant, before the '=' of an API key, must have 1 to %d bytes",
			TENANT_MAX);
	if (equals)
		snprintf(tenant, sizeof tenant, "%.*s", (int)(equals - text), text);
	if (!auth_hash_key(equals ? equals + 1 : text, hash))
		return error_set(e, ERROR_INVALID_REQUEST,
			"an API key must have 16 to 128 letters, digits, '-' or '_' (after bnk_ or e2b_)");
	auth_add(fr->auth, tenant, hash);
	return 0;
}

/* Tokens that clients hold stay good when the server is started anew. */
static int load_secret(struct front *fr, struct error *e)
{
	uint8_t secret[AUTH_SECRET_SIZE];
	if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret)
		return error_set(e, ERROR_INTERNAL, "the system has no random numbers");
	if (store_keep_secret(fr->store, "tokens", secret, e) < 0)
		return -1;
	auth_set_secret(fr->auth, secret);
	return 0;
}

static int load_keys(struct front *fr, struct error *e)
{
	const struct config *c = fr->f->config;
	uint8_t hash[AUTH_HASH_SIZE];
	fr->auth = auth_new();
	if (c->no_auth)
		auth_disable(fr->auth);
	if (auth_hash_key(fr->f->local_key, hash) &&
		store_add_key(fr->store, "default", hash, e) < 0)
		return -1;
	if (store_each_key(fr->store, add_stored_key, fr->auth) < 0)
		return error_set(e, ERROR_INTERNAL, "cannot read the API keys from the database");
	for (size_t i = 0; i < c->key_count; i++)
		if (add_configured_key(fr, c->keys[i], e) < 0)
			return -1;
	return load_secret(fr, e);
}

/* ---- stopping ---- */

static void box_closed(void *arg)
{
	struct front *fr = arg;
	store_close(fr->store);
	for (size_t i = 0; i < ARRAY_LEN(fr->signals); i++)
		uv_close((uv_handle_t *)&fr->signals[i], NULL);
}

static void http_closed(void *arg)
{
	struct front *fr = arg;
	fr->server.http = NULL;
	box_close(fr->box, fr->f->config->drain, box_closed, fr);
}

static void stop(struct front *fr)
{
	if (fr->stopping)
		return;
	fr->stopping = true;
	ops_stop(&fr->ops);
	services_stop(&fr->services);
	if (fr->server.http)
		http_server_close(fr->server.http, CLOSE_GRACE_MS, http_closed, fr);
	else
		http_closed(fr);
}

static void on_signal(uv_signal_t *handle, int number)
{
	log_info("stopping", "signal", number == SIGINT ? "SIGINT" : "SIGTERM");
	stop(handle->data);
}

/* Sandboxes go on; whoever supervises us starts both anew. */
static void on_warden_lost(void *arg)
{
	(void)arg;
	log_error("the warden is gone; stopping");
	_exit(1);
}

/* ---- audit ---- */

static void op_ended(void *arg, const struct op_record *r, const struct error *e, bool left)
{
	(void)arg;
	if (!log_is_enabled(LOG_DEBUG))
		return;
	log_debug("operation", "name", r->name, "api", r->api, "request",
		r->request ? r->request : "", "tenant", r->tenant ? r->tenant : "", "sandbox",
		r->sandbox ? r->sandbox : "", "end",
		left ? "left"
		: e  ? error_name(e->code)
		     : "done",
		"us", log_num(clock_monotonic_us() - r->began_us));
}

static const struct op_hook op_hooks[] = {{.ended = op_ended}};

/* ---- starting ---- */

static void front_serve(void *arg)
{
	struct front *fr = arg;
	const struct http_limits limits = {
		.connections = (unsigned)fr->f->config->max_connections,
		.head_timeout_ms = 10000,
		.body_timeout_ms = 60000,
		.idle_timeout_ms = 120000,
		.websocket_ping_ms = 30000,
	};
	if (fr->stopping)
		return;
	ops_start(&fr->ops);
	services_start(&fr->services, &fr->server);
	int r = http_server_open(&fr->server.http, &fr->loop, fr->f->listen_fd, &limits,
		fr->services.mounts, fr->services.mount_count);
	if (r < 0) {
		log_error("cannot serve", "error", uv_strerror(r));
		_exit(1);
	}
	http_server_on_head(fr->server.http, services_address);
	trim_memory();
	if (!*fr->f->announced) {
		fprintf(stderr, "bunker: listening on http://%s\n", fr->f->address);
		*fr->f->announced = 1;
	}
}

/* The domain with the port we listen on, unless it has one, or it is the usual one. */
static void name_sandbox_domain(struct front *fr)
{
	const char *domain = fr->f->config->domain;
	const char *port = strrchr(fr->f->address, ':');
	bool named = strchr(domain, ':') || !port || strcmp(port, ":80") == 0 ||
		     strcmp(port, ":443") == 0;
	snprintf(fr->sandbox_domain, sizeof fr->sandbox_domain, "%s%s", domain, named ? "" : port);
}

static int open_core(struct front *fr, struct error *e)
{
	const struct config *c = fr->f->config;
	snprintf(fr->run_dir, sizeof fr->run_dir, "%s/run", fr->f->data);
	snprintf(fr->spool_dir, sizeof fr->spool_dir, "%s/front/spool", fr->f->data);
	snprintf(fr->contexts_dir, sizeof fr->contexts_dir, "%s/front/contexts", fr->f->data);
	snprintf(fr->database, sizeof fr->database, "%s/front/bunker.db", fr->f->data);
	const struct box_config config = {
		.defaults = c->defaults,
		.maxima = c->maxima,
		.output_limit = c->output_limit,
		.retention_ms = c->retention_ms,
		.pool_size = (unsigned)c->pool,
		.sandboxes_per_tenant = (unsigned)c->max_sandboxes,
		.quotas = c->quotas,
		.quota_count = c->quota_count,
		.executions_per_sandbox = (unsigned)c->max_executions,
		.run_dir = fr->run_dir,
		.spool_dir = fr->spool_dir,
		.contexts_dir = fr->contexts_dir,
		.builds_use_host_network = c->builds_use_host_network,
	};
	if (store_open(&fr->store, &fr->loop, fr->database, e) < 0 || load_keys(fr, e) < 0)
		return -1;
	if (box_open(&fr->box, &fr->loop, fr->store, fr->f->warden_fd, fr->f->keeper_fd, &config,
		    front_serve, fr, e) < 0)
		return -1;
	box_on_warden_lost(fr->box, on_warden_lost, fr);
	fr->ops = (struct ops){.box = fr->box,
		.loop = &fr->loop,
		.hooks = op_hooks,
		.hook_count = ARRAY_LEN(op_hooks)};
	name_sandbox_domain(fr);
	fr->server = (struct server){.box = fr->box,
		.ops = &fr->ops,
		.auth = fr->auth,
		.loop = &fr->loop,
		.domain = c->domain,
		.sandbox_domain = fr->sandbox_domain};
	return 0;
}

static void watch_signals(struct front *fr)
{
	static const int numbers[] = {SIGTERM, SIGINT};
	for (size_t i = 0; i < ARRAY_LEN(fr->signals); i++) {
		uv_signal_init(&fr->loop, &fr->signals[i]);
		fr->signals[i].data = fr;
		uv_signal_start(&fr->signals[i], on_signal, numbers[i]);
	}
}

/* As many descriptors as we may have: one per sandbox and one per connection. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int front_confine(const struct front_config *f, struct error *e)
{
	char own[128], run[128];
	snprintf(own, sizeof own, "%s/front", f->data);
	snprintf(run, sizeof run, "%s/run", f->data);
	const char *const writable[] = {own, run, NULL};
	raise_descriptor_limit();
	umask(077);
	return confine_front(f->uid, writable, e);
}

int front_main(const struct front_config *f)
{
	struct error e = {0};
	struct front *fr = calloc(1, sizeof *fr);
	if (!fr)
		return 1;
	log_set_process("front");
	fault_become(FAULT_FRONT);
	prctl(PR_SET_NAME, "bunker-front", 0, 0, 0);
	schedule_promptly();
	signal(SIGPIPE, SIG_IGN);
	fr->f = f;
	if (front_confine(f, &e) < 0 || uv_loop_init(&fr->loop) < 0 || open_core(fr, &e) < 0) {
		log_error("cannot start", "error", e.message);
		_exit(2);
	}
	watch_signals(fr);
	uv_run(&fr->loop, UV_RUN_DEFAULT);
	uv_loop_close(&fr->loop);
	services_free(&fr->services);
	auth_free(fr->auth);
	free(fr);
	return 0;
}
