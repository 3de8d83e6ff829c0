#include "model/sandbox.h"

#include <assert.h>

#include "base/cleanup.h"
#include "model/check.h"

#define YEAR_MS      (INT64_C(365) * 24 * 3600 * 1000)
#define PATH_LEN_MAX 4095
#define ENV_MAX      1000
#define METADATA_MAX (64 * 1024)

static_assert(offsetof(struct sandbox_record, settings) == 0, "a row's place is one for both");

const char *const sandbox_status_names[] = {
	[SANDBOX_CREATING] = "creating",
	[SANDBOX_IDLE] = "idle",
	[SANDBOX_RUNNING] = "running",
	[SANDBOX_PAUSED] = "paused",
	[SANDBOX_STOPPING] = "stopping",
	[SANDBOX_SUSPENDED] = "suspended",
	[SANDBOX_TERMINATED] = "terminated",
	[SANDBOX_FAILED] = "failed",
	[SANDBOX_DELETED] = "deleted",
	NULL,
};

const char *const sandbox_expiry_names[] = {"destroy", "pause", "suspend", NULL};

const char *const sandbox_previews_names[] = {"private", "public", "token", NULL};

#define AT(KIND, member) FIELD_AT(KIND, struct sandbox_record, member)
#define CHARS(member)    FIELD_CHARS_AT(struct sandbox_record, member)

/* In the order of the answer. */
/* clang-format off */
static const struct field sandbox_fields[] = {
	{.name = "id", CHARS(id), .flags = FIELD_SHOWN | FIELD_KEY, .column = "id", .title = "id"},
	{.name = "name", AT(TEXT, name), .flags = FIELD_SETTING, .max = 63, .check = check_name,
		.column = "name", .title = "name", .letter = 'n', .option = "name", .value = "NAME",
		.help = "a name that stands for its id", .about = "Empty is none"},
	{.name = "description", AT(TEXT, description), .flags = FIELD_SETTING, .max = 1024,
		.column = "description", .title = "description", .option = "description",
		.value = "TEXT", .help = "a note for people"},
	{.name = "status", AT(ENUM, status), .flags = FIELD_SHOWN, .names = sandbox_status_names,
		.missing = "failed", .column = "status", .title = "status"},
	{.name = "statusReason", CHARS(failure), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.column = "failure", .title = "reason", .about = "Why it has failed"},
	{.name = "template", AT(TEXT, template_name),
		.flags = FIELD_CREATE | FIELD_SHOWN | FIELD_NOT_EMPTY | FIELD_FIXED, .max = 257,
		.column = "template", .title = "template", .letter = 't', .option = "template",
		.value = "NAME", .help = "what its disk starts from; see: bunker templates"},
	{.name = "snapshot", CHARS(snapshot), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY | FIELD_FIXED,
		.column = "snapshot", .about = "The id of the snapshot its disk began with"},
	{.name = "parent", CHARS(parent), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY | FIELD_FIXED,
		.column = "parent", .about = "The id of the sandbox it is a fork of"},
	{.name = "volumes", .kind = FIELD_OWN, .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY},
	{.name = "user", AT(TEXT, user),
		.flags = FIELD_CREATE | FIELD_SHOWN | FIELD_NOT_EMPTY | FIELD_FIXED, .max = 63,
		.check = check_user, .column = "user", .title = "user", .letter = 'u',
		.option = "user", .value = "NAME", .help = "run as this user of the sandbox"},
	{.name = "workdir", AT(TEXT, workdir),
		.flags = FIELD_CREATE | FIELD_SHOWN | FIELD_NOT_EMPTY | FIELD_FIXED,
		.max = PATH_LEN_MAX, .check = check_absolute_path, .column = "workdir",
		.title = "workdir", .letter = 'w', .option = "workdir", .value = "PATH",
		.help = "where commands start", .about = "Empty is the user's home"},
	{.name = "createdAt", AT(TIME, created_ms), .flags = FIELD_SHOWN | FIELD_FIXED,
		.column = "created_ms", .title = "created"},
	{.name = "lastActiveAt", AT(TIME, last_active_ms), .flags = FIELD_SHOWN, .title = "last active",
		.about = "When a command or file write last began or ended"},
	{.name = "expiresAt", AT(TIME, expires_ms), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.title = "expires",
		.about = "When the next of its times is up if nothing changes: idle, lease or paused"},
	{.name = "terminatesAt", AT(TIME, terminates_ms), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.title = "terminates", .about = "The same, for what ends it"},
	{.name = "leaseEndsAt", AT(TIME, lease_end_ms), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.column = "lease_end_ms", .title = "lease ends"},
	{.name = "pausedAt", AT(TIME, paused_ms), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.column = "paused_ms", .title = "paused",
		.about = "Since when it is paused, suspended or failed"},
	{.name = "endedAt", AT(TIME, ended_ms), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY | FIELD_FIXED,
		.column = "ended_ms", .title = "ended"},
	{.name = "endedBy", AT(TEXT, ended_by), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY | FIELD_FIXED,
		.column = "ended_by", .title = "ended by"},
	{.name = "bootId", CHARS(boot_id), .flags = FIELD_SHOWN, .column = "boot_id", .title = "boot id",
		.about = "Of its latest boot; inside, /proc/sys/kernel/random/boot_id"},
	{.name = "startupMs", AT(MICROS, startup_us), .flags = FIELD_SHOWN, .column = "startup_us",
		.title = "startup",
		.about = "From the request until the sandbox was ready and its files were written; near zero when one was taken from the pool"},
	{.name = "resources.memory", AT(BYTES, resources.memory),
		.flags = FIELD_CREATE | FIELD_SHOWN | FIELD_FIXED, .min = 16 << 20,
		.max = INT64_C(1) << 46, .column = "memory", .title = "memory", .option = "memory",
		.value = "SIZE", .help = "memory limit, such as 512Mi"},
	{.name = "resources.cpu", AT(CPU, resources.cpu), .flags = FIELD_CREATE | FIELD_SHOWN | FIELD_FIXED,
		.min = 10, .max = 1024000, .column = "cpu", .title = "cpu", .option = "cpu",
		.value = "CORES", .help = "CPU limit, such as 500m or 2"},
	{.name = "resources.pids", AT(INTEGER, resources.pids),
		.flags = FIELD_CREATE | FIELD_SHOWN | FIELD_FIXED, .min = 2, .max = 1 << 22,
		.column = "pids", .title = "pids", .option = "pids", .value = "N",
		.help = "limit of processes and threads"},
	{.name = "resources.openFiles", AT(INTEGER, resources.open_files),
		.flags = FIELD_CREATE | FIELD_SHOWN | FIELD_FIXED, .min = 16, .max = 1 << 20,
		.column = "open_files", .title = "open files", .option = "open-files", .value = "N",
		.help = "limit of open files per process"},
	{.name = "resources.disk", AT(BYTES, resources.disk),
		.flags = FIELD_CREATE | FIELD_SHOWN | FIELD_OMIT_EMPTY | FIELD_FIXED,
		.min = 1 << 20, .max = INT64_C(1) << 50, .column = "disk", .title = "disk",
		.option = "disk", .value = "SIZE",
		.help = "limit of what it writes to its disk, such as 2Gi",
		.about = "Absent when the server cannot limit it"},
	{.name = "timeout.idle", AT(DURATION, idle_ms), .flags = FIELD_SETTING | FIELD_OMIT_EMPTY,
		.max = YEAR_MS, .column = "idle_ms", .title = "idle timeout",
		.option = "idle-timeout", .value = "TIME",
		.help = "end it after so long without use"},
	{.name = "timeout.execution", AT(DURATION, execution_ms), .flags = FIELD_SETTING | FIELD_OMIT_EMPTY,
		.max = YEAR_MS, .column = "execution_ms", .title = "execution timeout",
		.option = "timeout", .value = "TIME",
		.help = "limit of each execution, such as 30s or 5m"},
	{.name = "timeout.paused", AT(DURATION, paused_timeout_ms),
		.flags = FIELD_SETTING | FIELD_OMIT_EMPTY, .max = YEAR_MS,
		.column = "paused_timeout_ms", .title = "paused timeout",
		.option = "paused-timeout", .value = "TIME",
		.help = "destroy it when it was paused for so long"},
	{.name = "timeout.lease", AT(DURATION, lease_ms), .flags = FIELD_SETTING | FIELD_OMIT_EMPTY,
		.max = YEAR_MS, .column = "lease_ms", .title = "lease", .option = "lease",
		.value = "TIME",
		.help = "end it so long from now, whatever it does; see: bunker extend"},
	{.name = "onIdle", AT(ENUM, on_idle), .flags = FIELD_SETTING, .names = sandbox_expiry_names,
		.column = "on_idle", .title = "on idle", .option = "on-idle", .value = "WHAT",
		.help = "what that does: destroy, pause or suspend"},
	{.name = "onLease", AT(ENUM, on_lease), .flags = FIELD_SETTING, .names = sandbox_expiry_names,
		.column = "on_lease", .title = "on lease", .option = "on-lease", .value = "WHAT",
		.help = "what that does: destroy, pause or suspend"},
	{.name = "autoResume", AT(BOOL, auto_resume), .flags = FIELD_SETTING, .column = "auto_resume",
		.option = "auto-resume", .help = "the next call wakes it when it is paused"},
	{.name = "previews", AT(ENUM, previews), .flags = FIELD_SETTING,
		.names = sandbox_previews_names, .missing = "private", .column = "previews",
		.title = "previews", .option = "previews", .value = "WHO",
		.help = "who may see its ports without a key: private, public or token",
		.about = "Who may see what listens on its ports without a key: with `private` whoever holds a token of the port, with `public` everyone, with `token` whoever holds the sandbox's traffic token, too"},
	{.name = "previewHost", AT(TEXT, preview_host), .flags = FIELD_SETTING | FIELD_OMIT_EMPTY,
		.max = PREVIEW_HOST_MAX, .check = check_preview_host, .column = "preview_host",
		.title = "preview host", .option = "preview-host", .value = "HOST",
		.help = "what Host says to its servers; ${PORT} is the port",
		.about = "What Host says to what listens on its ports; `${PORT}` stands for the port. Empty is the name that the client used"},
	{.name = "network.mode", AT(ENUM, network.mode), .flags = FIELD_CREATE | FIELD_SHOWN,
		.names = network_mode_names, .column = "network", .title = "network",
		.option = "network", .value = "MODE",
		.help = "what it may reach: none, open for the public internet, allow or deny with lists",
		.about = "What it may reach; changed by PUT /v1/sandboxes/{id}/network"},
	{.name = "network.allow", AT(LIST, network.allow),
		.flags = FIELD_CREATE | FIELD_SHOWN | FIELD_OMIT_EMPTY, .max = NETWORK_LIST_MAX,
		.column = "network_allow", .title = "allow", .option = "allow", .value = "RULE,…",
		.help = "reach these names, addresses and presets; repeatable; alone it means --network allow",
		.about = "Names, `*.name`, addresses, ranges, each with `:port` or without, and presets that it may reach; it wins over `deny`"},
	{.name = "network.deny", AT(LIST, network.deny),
		.flags = FIELD_CREATE | FIELD_SHOWN | FIELD_OMIT_EMPTY, .max = NETWORK_LIST_MAX,
		.column = "network_deny", .title = "deny", .option = "deny", .value = "RULE,…",
		.help = "with --network deny: do not reach these names and addresses; repeatable",
		.about = "The same without presets, of what it may not reach in the mode `deny`"},
	{.name = "network.rules", AT(HEADERS, network.rules),
		.flags = FIELD_CREATE | FIELD_SHOWN | FIELD_OMIT_EMPTY, .max = RULES_HOSTS_MAX,
		.column = "network_rules", .title = "rule", .option = "header",
		.value = "'HOST NAME: VALUE'",
		.help = "add this header to its requests to a host; ${secret:NAME} stands for a secret; repeatable",
		.about = "Headers that are added to its requests to a host that it may reach, in place of its own of that name"},
	{.name = "env", AT(ENV, env), .flags = FIELD_CREATE | FIELD_SHOWN, .max = ENV_MAX, .column = "env",
		.title = "env"},
	{.name = "metadata", AT(JSON, metadata), .flags = FIELD_SETTING, .max = METADATA_MAX,
		.missing = "{}", .column = "metadata", .title = "metadata"},
	{.name = "project", AT(TEXT, project), .flags = FIELD_CREATE | FIELD_SHOWN | FIELD_FIXED,
		.max = 128, .column = "project", .title = "project", .option = "project",
		.value = "NAME", .help = "the project it belongs to"},
	{.name = "executions", AT(INTEGER, executions), .flags = FIELD_SHOWN | FIELD_FIXED,
		.column = "executions", .title = "executions", .about = "Commands started so far"},
	{.name = "isolation", .kind = FIELD_CONSTANT, .flags = FIELD_SHOWN, .missing = "namespaces",
		.title = "isolation"},
	/* Kept, but not shown by the native API. */
	{AT(TEXT, tenant), .flags = FIELD_FIXED, .column = "tenant"},
	{AT(TEXT, packed_volumes), .flags = FIELD_FIXED, .column = "volumes"},
	{AT(BOOL, ephemeral), .flags = FIELD_FIXED, .column = "ephemeral"},
	{AT(TEXT, port_grants), .column = "port_grants"},
	{AT(ENV, placeholders), .column = "placeholders"},
	{AT(LIST, authority), .column = "authority"},
	{CHARS(build), .flags = FIELD_FIXED, .column = "build"},
	{CHARS(root), .flags = FIELD_FIXED, .column = "root"},
	{CHARS(layer), .flags = FIELD_FIXED, .column = "layer"},
	{CHARS(checkpoint), .column = "checkpoint"},
	{AT(INTEGER, cpu_us), .column = "cpu_us"},
	{AT(INTEGER, memory_byte_seconds), .column = "memory_byte_seconds"},
	{AT(INTEGER, network_in), .column = "network_in"},
	{AT(INTEGER, network_out), .column = "network_out"},
	{AT(INTEGER, events), .column = "events",
		.computed = "coalesce((SELECT max(number) FROM events WHERE sandbox = sandboxes.id), 0)"},
};
/* clang-format on */

const struct field_table sandbox_model = {
	sandbox_fields, ARRAY_LEN(sandbox_fields), sizeof(struct sandbox_record)};

enum sandbox_status sandbox_apparent_status(const struct sandbox_view *view)
{
	if (!view->ephemeral || view->status != SANDBOX_IDLE)
		return view->status;
	return view->executions ? SANDBOX_RUNNING : SANDBOX_CREATING;
}

int64_t sandbox_place(const void *record, const char **id)
{
	const struct sandbox_record *sandbox = record;
	*id = sandbox->id;
	return sandbox->created_ms;
}
