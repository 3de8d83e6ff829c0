#include "model/execution.h"

#include <string.h>

static const char *const status_names[EXECUTION_STATUS_COUNT] = {
	"queued", "running", "completed", "failed", "timeout", "cancelled"};

const char *execution_status_name(enum execution_status status)
{
	return status_names[status];
}

enum execution_status execution_status_of(const char *name)
{
	for (int i = 0; i < EXECUTION_STATUS_COUNT; i++)
		if (strcmp(status_names[i], name) == 0)
			return (enum execution_status)i;
	return EXECUTION_FAILED;
}

static const char *const kind_names[EXECUTION_KIND_COUNT] = {"command", "process", "job"};

const char *execution_kind_name(enum execution_kind kind)
{
	return kind_names[kind];
}
