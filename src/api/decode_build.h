/* Bodies about builds as the core wants them; see decode.h. */
#pragma once

#include "base/scratch.h"
#include "json/json.h"
#include "model/build.h"

int decode_build(const cJSON *body, struct scratch *memory, struct build_new *what,
	struct build_spec *ret, struct error *e);
/* "name" or "name:tag". */
int decode_template_name(
	const char *text, struct scratch *memory, struct build_new *ret, struct error *e);
/* NULL-terminated; a NULL list leaves *ret alone. */
int decode_strings(const cJSON *list, const char *field, struct scratch *memory,
	const char *const **ret, struct error *e);
