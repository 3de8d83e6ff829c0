#include "box/template.h"

#include <string.h>

static const struct template_info templates[] = {
	{"base",
		"The host's /usr below a private, writable layer; user 'user'; nothing else of the host",
		true},
	{NULL, NULL, false},
};

const struct template_info *template_at(size_t index)
{
	return &templates[index];
}

const struct template_info *template_find(const char *name)
{
	for (const struct template_info *t = templates; t->name; t++)
		if (name ? strcmp(t->name, name) == 0 : t->is_default)
			return t;
	return NULL;
}
