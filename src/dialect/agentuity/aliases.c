/*
 * What Agentuity calls our fields. Ids have a prefix that says what they are of, durations are
 * written as Go does, and what a sandbox belongs to is an object with an id and a name.
 */
#include "dialect/agentuity/aliases.h"

#include <stdio.h>
#include <string.h>

#include "model/checkpoint.h"
#include "model/port.h"
#include "model/snapshot.h"

#define OMITTED .empty = JSON_EMPTY_OMITTED
#define OR_NULL .empty = JSON_EMPTY_NULL
#define BOTH    .flags = (FIELD_CREATE | FIELD_SHOWN)
#define REGION  "\"" AGENTUITY_REGION "\""

/* ---- sandboxes ---- */

static const char *const modes[] = {"interactive", "oneshot"};

/* One that is made for one command is never idle. */
static void put_status(struct json_writer *w, const struct field *f, const void *record)
{
	json_string(w, f->names[sandbox_apparent_status(record)]);
}

/* As Go writes it: "10m0s". */
static void put_duration(struct json_writer *w, const struct field *f, const void *record)
{
	char text[64];
	int64_t ms = field_number(f, record);
	long long s = ms / 1000, rest = ms % 1000;
	size_t n = 0;
	if (s >= 3600)
		n += (size_t)snprintf(text + n, sizeof text - n, "%lldh", s / 3600);
	if (s >= 60)
		n += (size_t)snprintf(text + n, sizeof text - n, "%lldm", s / 60 % 60);
	if (rest && s == 0)
		snprintf(text + n, sizeof text - n, "%lldms", rest);
	else if (rest)
		snprintf(text + n, sizeof text - n, "%lld.%03llds", s % 60, rest);
	else
		snprintf(text + n, sizeof text - n, "%llds", s % 60);
	json_string(w, text);
}

static void put_network_enabled(struct json_writer *w, const struct field *f, const void *record)
{
	json_bool(w, field_number(f, record) != NETWORK_NONE);
}

static void put_open_port(struct json_writer *w, const struct field *f, const void *record)
{
	json_int(w, port_grants_first_open(field_text(f, record)));
}

static bool sandbox_has_open_port(const void *record)
{
	return port_grants_first_open(((const struct sandbox_record *)record)->port_grants);
}

static bool sandbox_has_snapshot(const void *record)
{
	return ((const struct sandbox_record *)record)->snapshot[0];
}

static bool sandbox_has_ended(const void *record)
{
	return ((const struct sandbox_record *)record)->ended_ms;
}

/* clang-format off */
#define AT(member) JSON_ALIAS(struct sandbox_record, member)

static const struct json_alias state_aliases[] = {
	{"sandboxId", AT(id), .prefix = "sbx_"},
	{"status", AT(status), .put = put_status},
};

static const struct json_alias sandbox_aliases[] = {
	{"sandboxId", AT(id), .prefix = "sbx_"},
	{"identifier", AT(id)},
	{"status", AT(status), .put = put_status},
	{"createdAt", AT(created_ms)},
	{"executions", AT(executions)},
	{"name", AT(name), BOTH, OMITTED},
	{"description", AT(description), BOTH, OMITTED},
	{"env", AT(env), .flags = FIELD_CREATE},
	{"mode", AT(ephemeral), .names = modes},
	{"region", .constant = REGION},
	{"runtime.id", AT(template_name), .prefix = "srt_"},
	{"runtime.name", AT(template_name)},
	{"snapshot.id", AT(snapshot), .prefix = "snp_", OMITTED},
	{"snapshot.public", .constant = "false", .shown_if = sandbox_has_snapshot},
	{"snapshot.user.id", AT(tenant), .shown_if = sandbox_has_snapshot},
	{"projectId", AT(project), .flags = FIELD_CREATE},
	{"project.id", AT(project), OMITTED},
	{"project.name", AT(project), OMITTED},
	{"org.id", AT(tenant)},
	{"org.name", AT(tenant)},
	{"metadata", AT(metadata), BOTH, OMITTED},
	{"resources.memory", AT(resources.memory), BOTH},
	{"resources.cpu", AT(resources.cpu), BOTH},
	{"resources.disk", AT(resources.disk), BOTH},
	{"timeout.idle", AT(idle_ms), BOTH, OMITTED, .put = put_duration},
	{"timeout.execution", AT(execution_ms), BOTH, OMITTED, .put = put_duration},
	{"timeout.paused", AT(paused_timeout_ms), BOTH, .put = put_duration},
	{"networkEnabled", AT(network.mode), .put = put_network_enabled},
	{"networkPort", AT(port_grants), .put = put_open_port, .shown_if = sandbox_has_open_port},
	{"cpuTimeMs", AT(cpu_us), .scale = 1000, .shown_if = sandbox_has_ended},
	{"memoryByteSec", AT(memory_byte_seconds), .shown_if = sandbox_has_ended},
	{"networkEgressBytes", AT(network_out), .shown_if = sandbox_has_ended},
	{"terminatesAt", AT(terminates_ms), OMITTED},
	{"lastError", AT(failure), OMITTED},
};

static const struct json_alias summary_aliases[] = {
	{"id", AT(id), .prefix = "sbx_"},
	{"name", AT(name), OR_NULL},
	{"description", AT(description), OR_NULL},
	{"status", AT(status), .put = put_status},
	{"region", .constant = REGION},
	{"createdAt", AT(created_ms)},
	{"orgId", AT(tenant)},
	{"orgName", AT(tenant)},
	{"projectId", AT(project), OR_NULL},
};
#undef AT
/* clang-format on */

/* ---- executions ---- */

/* Agentuity's jobs have no timeout; one that the server ended has failed. */
static const char *const job_statuses[EXECUTION_STATUS_COUNT] = {[EXECUTION_QUEUED] = "pending",
	[EXECUTION_RUNNING] = "running",
	[EXECUTION_COMPLETED] = "completed",
	[EXECUTION_FAILED] = "failed",
	[EXECUTION_TIMEOUT] = "failed",
	[EXECUTION_CANCELLED] = "cancelled"};

static void put_completion(struct json_writer *w, const struct field *f, const void *record)
{
	const struct execution_view *view = record;
	(void)f;
	json_time(w, view->started_ms + view->duration_us / 1000);
}

/* Why it did not end by itself, as a sentence; NULL: it did. */
static const char *execution_failure(const struct execution_view *view)
{
	if (view->oom_killed)
		return "it was killed because the sandbox's memory was full";
	if (view->status == EXECUTION_TIMEOUT)
		return "it ran for longer than it was allowed to";
	if (view->status != EXECUTION_FAILED)
		return NULL;
	if (view->signal)
		return "a signal ended it";
	return view->exit_code == 126 || view->exit_code == 127 ? "its program could not be started"
								: "it was lost with its sandbox";
}

static bool execution_has_failed(const void *record)
{
	return execution_failure(record) != NULL;
}

static void put_failure(struct json_writer *w, const struct field *f, const void *record)
{
	(void)f;
	json_string(w, execution_failure(record));
}

/* clang-format off */
#define AT(member) JSON_ALIAS(struct execution_view, member)

static const struct json_alias execution_aliases[] = {
	{"executionId", AT(id), .prefix = "exe_"},
	{"sandboxId", AT(sandbox_id), .prefix = "sbx_"},
	{"status", AT(status)},
	{"type", .constant = "\"exec\""},
	{"command", AT(command)},
	{"startedAt", AT(started_ms)},
	{"exitCode", AT(exit_code), .shown_if = execution_is_over},
	{"durationMs", AT(duration_us), .scale = 1000, .shown_if = execution_is_over},
	{"completedAt", .put = put_completion, .shown_if = execution_is_over},
	{"error", .put = put_failure, .shown_if = execution_has_failed},
	{"outputTruncated", AT(truncated)},
};

static const struct json_alias job_aliases[] = {
	{"jobId", AT(id), .prefix = "job_"},
	{"sandboxId", AT(sandbox_id), .prefix = "sbx_"},
	{"command", AT(command)},
	{"status", AT(status), .names = job_statuses},
	{"startedAt", AT(started_ms)},
	{"exitCode", AT(exit_code), .shown_if = execution_is_over},
	{"completedAt", .put = put_completion, .shown_if = execution_is_over},
	{"error", .put = put_failure, .shown_if = execution_has_failed},
};

static const struct json_alias command_aliases[] = {
	{"command.exec", AT(command)},
	{"command.mode", .constant = "\"oneshot\""},
	{"exitCode", AT(exit_code), .shown_if = execution_is_over},
};
#undef AT
/* clang-format on */

/* ---- disks ---- */

/* One without a name is called by its id. */
static void put_snapshot_name(struct json_writer *w, const struct field *f, const void *record)
{
	const struct snapshot_record *view = record;
	char id[AGENTUITY_ID_SIZE];
	snprintf(id, sizeof id, "snp_%s", view->id);
	json_string(w, view->name[0] ? field_text(f, record) : id);
}

static void put_is_deleted(struct json_writer *w, const struct field *f, const void *record)
{
	json_bool(w, field_number(f, record) == DISK_DELETED);
}

/* clang-format off */
#define AT(member) JSON_ALIAS(struct snapshot_record, member)

/* None of them is public: they belong to their tenant. */
static const struct json_alias identity_aliases[] = {
	{"snapshotId", AT(id), .prefix = "snp_"},
	{"name", AT(name), .put = put_snapshot_name},
	{"tag", AT(tag), OR_NULL},
	{"parentSnapshotId", AT(parent), .prefix = "snp_", OMITTED},
	{"public", .constant = "false"},
	{"user.id", AT(tenant)},
	{"createdAt", AT(created_ms)},
};

/* A size that is still being counted is -1. */
static const struct json_alias snapshot_aliases[] = {
	{"runtimeId", AT(template_name), .prefix = "srt_"},
	{"description", AT(description), OR_NULL},
	{"userMetadata", AT(metadata), OMITTED},
	{"sizeBytes", AT(bytes)},
	{"fileCount", AT(files)},
};

static const struct json_alias ancestor_aliases[] = {
	{"deleted", AT(status), .put = put_is_deleted},
};
#undef AT

#define AT(member) JSON_ALIAS(struct checkpoint_view, member)

/* A parent is called by its name. */
static const struct json_alias checkpoint_aliases[] = {
	{"id", AT(id), .prefix = "ckpt_"},
	{"name", AT(name)},
	{"createdAt", AT(created_ms)},
	{"parent", AT(parent_name)},
};
#undef AT
/* clang-format on */

/* ---- events ---- */

static void put_event_id(struct json_writer *w, const struct field *f, const void *record)
{
	const struct event_view *view = record;
	char id[ID_SIZE + 32];
	(void)f;
	snprintf(id, sizeof id, "evt_%s_%llu", view->sandbox, (unsigned long long)view->number);
	json_string(w, id);
}

/* The words that Agentuity's own service uses; the others are lifecycle:WORD. */
static void put_event_type(struct json_writer *w, const struct field *f, const void *record)
{
	const char *type = field_text(f, record);
	char text[64];
	snprintf(text, sizeof text, "lifecycle:%s", type);
	json_string(w, strcmp(type, "created") == 0   ? "create"
		       : strcmp(type, "deleted") == 0 ? "destroy"
						      : text);
}

static void put_event(struct json_writer *w, const struct field *f, const void *record)
{
	const struct event_view *view = record;
	(void)f;
	json_begin_object(w);
	json_put_string(w, "type", view->type);
	json_put_string(w, "cause", view->cause);
	json_env_members(w, view->details.data, view->details.len);
	json_end_object(w);
}

static const struct json_alias event_aliases[] = {
	{"eventId", .put = put_event_id},
	{"sandboxId", JSON_ALIAS(struct event_view, sandbox), .prefix = "sbx_"},
	{"type", JSON_ALIAS(struct event_view, type), .put = put_event_type},
	{"createdAt", JSON_ALIAS(struct event_view, time_ms)},
	{"event", .put = put_event},
};

/* ---- tables ---- */

#define TABLE(of, rows) .model = &(of), .aliases = (rows), .count = ARRAY_LEN(rows)

static const struct json_alias_table snapshot_identity = {TABLE(snapshot_model, identity_aliases)};

const struct json_alias_table agentuity_sandbox = {TABLE(sandbox_model, sandbox_aliases)};
const struct json_alias_table agentuity_sandbox_state = {TABLE(sandbox_model, state_aliases)};
const struct json_alias_table agentuity_sandbox_summary = {TABLE(sandbox_model, summary_aliases)};
const struct json_alias_table agentuity_execution = {TABLE(process_model, execution_aliases)};
const struct json_alias_table agentuity_job = {TABLE(process_model, job_aliases)};
const struct json_alias_table agentuity_sandbox_command = {TABLE(process_model, command_aliases)};
const struct json_alias_table agentuity_snapshot = {
	TABLE(snapshot_model, snapshot_aliases), .first = &snapshot_identity};
const struct json_alias_table agentuity_ancestor = {
	TABLE(snapshot_model, ancestor_aliases), .first = &snapshot_identity};
const struct json_alias_table agentuity_checkpoint = {TABLE(checkpoint_model, checkpoint_aliases)};
const struct json_alias_table agentuity_event = {TABLE(event_model, event_aliases)};

const struct json_alias_table *const agentuity_aliases[] = {&agentuity_sandbox,
	&agentuity_sandbox_state, &agentuity_sandbox_summary, &agentuity_execution, &agentuity_job,
	&agentuity_sandbox_command, &agentuity_snapshot, &agentuity_ancestor, &agentuity_checkpoint,
	&agentuity_event, NULL};

void agentuity_put_total(struct answer *a, struct json_writer *w, const struct op_event *event)
{
	(void)a;
	json_put_int(w, "total", event->total);
}

void agentuity_put_execution(struct json_writer *w, const struct json_alias_table *t,
	const struct http_request *req, const struct execution_view *view, const bool ignores[2])
{
	json_begin_object(w);
	json_encode_alias(w, t, view);
	agentuity_put_stream_urls(w, req, view->id, ignores);
	json_end_object(w);
}
