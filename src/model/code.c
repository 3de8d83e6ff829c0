#include "model/code.h"

#include <strings.h>

#include "base/cleanup.h"

#define ALIASES_MAX 4

static const char *const language_names[] = {
	[CODE_PYTHON] = "python", [CODE_JAVASCRIPT] = "javascript", [CODE_BASH] = "bash", NULL};

static const char *const language_aliases[CODE_LANGUAGE_COUNT][ALIASES_MAX] = {
	[CODE_PYTHON] = {"py", "python3", "ipython"},
	[CODE_JAVASCRIPT] = {"js", "node", "typescript", "ts"},
	[CODE_BASH] = {"sh", "shell"},
};

const char *code_language_name(enum code_language language)
{
	return language_names[language];
}

static bool language_is_called(enum code_language language, const char *name)
{
	const char *const *aliases = language_aliases[language];
	if (strcasecmp(language_names[language], name) == 0)
		return true;
	for (size_t i = 0; i < ALIASES_MAX && aliases[i]; i++)
		if (strcasecmp(aliases[i], name) == 0)
			return true;
	return false;
}

int code_language_of(const char *name, enum code_language *ret, struct error *e)
{
	for (int i = 0; i < CODE_LANGUAGE_COUNT; i++) {
		if (!language_is_called((enum code_language)i, name))
			continue;
		*ret = (enum code_language)i;
		return 0;
	}
	return error_set_field(e, ERROR_INVALID_FIELD, "language",
		"the language '%.32s' is not available; there are python, javascript, typescript (run as JavaScript) and bash",
		name);
}

/* ---- fields ---- */

static const char *const context_status_names[] = {[CODE_CONTEXT_RUNNING] = "running",
	[CODE_CONTEXT_IDLE] = "idle",
	[CODE_CONTEXT_STOPPED] = "stopped",
	NULL};

#define AT(KIND, member) FIELD_AT(KIND, struct code_context_view, member)

/* In the order of the answer. */
/* clang-format off */
static const struct field context_fields[] = {
	{.name = "id", AT(TEXT, id), .flags = FIELD_SHOWN},
	{.name = "language", AT(ENUM, language), .flags = FIELD_SHOWN, .names = language_names},
	{.name = "cwd", AT(TEXT, cwd), .flags = FIELD_SHOWN, .about = "Where its interpreter began"},
	{.name = "user", AT(TEXT, user), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.about = "As whom it runs; none: the sandbox's user"},
	{.name = "default", AT(BOOL, is_default), .flags = FIELD_SHOWN,
		.about = "The one that stands for its language, for its user"},
	{.name = "status", AT(ENUM, status), .flags = FIELD_SHOWN, .names = context_status_names},
	{.name = "version", AT(TEXT, version), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.about = "Of the interpreter; not before its first start"},
	{.name = "waiting", AT(INTEGER, waiting), .flags = FIELD_SHOWN,
		.about = "Runs behind the one under way"},
	{.name = "createdAt", AT(TIME, created_ms), .flags = FIELD_SHOWN},
};
/* clang-format on */

const struct field_table code_context_model = {
	context_fields, ARRAY_LEN(context_fields), sizeof(struct code_context_view)};
