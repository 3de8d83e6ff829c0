/*
 * /sandboxes and /v2/sandboxes: create, look at, kill.
 *
 * The two differ in nothing but what a timeout is that was not given. What asks for egress rules,
 * secrets or an MCP gateway is refused by name: doing without them silently would be worse.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "box/disk/snapshot.h"
#include "box/disk/volume.h"
#include "dialect/e2b/decode.h"
#include "dialect/e2b/encode.h"
#include "dialect/e2b/access.h"
#include "dialect/e2b/routes.h"
#include "box/template/template.h"
#include "dialect/e2b/templates.h"

struct create_body {
	const char *template_id;
	const cJSON *metadata, *env, *network, *auto_resume, *mcp, *iam, *volumes;
	int64_t timeout_s;
	bool auto_pause, auto_pause_memory, allow_internet, secure;
};

#define AT(member) offsetof(struct create_body, member)

static const struct json_field create_fields[] = {
	{"templateID", JSON_STRING, AT(template_id), JSON_REQUIRED | JSON_NOT_EMPTY, 0, 256},
	{"metadata", JSON_STRING_MAP, AT(metadata), 0, 0, 1000},
	{"envVars", JSON_STRING_MAP, AT(env), 0, 0, 1000},
	{"timeout", JSON_INTEGER, AT(timeout_s), 0, 0, 0},
	{"allow_internet_access", JSON_BOOL, AT(allow_internet), 0, 0, 0},
	{"network", JSON_OBJECT, AT(network), 0, 0, 0},
	{"autoPause", JSON_BOOL, AT(auto_pause), 0, 0, 0},
	{"autoPauseMemory", JSON_BOOL, AT(auto_pause_memory), 0, 0, 0},
	{"autoResume", JSON_OBJECT, AT(auto_resume), 0, 0, 0},
	{"mcp", JSON_OBJECT, AT(mcp), 0, 0, 0},
	{"iam", JSON_OBJECT, AT(iam), 0, 0, 0},
	{"volumeMounts", JSON_ARRAY, AT(volumes), 0, 0, WARDEN_VOLUMES_MAX},
	{"secure", JSON_BOOL, AT(secure), 0, 0, 0},
};

/* ---- what is asked for ---- */

struct body_name {
	const cJSON *value;
	const char *name, *what;
};

static int refuse_unsupported(const struct create_body *b, struct error *e)
{
	const struct body_name names[] = {
		{b->mcp, "mcp", "an MCP gateway"},
		{b->iam, "iam", "workload identities"},
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (e2b_is_asked_for(names[i].value))
			return error_set_field(e, ERROR_NOT_IMPLEMENTED, names[i].name,
				"\"%s\": this server does not have %s yet", names[i].name,
				names[i].what);
	return e2b_check_network(b->network, e);
}

/* What happens at the end of its time. */
static int settle_lifecycle(const struct create_body *b, struct sandbox_spec *spec, struct error *e)
{
	bool resumes = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(b->auto_resume, "enabled"));
	if (e2b_check_timeout(b->timeout_s, e) < 0)
		return -1;
	if (!b->auto_pause_memory && !b->auto_pause)
		return error_set_field(e, ERROR_INVALID_FIELD, "autoPauseMemory",
			"\"autoPauseMemory\" is only for sandboxes with \"autoPause\"");
	if (!b->auto_pause_memory && resumes)
		return error_set_field(e, ERROR_INVALID_FIELD, "autoResume",
			"a sandbox that is paused without its memory cannot be resumed by traffic");
	spec->lease_ms = b->timeout_s * 1000;
	spec->on_lease = !b->auto_pause         ? EXPIRY_DESTROY
			 : b->auto_pause_memory ? EXPIRY_PAUSE
						: EXPIRY_SUSPEND;
	spec->auto_resume = resumes;
	return 0;
}

/* What it begins with: a template, or a snapshot, which to E2B's clients is the same. */
static void settle_origin(struct box *b, const char *reference, struct sandbox_spec *spec)
{
	struct error e;
	struct template *t;
	struct build *build;
	if (template_resolve(b, spec->tenant, reference, &t, &build, &e) < 0 &&
		snapshot_find(b, spec->tenant, reference))
		spec->snapshot = reference;
	else
		spec->template_name = reference;
}

static const struct json_field mount_fields[] = {
	{"name", JSON_STRING, offsetof(struct volume_mount, volume), JSON_REQUIRED | JSON_NOT_EMPTY,
		0, VOLUME_NAME_MAX},
	{"path", JSON_STRING, offsetof(struct volume_mount, path), JSON_REQUIRED | JSON_NOT_EMPTY,
		0, 4095},
};

static int settle_volumes(
	const cJSON *list, struct scratch *memory, struct sandbox_spec *spec, struct error *e)
{
	const cJSON *item;
	size_t count = (size_t)cJSON_GetArraySize(list), i = 0;
	struct volume_mount *mounts = scratch_alloc(memory, (count + 1) * sizeof *mounts);
	cJSON_ArrayForEach(item, list)
	{
		char path[40];
		snprintf(path, sizeof path, "volumeMounts[%zu].", i);
		if (json_decode_known(
			    item, mount_fields, ARRAY_LEN(mount_fields), path, &mounts[i++], e) < 0)
			return -1;
	}
	spec->volumes = mounts;
	spec->volume_count = count;
	return 0;
}

static int settle_create(struct box *box, const struct create_body *b, struct scratch *memory,
	struct sandbox_spec *spec, struct error *e)
{
	if (refuse_unsupported(b, e) < 0 || settle_lifecycle(b, spec, e) < 0 ||
		settle_volumes(b->volumes, memory, spec, e) < 0 ||
		json_strings(b->env, "envVars", memory, &spec->env, e) < 0 ||
		e2b_metadata(b->metadata, memory, &spec->metadata, e) < 0)
		return -1;
	settle_origin(box, e2b_reference_in(b->template_id, memory), spec);
	return 0;
}

/* ---- create ---- */

struct create_call {
	struct http_request *req; /* NULL once the client has gone */
};

static void create_aborted(void *arg)
{
	((struct create_call *)arg)->req = NULL;
}

static void create_done(void *arg, struct sandbox *s, const struct error *e)
{
	struct create_call *call = arg;
	if (!call->req) {
		/* Nobody has its id. */
		if (s)
			sandbox_destroy(s, NULL, NULL);
	} else if (s) {
		e2b_respond_sandbox(call->req, 201, s);
	} else {
		http_respond_error(call->req, e);
	}
	free(call);
}

static void create(struct http_request *req, int64_t default_timeout_s)
{
	struct error e = {0};
	autoscratch memory = {0};
	struct create_body fields = {.timeout_s = default_timeout_s, .auto_pause_memory = true};
	struct sandbox_spec spec = {.tenant = tenant_of(req)};
	cJSON *body = e2b_body(req);
	if (!body)
		return;
	struct create_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	if (json_decode_known(body, create_fields, ARRAY_LEN(create_fields), "", &fields, &e) < 0 ||
		settle_create(server_of(req)->box, &fields, &memory, &spec, &e) < 0 ||
		!sandbox_create(server_of(req)->box, &spec, create_done, call, &e)) {
		free(call);
		http_respond_error(req, &e);
	} else {
		http_on_abort(req, create_aborted, call);
	}
	cJSON_Delete(body);
}

static void handle_create_v1(struct http_request *req)
{
	create(req, E2B_TIMEOUT_V1_S);
}

static void handle_create_v2(struct http_request *req)
{
	create(req, E2B_TIMEOUT_V2_S);
}

/* ---- get, delete ---- */

static void handle_get(struct http_request *req)
{
	struct sandbox *s = e2b_sandbox(req);
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct sandbox_view view;
	if (!s)
		return;
	sandbox_view(s, &view);
	e2b_put_detail(&w, server_of(req), &view);
	e2b_respond_json(req, 200, &body);
}

struct kill_call {
	struct http_request *req;
};

static void kill_aborted(void *arg)
{
	((struct kill_call *)arg)->req = NULL;
}

static void kill_done(void *arg)
{
	struct kill_call *call = arg;
	if (call->req)
		e2b_respond_nothing(call->req, 204);
	free(call);
}

static void handle_kill(struct http_request *req)
{
	struct sandbox *s = e2b_sandbox_in_any_state(req);
	if (!s)
		return;
	struct kill_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	http_on_abort(req, kill_aborted, call);
	sandbox_destroy(s, kill_done, call);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/sandboxes", handle_create_v1, E2B_BODY_LIMIT},
	{HTTP_POST, "/v2/sandboxes", handle_create_v2, E2B_BODY_LIMIT},
	{HTTP_GET, "/sandboxes/{id}", handle_get, 0},
	{HTTP_DELETE, "/sandboxes/{id}", handle_kill, 0},
};

const struct route_table e2b_sandbox_table = ROUTE_TABLE(routes);
