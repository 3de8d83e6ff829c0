#include "model/build.h"

#include <stdio.h>

#include "base/cleanup.h"

const char *const build_status_names[] = {
	"waiting", "building", "ready", "failed", "cancelled", NULL};

const char *build_status_name(enum build_status status)
{
	return build_status_names[status];
}

void build_step_name(int64_t step, char out[FIELD_CODE_SIZE])
{
	if (step > 0)
		snprintf(out, FIELD_CODE_SIZE, "%d", (int)step);
	else
		snprintf(out, FIELD_CODE_SIZE, "%s", step == BUILD_STEP_BASE ? "base" : "finalize");
}

/* ---- fields ---- */

static bool build_has_reason(const void *view)
{
	return ((const struct build_view *)view)->reason[0];
}

#define AT(KIND, member) FIELD_AT(KIND, struct build_view, member)
#define FIELD_TOLD       (FIELD_SHOWN | FIELD_OMIT_EMPTY)

/* In the order of the answer. */
/* clang-format off */
static const struct field build_fields[] = {
	{.name = "id", AT(TEXT, id), .flags = FIELD_SHOWN},
	{.name = "templateId", AT(TEXT, template_id), .flags = FIELD_SHOWN},
	{.name = "template", AT(TEXT, name), .flags = FIELD_SHOWN},
	{.name = "status", AT(ENUM, status), .flags = FIELD_SHOWN, .names = build_status_names},
	{.name = "reason", AT(TEXT, reason), .flags = FIELD_TOLD,
		.about = "Why it did not become ready"},
	{.name = "failedStep", AT(CODE, failed_step), .flags = FIELD_SHOWN,
		.shown_if = build_has_reason, .format = build_step_name,
		.about = "base, the number of a step from 1 on, or finalize"},
	{.name = "from", AT(TEXT, from), .flags = FIELD_TOLD,
		.about = "What it began with: a template, or where an archive came from"},
	{.name = "digest", AT(TEXT, digest), .flags = FIELD_TOLD,
		.about = "Of an imported image's manifest"},
	{.name = "tags", .kind = FIELD_OWN, .flags = FIELD_SHOWN},
	{.name = "createdAt", AT(TIME, created_ms), .flags = FIELD_SHOWN},
	{.name = "startedAt", AT(TIME, started_ms), .flags = FIELD_TOLD},
	{.name = "endedAt", AT(TIME, ended_ms), .flags = FIELD_TOLD},
	{.name = "size", AT(INTEGER, bytes), .flags = FIELD_SHOWN},
	{.name = "logEntries", AT(COUNT, log_entries), .flags = FIELD_SHOWN},
	{.name = "user", AT(TEXT, config.user), .flags = FIELD_TOLD},
	{.name = "workdir", AT(TEXT, config.workdir), .flags = FIELD_TOLD},
	{.name = "env", AT(ENV, config.env), .flags = FIELD_SHOWN},
	{.name = "start", AT(LIST, config.start), .flags = FIELD_TOLD},
	{.name = "ready", AT(TEXT, config.ready), .flags = FIELD_TOLD},
	{.name = "entrypoint", AT(LIST, config.entrypoint), .flags = FIELD_TOLD,
		.about = "As the image or Dockerfile had it; nothing acts on it"},
	{.name = "command", AT(LIST, config.command), .flags = FIELD_TOLD, .about = "The same"},
	{.name = "ports", AT(LIST, config.ports), .flags = FIELD_TOLD, .about = "The same"},
};

#define LOG(KIND, member) FIELD_AT(KIND, struct build_log_entry, member)

static const struct field log_fields[] = {
	{.name = "time", LOG(TIME, time_ms), .flags = FIELD_SHOWN},
	{.name = "level", LOG(TEXT, level), .flags = FIELD_SHOWN},
	{.name = "step", LOG(CODE, step), .flags = FIELD_SHOWN, .format = build_step_name},
	{.name = "message", LOG(TEXT, message), .flags = FIELD_SHOWN},
};
/* clang-format on */

const struct field_table build_model = {
	build_fields, ARRAY_LEN(build_fields), sizeof(struct build_view)};
const struct field_table build_log_model = {
	log_fields, ARRAY_LEN(log_fields), sizeof(struct build_log_entry)};
