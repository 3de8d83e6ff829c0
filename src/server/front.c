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
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/schedule.h"
#include "base/trim.h"
#include "box/link/driver.h"
#include "op/admission.h"
#include "op/op.h"
#include "server/confine.h"
#include "server/descriptors.h"
#include "server/dialects.h"
#include "server/keyring.h"
#include "server/secret_key.h"
#include "server/watchdog.h"
#include "store/store.h"

#define CLOSE_GRACE_MS 2000

struct front {
	const struct front_config *f;
	uv_loop_t loop;
	uv_signal_t signals[2];
	uv_timer_t beat;
	uv_tcp_t first; /* stream; see front_open_loop */
	struct store *store;
	struct box *box;
	struct keys *keys;
	struct auth *auth;
	struct ops ops;
	struct server server;
	struct services services;
	struct certificates_link certificates;
	char sandbox_domain[256];
	char run_dir[128], spool_dir[128], contexts_dir[128], database[128];
	char owner[ID_SIZE]; /* to be written on the disks, or "" */
	struct descriptor_plan descriptors;
	uint8_t secret_key[SEAL_KEY_SIZE]; /* overwritten when the core has it */
	bool has_secret_key;
	bool stopping;
	int status;
};

/* ---- keys ---- */

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
	if (keyring_open(&fr->keys, &fr->loop, fr->store, c, fr->f->local_key, e) < 0)
		return -1;
	const struct auth_keys keys = keyring_for_auth(fr->keys);
	fr->auth = auth_new(&keys);
	if (c->no_auth)
		auth_disable(fr->auth, c->domain);
	return load_secret(fr, e);
}

/* ---- stopping ---- */

static void box_closed(void *arg)
{
	struct front *fr = arg;
	keys_close(fr->keys);
	store_close(fr->store);
	for (size_t i = 0; i < ARRAY_LEN(fr->signals); i++)
		uv_close((uv_handle_t *)&fr->signals[i], NULL);
	watchdog_leave(&fr->beat);
	certificates_leave(fr->f->certificates, &fr->certificates);
}

static void http_closed(void *arg)
{
	struct front *fr = arg;
	fr->server.http = NULL;
	keyring_serve(fr->keys, NULL);
	box_close(fr->box, fr->f->config->drain, box_closed, fr);
}

static void front_stop(struct front *fr)
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
	front_stop(handle->data);
}

/* Sandboxes go on; the supervisor starts both anew. */
static void on_warden_lost(void *arg)
{
	(void)arg;
	log_error("the warden is gone; stopping");
	_exit(1);
}

/* ---- audit ---- */

static void op_ended(void *arg, const struct op_summary *r, const struct error *e, bool left)
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

/* A tenant: that of the key, or that of the sandbox which the request is addressed to. */
static const char *front_find_account(void *arg, const struct http_request *req)
{
	const struct front *fr = arg;
	const char *tenant = auth_tenant(req);
	const struct http_destination *d = http_destination(req);
	return tenant ? tenant : d ? op_tenant_of(&fr->ops, d->id) : NULL;
}

static void front_serve(void *arg)
{
	struct front *fr = arg;
	const struct http_limits limits = {
		.connections = fr->descriptors.clients,
		.refused = fr->descriptors.refused,
		.known_places = fr->descriptors.clients / 8,
		.per_address = (unsigned)fr->f->config->max_connections_per_address,
		.memory = (uint64_t)fr->f->config->request_memory,
		.account_memory = (uint64_t)fr->f->config->request_memory / 8,
		.first_timeout_ms = 10000,
		.head_timeout_ms = 10000,
		.body_timeout_ms = 60000,
		.idle_timeout_ms = 120000,
		.websocket_ping_ms = 30000,
	};
	if (fr->stopping)
		return;
	services_start(&fr->services, &fr->server);
	int r = http_server_open(&fr->server.http, &fr->loop, fr->f->listen_fd, &limits,
		fr->services.mounts, fr->services.mount_count);
	if (r < 0) {
		log_error("cannot serve", "error", uv_strerror(r));
		_exit(1);
	}
	struct error e = {0};
	if (certificates_serve(
		    fr->f->certificates, &fr->certificates, &fr->loop, fr->server.http, &e) < 0) {
		log_error("cannot serve", "error", e.message);
		_exit(1);
	}
	http_server_on_head(fr->server.http, services_address);
	http_server_on_account(fr->server.http, front_find_account, fr);
	keyring_serve(fr->keys, fr->server.http);
	trim_memory();
	if (!*fr->f->announced) {
		fprintf(stderr, "bunker: listening on %s://%s\n",
			fr->f->config->tls_cert ? "https" : "http", fr->f->address);
		*fr->f->announced = 1;
	}
}

static void front_found(void *arg)
{
	struct front *fr = arg;
	if (!fr->stopping)
		ops_start(&fr->ops);
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
		.kept_limit = c->kept_limit,
		.retention_ms = c->retention_ms,
		.pool_size = (unsigned)c->pool,
		.sandboxes_per_tenant = (unsigned)c->max_sandboxes,
		.quotas = c->quotas,
		.quota_count = c->quota_count,
		.executions_per_sandbox = (unsigned)c->max_executions,
		.descriptors = fr->descriptors.sandboxes,
		.descriptors_per_tenant = fr->descriptors.tenant,
		.owner = fr->owner,
		.run_dir = fr->run_dir,
		.spool_dir = fr->spool_dir,
		.contexts_dir = fr->contexts_dir,
		.build_network = c->build_mode,
		.default_network = c->default_network,
		.egress = c->egress,
		.sandbox_ca = c->sandbox_ca.entries,
		.secret_key = fr->has_secret_key ? fr->secret_key : NULL,
	};
	if (store_open(&fr->store, &fr->loop, fr->database, e) < 0 ||
		owner_settle(fr->store, &fr->f->disks, c->adopt_disks, fr->f->data, fr->owner, e) <
			0 ||
		load_keys(fr, e) < 0)
		return -1;
	if (box_open(&fr->box, &fr->loop, fr->store,
		    &(struct driver_links){
			    fr->f->warden_fd, fr->f->keeper_fd, fr->f->network_fd, fr->run_dir},
		    &config, &(struct box_events){front_serve, front_found, fr}, e) < 0)
		return -1;
	explicit_bzero(fr->secret_key, sizeof fr->secret_key);
	box_on_warden_lost(fr->box, on_warden_lost, fr);
	fr->ops = (struct ops){.box = fr->box,
		.keys = fr->keys,
		.loop = &fr->loop,
		.hooks = op_hooks,
		.hook_count = ARRAY_LEN(op_hooks)};
	name_sandbox_domain(fr);
	fr->server = (struct server){.box = fr->box,
		.ops = &fr->ops,
		.auth = fr->auth,
		.loop = &fr->loop,
		.domain = c->domain,
		.sandbox_domain = fr->sandbox_domain,
		.own_urls = &c->own_urls,
		.context_tokens = c->context_tokens};
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

static int front_confine(const struct front_config *f, struct error *e)
{
	char own[128], run[128];
	snprintf(own, sizeof own, "%s/front", f->data);
	snprintf(run, sizeof run, "%s/run", f->data);
	const char *const writable[] = {own, run, NULL};
	umask(077);
	return confine_front(f->uid, writable, e);
}

/*
 * libuv opens a descriptor to have in reserve with the first stream. Once the front is confined it
 * could not, and would try again with every connection.
 */
static int front_open_loop(struct front *fr)
{
	int r = uv_loop_init(&fr->loop);
	if (r < 0)
		return r;
	uv_tcp_init(&fr->loop, &fr->first);
	uv_close((uv_handle_t *)&fr->first, NULL);
	return 0;
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
	descriptors_plan((unsigned)f->config->max_connections, &fr->descriptors);
	fr->has_secret_key = secret_key_load(f->data, f->config->secret_key_file, fr->secret_key);
	if (front_open_loop(fr) < 0 || front_confine(f, &e) < 0 || open_core(fr, &e) < 0) {
		log_error("cannot start", "error", e.message);
		_exit(2);
	}
	watch_signals(fr);
	watchdog_beat(f->beats, &fr->loop, &fr->beat);
	uv_run(&fr->loop, UV_RUN_DEFAULT);
	uv_loop_close(&fr->loop);
	services_free(&fr->services);
	auth_free(fr->auth);
	free(fr);
	return 0;
}
