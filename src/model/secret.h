/* A secret as it is stored and shown: never its value. Also how texts name secrets. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/field.h"
#include "base/id.h"

#define SECRETS_PER_TENANT 1000
#define SECRET_NAME_MAX    64
#define SECRET_VALUE_MAX   16384
#define SECRET_REFERENCE   "${secret:" /* then a name, then '}' */

struct secret_record {
	char id[ID_SIZE];
	const char *tenant, *name;
	int64_t created_ms, updated_ms;
	int64_t sandboxes;     /* that have a rule which names it */
	bool readable;         /* else it was sealed under another key */
	const char *value;     /* of a request */
	struct strings sealed; /* as secret/seal.h makes it */
};

extern const struct field_table secret_model;

/* A letter or '_', then letters, digits, '_' and '-'. */
int secret_check_name(const char *text, const char *field, struct error *e);
/* A value that can stand in a header: no control character but a tab. */
int secret_check_value(const char *text, const char *field, struct error *e);
/*
 * Finds the next "${secret:NAME}" from *at on: sets *begin to its first byte, *at behind it, and
 * name. Returns 1, 0 if there is no more, -EINVAL if one is malformed.
 */
int secret_find_reference(const char **at, const char **begin, char name[SECRET_NAME_MAX + 1]);
