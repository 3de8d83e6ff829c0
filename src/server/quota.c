#include "server/quota.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/units.h"

static int parse_count(const char *text, int64_t *ret)
{
	char *end;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return text[0] < '0' || text[0] > '9' || *end || errno ? -EINVAL : 0;
}

static const struct {
	const char *name;
	size_t offset;
	int (*parse)(const char *text, int64_t *ret);
} amounts[] = {
	{"sandboxes", offsetof(struct tenant_amounts, sandboxes), parse_count},
	{"cpu", offsetof(struct tenant_amounts, cpu), units_parse_millicores},
	{"memory", offsetof(struct tenant_amounts, memory), units_parse_size},
	{"disk", offsetof(struct tenant_amounts, disk), units_parse_size},
};

/* "name:value"; false when it is nothing of the kind, or comes a second time. */
static bool parse_amount(char *text, struct tenant_amounts *ret)
{
	char *colon = strchr(text, ':');
	if (!colon)
		return false;
	*colon = '\0';
	for (size_t i = 0; i < ARRAY_LEN(amounts); i++) {
		int64_t *at = (int64_t *)(void *)((char *)ret + amounts[i].offset);
		if (strcmp(amounts[i].name, text) == 0)
			return *at == 0 && amounts[i].parse(colon + 1, at) == 0 && *at > 0;
	}
	return false;
}

int quota_parse(const char *text, struct tenant_quota *ret, struct error *e)
{
	const char *equals = strchr(text, '=');
	*ret = (struct tenant_quota){0};
	bool ok = !equals || (equals > text && (size_t)(equals - text) < sizeof ret->tenant);
	if (ok && equals)
		snprintf(ret->tenant, sizeof ret->tenant, "%.*s", (int)(equals - text), text);
	autofree char *list = mem_copy_text(equals ? equals + 1 : text);
	char *save = NULL, *part = strtok_r(list, ",", &save);
	ok = ok && part;
	for (; ok && part; part = strtok_r(NULL, ",", &save))
		ok = parse_amount(part, &ret->limit);
	if (ok)
		return 0;
	return error_set(e, ERROR_INVALID_REQUEST,
		"--quota: '%s' is not [TENANT=]sandboxes:N,cpu:CPU,memory:SIZE,disk:SIZE", text);
}
