/* Input for a process. */
#pragma once

#include "dialect/e2b/process.h"

/* A message's "input": {"stdin": base64} or {"pty": base64}. The bytes live in the memory. */
int input_decode(const cJSON *input, struct scratch *memory, const char **bytes, size_t *len,
	struct error *e);
/* Says in envd's words that nobody reads it. */
void input_explain(struct error *e);
