/* Stdin of a command that is run in a new sandbox, as a stream of its own. */
#pragma once

#include "dialect/agentuity/routes.h"

/* The stream was announced, by this tenant, and nobody has it: what comes goes to the execution. */
int input_attach(struct agentuity *d, const char *tenant, const char *id, const char *execution,
	struct error *e);
/* Forgets those that no request feeds. */
void input_stop(struct agentuity *d);
