/*
 * /sandboxes and /v2/sandboxes: create, look at, kill.
 *
 * The two differ in nothing but what a timeout is that was not given. What asks for headers to be
 * added, secrets or an MCP gateway is refused by name: doing without them silently would be worse.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/json_body.h"
#include "dialect/e2b/decode.h"
#include "dialect/e2b/aliases.h"
#include "dialect/e2b/access.h"
#include "dialect/e2b/routes.h"
#include "dialect/e2b/templates.h"
#include "op/life.h"

struct create_body {
	const char *template_id;
	const cJSON *metadata, *network, *internet, *auto_resume, *mcp, *iam, *volumes;
	bool auto_pause, auto_pause_memory, secure;
};

#define AT(member) offsetof(struct create_body, member)

static const struct json_field create_fields[] = {
	{"templateID", FIELD_TEXT, AT(template_id), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, 256},
	{"metadata", FIELD_STRING_MAP, AT(metadata), 0, 0, 1000},
	{"allow_internet_access", FIELD_ANY, AT(internet), 0, 0, 0},
	{"network", FIELD_OBJECT, AT(network), 0, 0, 0},
	{"autoPause", FIELD_BOOL, AT(auto_pause), 0, 0, 0},
	{"autoPauseMemory", FIELD_BOOL, AT(auto_pause_memory), 0, 0, 0},
	{"autoResume", FIELD_OBJECT, AT(auto_resume), 0, 0, 0},
	{"mcp", FIELD_OBJECT, AT(mcp), 0, 0, 0},
	{"iam", FIELD_OBJECT, AT(iam), 0, 0, 0},
	{"volumeMounts", FIELD_ARRAY, AT(volumes), 0, 0, WARDEN_VOLUMES_MAX},
	{"secure", FIELD_BOOL, AT(secure), 0, 0, 0},
};

/* ---- what is asked for ---- */

struct body_name {
	const cJSON *value;
	const char *name, *what;
};

static int e2b_sandboxes_refuse_unsupported(const struct create_body *b, struct error *e)
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
	return 0;
}

/* What happens at the end of its time. */
static int settle_lifecycle(const struct create_body *b, struct sandbox_spec *spec, struct error *e)
{
	bool resumes = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(b->auto_resume, "enabled"));
	if (e2b_check_timeout(spec->lease_ms / 1000, e) < 0)
		return -1;
	if (!b->auto_pause_memory && !b->auto_pause)
		return error_set_field(e, ERROR_INVALID_FIELD, "autoPauseMemory",
			"\"autoPauseMemory\" is only for sandboxes with \"autoPause\"");
	if (!b->auto_pause_memory && resumes)
		return error_set_field(e, ERROR_INVALID_FIELD, "autoResume",
			"a sandbox that is paused without its memory cannot be resumed by traffic");
	spec->on_lease = !b->auto_pause         ? EXPIRY_DESTROY
			 : b->auto_pause_memory ? EXPIRY_PAUSE
						: EXPIRY_SUSPEND;
	spec->auto_resume = resumes;
	return 0;
}

static const struct json_field mount_fields[] = {
	{"name", FIELD_TEXT, offsetof(struct volume_mount, volume),
		FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, VOLUME_NAME_MAX},
	{"path", FIELD_TEXT, offsetof(struct volume_mount, path), FIELD_REQUIRED | FIELD_NOT_EMPTY,
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

/* SDKs ask for the internet whether their user did or not: on a host without it that is no error.
 */
static int settle_network(const struct create_body *b, struct scratch *memory,
	struct sandbox_spec *spec, struct error *e)
{
	if (b->internet && !cJSON_IsBool(b->internet))
		return error_set_field(e, ERROR_INVALID_FIELD, "allow_internet_access",
			"\"allow_internet_access\" must be true or false");
	spec->has_network = spec->network_is_wish = true;
	return e2b_decode_network(b->network, b->internet, memory, &spec->network, e);
}

/* A snapshot is to E2B's clients a template like any other. */
static int e2b_sandboxes_settle_create(const struct create_body *b, struct scratch *memory,
	struct op_create *create, struct error *e)
{
	struct sandbox_spec *spec = &create->spec;
	create->origin = e2b_reference_in(b->template_id, memory);
	return e2b_sandboxes_refuse_unsupported(b, e) < 0 || settle_lifecycle(b, spec, e) < 0 ||
			       settle_network(b, memory, spec, e) < 0 ||
			       e2b_decode_previews(b->network, &spec->settings, e) < 0 ||
			       settle_volumes(b->volumes, memory, spec, e) < 0
		       ? -1
		       : e2b_metadata(b->metadata, memory, &spec->metadata, e);
}

/* ---- create ---- */

static int e2b_sandboxes_decode_create(
	const cJSON *body, struct scratch *memory, struct op_create *create, struct error *e)
{
	struct create_body b = {.auto_pause_memory = true};
	struct field rows[JSON_ALIASES_MAX];
	size_t count = json_alias_rows(&e2b_sandbox, FIELD_CREATE, rows);
	const struct json_part parts[] = {{rows, NULL, count, 0, &create->spec.settings, NULL},
		{NULL, create_fields, ARRAY_LEN(create_fields), 0, &b, NULL}, {0}};
	if (json_decode_known_parts(body, parts, memory, e) < 0)
		return -1;
	return e2b_sandboxes_settle_create(&b, memory, create, e);
}

static void create_sandbox(struct http_request *req, int64_t default_timeout_s)
{
	struct error e = {0};
	struct op_create create = {.spec = {.lease_ms = default_timeout_s * 1000}};
	struct answer *a = answer_new(req, &e2b_sandbox_form);
	const cJSON *body = answer_json(a, &e);
	if (!body || e2b_sandboxes_decode_create(body, &a->call.memory, &create, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	a->op = op_create(&a->call, &create);
	answer_run(a);
}

static void handle_create_v1(struct http_request *req)
{
	create_sandbox(req, E2B_TIMEOUT_V1_S);
}

static void handle_create_v2(struct http_request *req)
{
	create_sandbox(req, E2B_TIMEOUT_V2_S);
}

/* ---- get, delete ---- */

static void e2b_sandboxes_handle_get(struct http_request *req)
{
	struct answer *a = e2b_usable_answer(req, &e2b_sandbox_detail_form);
	a->op = op_get(&a->call, &(struct op_get){0});
	answer_run(a);
}

/* Also while it is being ended: whoever asks waits for that. */
static void handle_kill(struct http_request *req)
{
	struct answer *a = e2b_answer(req, &e2b_nothing_form);
	a->status = 204;
	a->op = op_delete(&a->call);
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/sandboxes", handle_create_v1, E2B_BODY_LIMIT},
	{HTTP_POST, "/v2/sandboxes", handle_create_v2, E2B_BODY_LIMIT},
	{HTTP_GET, "/sandboxes/{id}", e2b_sandboxes_handle_get, 0},
	{HTTP_DELETE, "/sandboxes/{id}", handle_kill, 0},
};

const struct route_table e2b_sandbox_table = ROUTE_TABLE(routes);
