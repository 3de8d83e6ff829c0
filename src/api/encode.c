#include "api/encode.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"

void encode_milliseconds(struct json_writer *w, const char *key, int64_t us)
{
	char text[32];
	snprintf(text, sizeof text, "%lld.%03d", (long long)(us / 1000), (int)(us % 1000));
	json_key(w, key);
	json_raw(w, text);
}

/* The record is a view's. */
static void api_encode_put_volumes(struct json_writer *w, const struct field *f, const void *record)
{
	const struct warden_volume *volumes = ((const struct sandbox_view *)record)->volumes;
	(void)f;
	if (!volumes || !volumes[0].id[0])
		return;
	json_key(w, "volumes");
	json_begin_array(w);
	for (size_t i = 0; i < WARDEN_VOLUMES_MAX && volumes[i].id[0]; i++) {
		json_begin_object(w);
		json_put_string(w, "volume", volumes[i].id);
		json_put_string(w, "path", volumes[i].path);
		json_put_bool(w, "readOnly", volumes[i].read_only);
		json_end_object(w);
	}
	json_end_array(w);
}

void encode_sandbox(struct json_writer *w, const struct sandbox_view *view)
{
	json_begin_object(w);
	json_encode(w, &sandbox_model, view, api_encode_put_volumes);
	json_end_object(w);
}

static void put_signal(struct json_writer *w, int signal)
{
	char name[32];
	const char *abbreviation = sigabbrev_np(signal);
	if (abbreviation)
		snprintf(name, sizeof name, "SIG%s", abbreviation);
	else
		snprintf(name, sizeof name, "SIGRT%d", signal);
	json_put_string(w, "signal", name);
}

void encode_execution(struct json_writer *w, const struct execution_view *view)
{
	bool ended = view->status > EXECUTION_RUNNING;
	json_put_string(w, "executionId", view->id);
	json_put_string(w, "sandboxId", view->sandbox_id);
	json_put_string(w, "status", execution_status_name(view->status));
	if (ended)
		json_put_int(w, "exitCode", view->exit_code);
	if (ended && view->signal)
		put_signal(w, view->signal);
	json_put_bool(w, "timedOut", view->timed_out);
	json_put_bool(w, "oomKilled", view->oom_killed);
	json_put_bool(w, "outputTruncated", view->truncated);
	json_put_time(w, "startedAt", view->started_ms);
	encode_milliseconds(w, "durationMs", view->duration_us);
}

static void api_encode_put_command(struct json_writer *w, const struct execution_view *view)
{
	json_key(w, "command");
	json_begin_array(w);
	for (size_t at = 0; at < view->command_len; at += strlen(view->command + at) + 1)
		json_string(w, view->command + at);
	json_end_array(w);
}

static void put_stream(struct json_writer *w, const char *key, uint64_t length, uint64_t kept)
{
	json_key(w, key);
	json_begin_object(w);
	json_put_int(w, "length", (int64_t)length);
	json_put_int(w, "kept", (int64_t)kept);
	json_end_object(w);
}

static void api_encode_put_end(struct json_writer *w, const struct execution_view *view)
{
	json_put_time(w, "endedAt", view->started_ms + view->duration_us / 1000);
	json_put_int(w, "exitCode", view->exit_code);
	if (view->signal)
		put_signal(w, view->signal);
	encode_milliseconds(w, "cpuMs", view->cpu_us);
	json_put_int(w, "peakMemory", view->peak);
}

static const char *api_encode_job_status(const struct execution_view *view)
{
	switch (view->status) {
	case EXECUTION_QUEUED:
		return "pending";
	case EXECUTION_RUNNING:
		return "running";
	case EXECUTION_COMPLETED:
		return view->exit_code == 0 ? "completed" : "failed";
	case EXECUTION_CANCELLED:
		return "cancelled";
	default:
		return "failed";
	}
}

/* A job's status says how it went. */
static const char *api_encode_status_of(const struct execution_view *view)
{
	return view->kind == EXECUTION_JOB ? api_encode_job_status(view)
					   : execution_status_name(view->status);
}

void encode_process(struct json_writer *w, const struct execution_view *view)
{
	json_put_string(w, "id", view->id);
	json_put_string(w, "sandboxId", view->sandbox_id);
	json_put_string(w, "kind", execution_kind_name(view->kind));
	json_put_string(w, "name", view->name);
	json_put_int(w, "pid", view->pid);
	json_put_string(w, "status", api_encode_status_of(view));
	api_encode_put_command(w, view);
	json_put_string(w, "cwd", view->cwd);
	json_put_string(w, "user", view->user);
	json_put_bool(w, "pty", view->terminal);
	json_put_time(w, "startedAt", view->started_ms);
	encode_milliseconds(w, "durationMs", view->duration_us);
	if (view->status > EXECUTION_RUNNING)
		api_encode_put_end(w, view);
	json_put_bool(w, "timedOut", view->timed_out);
	json_put_bool(w, "oomKilled", view->oom_killed);
	json_put_bool(w, "outputTruncated", view->truncated);
	put_stream(w, "stdout", view->length[0], view->stored[0]);
	put_stream(w, "stderr", view->length[1], view->stored[1]);
	json_key(w, "stdin");
	json_begin_object(w);
	json_put_bool(w, "open", view->input_open);
	json_put_int(w, "offset", (int64_t)view->input_offset);
	json_end_object(w);
}

static const char *state_of(char letter)
{
	switch (letter) {
	case 'R':
		return "running";
	case 'S':
	case 'I':
		return "sleeping";
	case 'D':
		return "waiting"; /* for a device */
	case 'T':
	case 't':
		return "stopped";
	default:
		return "exited";
	}
}

void encode_usage(struct json_writer *w, const struct execution_usage *usage)
{
	json_put_string(w, "state", state_of(usage->state));
	json_put_string(w, "currentDirectory", usage->cwd);
	encode_milliseconds(w, "cpuMs", usage->cpu_us);
	json_put_int(w, "memory", usage->memory);
	json_put_int(w, "peakMemory", usage->peak);
	json_put_int(w, "processes", usage->processes);
}

void encode_output(struct json_writer *w, const char *key, const struct buf *bytes, bool base64)
{
	json_key(w, key);
	if (base64)
		json_base64(w, bytes->data, bytes->len);
	else
		json_string_n(w, bytes->data ? bytes->data : "", bytes->len);
}

void encode_snapshot(struct json_writer *w, const struct snapshot_view *view)
{
	json_put_string(w, "id", view->id);
	json_put_string(w, "name", view->name);
	json_put_string(w, "tag", view->tag);
	json_put_string(w, "description", view->description);
	json_put_string(w, "status", view->deleted ? "deleted" : view->lost ? "lost" : "ready");
	json_put_string(w, "parent", view->parent);
	json_put_string(w, "sandboxId", view->sandbox);
	json_put_string(w, "template", view->template_name);
	json_put_time(w, "createdAt", view->created_ms);
	if (view->env_len)
		json_put_env(w, "env", view->env, view->env_len);
	if (view->metadata[0]) {
		json_key(w, "metadata");
		json_raw(w, view->metadata);
	}
	if (view->files >= 0) { /* otherwise they are being counted */
		json_put_int(w, "sizeBytes", view->bytes);
		json_put_int(w, "fileCount", view->files);
	}
}
