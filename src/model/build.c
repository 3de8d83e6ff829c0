#include "model/build.h"

#include <stdio.h>

static const char *const status_names[BUILD_STATUS_COUNT] = {
	"waiting", "building", "ready", "failed", "cancelled"};

const char *build_status_name(enum build_status status)
{
	return status_names[status];
}

void build_step_name(int step, char out[16])
{
	if (step > 0)
		snprintf(out, 16, "%d", step);
	else
		snprintf(out, 16, "%s", step == BUILD_STEP_BASE ? "base" : "finalize");
}
