#include "dialect/agentuity/encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

void agentuity_put_list(struct json_writer *w, const char *key, const char *list, size_t len)
{
	json_key(w, key);
	json_begin_array(w);
	for (size_t at = 0; at < len; at += strlen(list + at) + 1)
		json_string(w, list + at);
	json_end_array(w);
}

/* As Go writes it: "10m0s". */
static void put_duration(struct json_writer *w, const char *key, int64_t ms)
{
	char text[64];
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
	json_put_string(w, key, text);
}

static void put_resources(struct json_writer *w, const struct resources *r)
{
	char text[UNITS_TEXT_SIZE];
	json_key(w, "resources");
	json_begin_object(w);
	units_format_size(r->memory, text);
	json_put_string(w, "memory", text);
	units_format_millicores(r->cpu, text);
	json_put_string(w, "cpu", text);
	units_format_size(r->disk, text);
	json_put_string(w, "disk", text);
	json_end_object(w);
}

static void put_named(struct json_writer *w, const char *key, const char *id, const char *name)
{
	json_key(w, key);
	json_begin_object(w);
	json_put_string(w, "id", id);
	json_put_string(w, "name", name);
	json_end_object(w);
}

static void put_timeouts(struct json_writer *w, const struct sandbox_view *view)
{
	json_key(w, "timeout");
	json_begin_object(w);
	if (view->idle_ms)
		put_duration(w, "idle", view->idle_ms);
	if (view->execution_ms)
		put_duration(w, "execution", view->execution_ms);
	put_duration(w, "paused", view->paused_timeout_ms);
	json_end_object(w);
}

const char *agentuity_status(const struct sandbox_view *view)
{
	return sandbox_status_name(sandbox_apparent_status(view));
}

static void agentuity_encode_put_snapshot(struct json_writer *w, const struct sandbox_view *view)
{
	json_key(w, "snapshot");
	json_begin_object(w);
	agentuity_put_id(w, "id", "snp_", view->snapshot);
	json_put_bool(w, "public", false);
	json_key(w, "user");
	json_begin_object(w);
	json_put_string(w, "id", view->tenant);
	json_end_object(w);
	json_end_object(w);
}

/* What it has used in all; without a network nothing left it. */
static void put_usage(struct json_writer *w, const struct sandbox_view *view)
{
	json_put_int(w, "cpuTimeMs", view->cpu_us / 1000);
	json_put_int(w, "memoryByteSec", view->memory_byte_seconds);
	json_put_int(w, "networkEgressBytes", 0);
}

void agentuity_put_sandbox(struct json_writer *w, const struct sandbox_view *view)
{
	json_begin_object(w);
	agentuity_put_sandbox_fields(w, view);
	json_end_object(w);
}

void agentuity_put_sandbox_fields(struct json_writer *w, const struct sandbox_view *view)
{
	char runtime[AGENTUITY_ID_SIZE + 256];
	agentuity_put_id(w, "sandboxId", "sbx_", view->id);
	json_put_string(w, "identifier", view->id);
	json_put_string(w, "status", agentuity_status(view));
	json_put_time(w, "createdAt", view->created_ms);
	json_put_int(w, "executions", (int64_t)view->executions);
	if (view->name[0])
		json_put_string(w, "name", view->name);
	if (view->description[0])
		json_put_string(w, "description", view->description);
	json_put_string(w, "mode", view->ephemeral ? "oneshot" : "interactive");
	json_put_string(w, "region", AGENTUITY_REGION);
	snprintf(runtime, sizeof runtime, "srt_%s", view->template_name);
	put_named(w, "runtime", runtime, view->template_name);
	if (view->snapshot[0])
		agentuity_encode_put_snapshot(w, view);
	if (view->project[0])
		put_named(w, "project", view->project, view->project);
	put_named(w, "org", view->tenant, view->tenant);
	if (view->metadata[0]) {
		json_key(w, "metadata");
		json_raw(w, view->metadata);
	}
	put_resources(w, &view->resources);
	put_timeouts(w, view);
	json_put_bool(w, "networkEnabled", false);
	if (view->ended_ms)
		put_usage(w, view);
	if (view->terminates_ms)
		json_put_time(w, "terminatesAt", view->terminates_ms);
	if (view->failure[0])
		json_put_string(w, "lastError", view->failure);
}

const char *agentuity_failure(const struct execution_view *view)
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

void agentuity_put_execution(struct json_writer *w, const struct http_request *req,
	const struct execution_view *view, const bool ignores[2])
{
	bool ended = view->status > EXECUTION_RUNNING;
	agentuity_put_id(w, "executionId", "exe_", view->id);
	agentuity_put_id(w, "sandboxId", "sbx_", view->sandbox_id);
	json_put_string(w, "status", execution_status_name(view->status));
	json_put_string(w, "type", "exec");
	agentuity_put_list(w, "command", view->command, view->command_len);
	json_put_time(w, "startedAt", view->started_ms);
	if (ended) {
		json_put_int(w, "exitCode", view->exit_code);
		json_put_int(w, "durationMs", view->duration_us / 1000);
		json_put_time(w, "completedAt", view->started_ms + view->duration_us / 1000);
	}
	const char *reason = agentuity_failure(view);
	if (reason)
		json_put_string(w, "error", reason);
	if (!ignores || !ignores[0])
		agentuity_put_stream_url(w, "stdoutStreamUrl", req, view->id, 0);
	if (!ignores || !ignores[1])
		agentuity_put_stream_url(w, "stderrStreamUrl", req, view->id, 1);
	json_put_bool(w, "outputTruncated", view->truncated);
}
