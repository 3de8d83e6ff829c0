/*
 * What E2B calls our fields. Its numbers are plain: seconds, whole cores, mebibytes. Tokens are
 * written beside the tables: they belong to the request.
 */
#include "dialect/e2b/aliases.h"
#include "dialect/e2b/rules.h"

#include <stdio.h>

#include "answer/own_url.h"
#include "dialect/e2b/access.h"
#include "dialect/e2b/templates.h"

#define MIB           (1 << 20)
#define FAR_FUTURE_MS INT64_C(253402300799000) /* the end of the year 9999, for what has none */
#define ENVD_VERSION  "\"" E2B_ENVD_VERSION "\""
#define ANY_NUMBER    .min = INT64_MIN, .max = INT64_MAX

/* A share of a core is a whole one to E2B's clients. */
static void put_core_count(struct json_writer *w, const struct field *f, const void *record)
{
	json_int(w, (field_number(f, record) + 999) / 1000);
}

/* ---- sandboxes ---- */

static void put_end(struct json_writer *w, const struct field *f, const void *record)
{
	int64_t ms = field_number(f, record);
	json_time(w, ms ? ms : FAR_FUTURE_MS);
}

static void put_state(struct json_writer *w, const struct field *f, const void *record)
{
	const struct sandbox_view *view = record;
	(void)f;
	json_string(w, sandbox_lives(view) && sandbox_sleeps(view) ? "paused" : "running");
}

static bool sandbox_has_volumes(const void *record)
{
	const struct sandbox_view *view = record;
	return view->volumes && view->volumes[0].id[0];
}

/* One whose volume is gone meanwhile has its id. */
static void put_mounts(struct json_writer *w, const struct field *f, const void *record)
{
	const struct sandbox_view *view = record;
	const struct warden_volume *volumes = view->volumes;
	(void)f;
	json_begin_array(w);
	for (size_t i = 0; i < WARDEN_VOLUMES_MAX && volumes[i].id[0]; i++) {
		const char *name = view->volume_names[i];
		json_begin_object(w);
		json_put_string(w, "name", name ? name : volumes[i].id);
		json_put_string(w, "path", volumes[i].path);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_internet(struct json_writer *w, const struct field *f, const void *record)
{
	enum network_mode mode = (enum network_mode)field_number(f, record);
	json_bool(w, mode == NETWORK_OPEN || mode == NETWORK_DENY);
}

static bool sandbox_has_lists(const void *record)
{
	const struct network_settings *n = &((const struct sandbox_record *)record)->network;
	return n->mode == NETWORK_ALLOW || n->mode == NETWORK_DENY;
}

static bool sandbox_has_rules(const void *record)
{
	return ((const struct sandbox_record *)record)->network.rules.len > 0;
}

/* What a list of what is allowed leaves is everything else. */
static void put_denied(struct json_writer *w, const struct field *f, const void *record)
{
	if (((const struct sandbox_record *)record)->network.mode == NETWORK_DENY) {
		json_encode_value(w, f, record);
		return;
	}
	json_begin_array(w);
	json_string(w, "0.0.0.0/0");
	json_end_array(w);
}

static const char *const timeout_names[] = {
	[EXPIRY_DESTROY] = "kill", [EXPIRY_PAUSE] = "pause", [EXPIRY_SUSPEND] = "pause"};

/* clang-format off */
#define AT(member) JSON_ALIAS(struct sandbox_record, member)

/* The limits of a timeout are checked by e2b_check_timeout, in E2B's words. */
static const struct json_alias sandbox_aliases[] = {
	{"sandboxID", AT(id)},
	{"templateID", AT(template_name)},
	{"alias", AT(template_name)},
	{"clientID", .constant = "\"bunker\""},
	{"envdVersion", .constant = ENVD_VERSION},
	{"envVars", AT(env), .flags = FIELD_CREATE},
	{"timeout", AT(lease_ms), .flags = FIELD_CREATE, .scale = 1000, ANY_NUMBER},
};

static const struct json_alias listed_aliases[] = {
	{"sandboxID", AT(id)},
	{"templateID", AT(template_name)},
	{"alias", AT(template_name)},
	{"clientID", .constant = "\"bunker\""},
	{"startedAt", AT(created_ms)},
	{"endAt", AT(lease_end_ms), .put = put_end},
	{"cpuCount", AT(resources.cpu), .put = put_core_count},
	{"memoryMB", AT(resources.memory), .scale = MIB},
	{"diskSizeMB", AT(resources.disk), .scale = MIB},
	{"state", .put = put_state},
	{"envdVersion", .constant = ENVD_VERSION},
	{"metadata", AT(metadata)},
	{"volumeMounts", .put = put_mounts, .shown_if = sandbox_has_volumes},
};

static const struct json_alias lifecycle_aliases[] = {
	{"allowInternetAccess", AT(network.mode), .put = put_internet},
	{"network.allowOut", AT(network.allow), .shown_if = sandbox_has_lists},
	{"network.denyOut", AT(network.deny), .put = put_denied, .shown_if = sandbox_has_lists},
	{"network.rules", AT(network.rules), .put = e2b_put_rules, .shown_if = sandbox_has_rules},
	{"lifecycle.onTimeout", AT(on_lease), .names = timeout_names},
	{"lifecycle.autoResume", AT(auto_resume)},
};
#undef AT
/* clang-format on */

/* ---- templates and builds ---- */

static const char *const build_names[BUILD_STATUS_COUNT] = {[BUILD_WAITING] = "waiting",
	[BUILD_BUILDING] = "building",
	[BUILD_READY] = "ready",
	[BUILD_FAILED] = "error",
	[BUILD_CANCELLED] = "error"};

/* E2B's Python SDK parses the id of a build as a UUID; the nil one is what was never built. */
static void put_uuid(struct json_writer *w, const char *id)
{
	char uuid[UUID_SIZE] = "00000000-0000-0000-0000-000000000000";
	if (id[0])
		uuid_from_id(id, uuid);
	json_string(w, uuid);
}

static void put_build_id(struct json_writer *w, const struct field *f, const void *record)
{
	put_uuid(w, field_text(f, record));
}

/* A list of one. */
static void put_name_list(struct json_writer *w, const struct field *f, const void *record)
{
	json_begin_array(w);
	json_encode_value(w, f, record);
	json_end_array(w);
}

static void put_tag(struct json_writer *w, const struct field *f, const void *record)
{
	json_string(w, e2b_tag_out(field_text(f, record)));
}

/* NULL: nothing was built, because it is built in. */
static const struct build_view *template_newest(const void *record)
{
	const struct template_view *view = record;
	return view->build_count ? view->builds : NULL;
}

static void put_newest_id(struct json_writer *w, const struct field *f, const void *record)
{
	const struct build_view *newest = template_newest(record);
	(void)f;
	put_uuid(w, newest ? newest->id : "");
}

static void put_newest_status(struct json_writer *w, const struct field *f, const void *record)
{
	const struct build_view *newest = template_newest(record);
	(void)f;
	json_string(w, newest ? build_names[newest->status] : "ready");
}

static void put_updated(struct json_writer *w, const struct field *f, const void *record)
{
	const struct build_view *newest = template_newest(record);
	json_time(w, newest && newest->ended_ms ? newest->ended_ms : field_number(f, record));
}

/* clang-format off */
#define AT(member) JSON_ALIAS(struct template_view, member)

static const struct json_alias template_aliases[] = {
	{"templateID", AT(id)},
	{"buildID", .put = put_newest_id},
	{"cpuCount", AT(resources.cpu), .put = put_core_count},
	{"memoryMB", AT(resources.memory), .scale = MIB},
	{"diskSizeMB", AT(resources.disk), .scale = MIB},
	{"public", AT(built_in)},
	{"aliases", AT(name), .put = put_name_list},
	{"names", AT(name), .put = put_name_list},
	{"buildStatus", .put = put_newest_status},
	{"createdAt", AT(created_ms)},
	{"updatedAt", AT(created_ms), .put = put_updated},
	{"envdVersion", .constant = ENVD_VERSION},
};

static const struct json_alias template_found_aliases[] = {
	{"templateID", AT(id)},
	{"public", AT(built_in)},
};
#undef AT

#define AT(member) JSON_ALIAS(struct tag_view, member)

static const struct json_alias tag_aliases[] = {
	{"tag", AT(tag), .put = put_tag},
	{"buildID", AT(build), .put = put_build_id},
	{"createdAt", AT(created_ms)},
};
#undef AT

#define AT(member) JSON_ALIAS(struct build_view, member)

static const struct json_alias build_aliases[] = {
	{"templateID", AT(template_id)},
	{"buildID", AT(id), .put = put_build_id},
	{"public", .constant = "false"},
	{"aliases", AT(name), .put = put_name_list},
	{"names", AT(name), .put = put_name_list},
};

static const struct json_alias build_state_aliases[] = {
	{"templateID", AT(template_id)},
	{"buildID", AT(id), .put = put_build_id},
	{"status", AT(status), .names = build_names},
};

static const struct json_alias build_tagged_aliases[] = {
	{"buildID", AT(id), .put = put_build_id},
};
#undef AT

#define AT(member) JSON_ALIAS(struct build_log_entry, member)

static const struct json_alias build_log_aliases[] = {
	{"timestamp", AT(time_ms)},
	{"level", AT(level)},
	{"message", AT(message)},
	{"step", AT(step)},
};
#undef AT
/* clang-format on */

/* ---- disks ---- */

/* "name:tag", or by its id: one that has lost its name to a newer one is found by that. */
static void put_reference(struct json_writer *w, const struct field *f, const void *record)
{
	const struct snapshot_record *view = record;
	bool is_named = view->name[0] && view->tag[0];
	autobuf reference = {0};
	(void)f;
	buf_append_str(&reference, is_named ? view->name : view->id);
	buf_append_char(&reference, ':');
	buf_append_str(&reference, is_named ? e2b_tag_out(view->tag) : E2B_DEFAULT_TAG);
	json_string_n(w, reference.data, reference.len);
	w->out->failed |= reference.failed;
}

static void put_references(struct json_writer *w, const struct field *f, const void *record)
{
	const struct snapshot_record *view = record;
	json_begin_array(w);
	if (view->name[0] && view->tag[0])
		put_reference(w, f, record);
	json_end_array(w);
}

static const struct json_alias snapshot_aliases[] = {
	{"snapshotID", .put = put_reference},
	{"names", .put = put_references},
};

static const struct json_alias volume_aliases[] = {
	{"volumeID", JSON_ALIAS(struct volume_view, id)},
	{"name", JSON_ALIAS(struct volume_view, name)},
};

/* ---- contexts of code ---- */

static const struct json_alias context_aliases[] = {
	{"id", JSON_ALIAS(struct code_context_view, id)},
	{"language", JSON_ALIAS(struct code_context_view, language)},
	{"cwd", JSON_ALIAS(struct code_context_view, cwd)},
};

/* ---- metrics ---- */

static void put_percent(struct json_writer *w, const struct field *f, const void *record)
{
	char text[32];
	(void)f;
	snprintf(text, sizeof text, "%.2f", ((const struct e2b_gauge *)record)->cpu_percent);
	json_raw(w, text);
}

/* clang-format off */
#define AT(KIND, member) FIELD_AT(KIND, struct e2b_gauge, member)

static const struct field gauge_fields[] = {
	{AT(TIME, time_ms)},
	{AT(INTEGER, memory)},
	{AT(INTEGER, disk)},
	{AT(INTEGER, limits.cpu)},
	{AT(INTEGER, limits.memory)},
	{AT(INTEGER, limits.disk)},
};
#undef AT

static const struct field_table gauge_model = {
	gauge_fields, ARRAY_LEN(gauge_fields), sizeof(struct e2b_gauge)};

#define AT(member) JSON_ALIAS(struct e2b_gauge, member)

static const struct json_alias gauge_aliases[] = {
	{"timestamp", AT(time_ms)},
	{"timestampUnix", AT(time_ms), .scale = 1000},
	{"cpuCount", AT(limits.cpu), .put = put_core_count},
	{"cpuUsedPct", .put = put_percent},
	{"memUsed", AT(memory)},
	{"memTotal", AT(limits.memory)},
	{"memCache", .constant = "0"},
	{"diskUsed", AT(disk)},
	{"diskTotal", AT(limits.disk)},
};

static const struct json_alias envd_gauge_aliases[] = {
	{"ts", AT(time_ms), .scale = 1000},
	{"cpu_count", AT(limits.cpu), .put = put_core_count},
	{"cpu_used_pct", .put = put_percent},
	{"mem_total", AT(limits.memory)},
	{"mem_used", AT(memory)},
	{"mem_cache", .constant = "0"},
	{"mem_total_mib", AT(limits.memory), .scale = MIB},
	{"mem_used_mib", AT(memory), .scale = MIB},
	{"disk_used", AT(disk)},
	{"disk_total", AT(limits.disk)},
};
#undef AT
/* clang-format on */

/* ---- tables ---- */

#define TABLE(of, rows)                                                                            \
	{                                                                                          \
		.model = &(of), .aliases = (rows), .count = ARRAY_LEN(rows)                        \
	}

const struct json_alias_table e2b_sandbox = TABLE(sandbox_model, sandbox_aliases);
const struct json_alias_table e2b_sandbox_listed = TABLE(sandbox_model, listed_aliases);
static const struct json_alias_table sandbox_lifecycle = TABLE(sandbox_model, lifecycle_aliases);
const struct json_alias_table e2b_template = TABLE(template_model, template_aliases);
const struct json_alias_table e2b_template_found = TABLE(template_model, template_found_aliases);
const struct json_alias_table e2b_tag = TABLE(tag_model, tag_aliases);
const struct json_alias_table e2b_build = TABLE(build_model, build_aliases);
const struct json_alias_table e2b_build_state = TABLE(build_model, build_state_aliases);
const struct json_alias_table e2b_build_tagged = TABLE(build_model, build_tagged_aliases);
const struct json_alias_table e2b_build_log = TABLE(build_log_model, build_log_aliases);
const struct json_alias_table e2b_snapshot = TABLE(snapshot_model, snapshot_aliases);
const struct json_alias_table e2b_volume = TABLE(volume_model, volume_aliases);
const struct json_alias_table e2b_context = TABLE(code_context_model, context_aliases);
const struct json_alias_table e2b_gauge_told = TABLE(gauge_model, gauge_aliases);
const struct json_alias_table e2b_gauge_by_envd = TABLE(gauge_model, envd_gauge_aliases);

const struct json_alias_table *const e2b_aliases[] = {&e2b_sandbox, &e2b_sandbox_listed,
	&sandbox_lifecycle, &e2b_template, &e2b_template_found, &e2b_tag, &e2b_build,
	&e2b_build_state, &e2b_build_tagged, &e2b_build_log, &e2b_snapshot, &e2b_volume,
	&e2b_context, &e2b_gauge_told, &e2b_gauge_by_envd, NULL};

/* ---- beside the tables ---- */

static void put_access(
	struct json_writer *w, const struct http_request *req, const struct sandbox_view *view)
{
	char token[AUTH_TOKEN_SIZE];
	autobuf domain = {0};
	own_url_append_sandbox_domain(&domain, req);
	buf_append_char(&domain, '\0');
	buf_require(&domain);
	e2b_token(req, view->id, token);
	json_put_string(w, "envdAccessToken", token);
	json_put_string(w, "domain", domain.data);
}

void e2b_put_sandbox(
	struct json_writer *w, const struct http_request *req, const struct sandbox_view *view)
{
	json_begin_object(w);
	json_encode_alias(w, &e2b_sandbox, view);
	put_access(w, req, view);
	if (view->previews == PREVIEWS_TOKEN) {
		char token[AUTH_TOKEN_SIZE];
		auth_make_token(
			server_of(req)->auth, auth_mark(req), TRAFFIC_TOKEN, view->id, token);
		json_put_string(w, "trafficAccessToken", token);
	}
	json_end_object(w);
}

static int e2b_sandbox_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	e2b_put_sandbox(&w, a->req, event->sandbox);
	return 0;
}

const struct answer_form e2b_sandbox_form = {
	.type = E2B_JSON, .pace = ANSWER_WHOLE, .put = e2b_sandbox_put, .fail = e2b_fail};

static void detail_put_rest(struct answer *a, struct json_writer *w, const struct op_event *event)
{
	put_access(w, a->req, event->sandbox);
	json_encode_alias(w, &sandbox_lifecycle, event->sandbox);
}

static const struct answer_records detail_records = {
	.aliases = &e2b_sandbox_listed, .rest = detail_put_rest};
const struct answer_form e2b_sandbox_detail_form = {E2B_RECORD(&detail_records), .fail = e2b_fail};

void e2b_put_next(struct answer *a, struct json_writer *w, const struct op_event *event)
{
	const struct answer_list *list = a->own;
	char token[CURSOR_SIZE];
	(void)w;
	if (!event->more)
		return;
	cursor_format(list->last_ms, list->last_id, token);
	http_add_header(a->req, "X-Next-Token", token);
}
