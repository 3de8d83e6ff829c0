#include "op/admission.h"

#include <string.h>

#include "op/op_core.h"

static bool status_is_awake(enum sandbox_status status)
{
	return status == SANDBOX_CREATING || status == SANDBOX_IDLE || status == SANDBOX_RUNNING;
}

static bool status_is_asleep(enum sandbox_status status)
{
	return status == SANDBOX_PAUSED || status == SANDBOX_STOPPING ||
	       status == SANDBOX_SUSPENDED;
}

bool op_is_reachable(const struct ops *ops, const char *id)
{
	struct sandbox_view view;
	const struct sandbox *s = sandbox_find_any(ops->box, id);
	if (!s)
		return false;
	sandbox_view(s, &view);
	return !view.ending && (status_is_awake(view.status) ||
				       (view.auto_resume && status_is_asleep(view.status)));
}

const char *op_tenant_of(const struct ops *ops, const char *id)
{
	struct sandbox_view view;
	const struct sandbox *s = sandbox_find_any(ops->box, id);
	if (!s)
		return NULL;
	sandbox_view(s, &view);
	return view.tenant;
}

bool op_find_named(const struct ops *ops, const char *tenant, const char *name, char ret[ID_SIZE])
{
	struct sandbox_view view;
	const struct sandbox *s = name[0] ? sandbox_find_named(ops->box, tenant, name) : NULL;
	if (!s)
		return false;
	sandbox_view(s, &view);
	memcpy(ret, view.id, ID_SIZE);
	return true;
}

bool op_find_matching(const struct ops *ops,
	bool (*matches)(void *arg, const char *id, const char *tenant), void *arg,
	char ret[ID_SIZE])
{
	struct sandbox_view view;
	const struct sandbox *s = sandbox_search(ops->box, matches, arg);
	if (!s)
		return false;
	sandbox_view(s, &view);
	memcpy(ret, view.id, ID_SIZE);
	return true;
}
