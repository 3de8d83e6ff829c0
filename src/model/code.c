#include "model/code.h"

#include <strings.h>

#define ALIASES_MAX 4

static const struct {
	const char *name;
	const char *aliases[ALIASES_MAX];
} languages[CODE_LANGUAGE_COUNT] = {
	[CODE_PYTHON] = {"python", {"py", "python3", "ipython"}},
	[CODE_JAVASCRIPT] = {"javascript", {"js", "node", "typescript", "ts"}},
	[CODE_BASH] = {"bash", {"sh", "shell"}},
};

const char *code_language_name(enum code_language language)
{
	return languages[language].name;
}

static bool language_is_called(enum code_language language, const char *name)
{
	const char *const *aliases = languages[language].aliases;
	if (strcasecmp(languages[language].name, name) == 0)
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
