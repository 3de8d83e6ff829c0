/* What a sandbox is asked to be, in Agentuity's words. */
#pragma once

#include "dialect/agentuity/routes.h"
#include "op/exec.h"
#include "model/file.h"

/* What comes after the sandbox itself. */
struct agentuity_create {
	const char *const *argv; /* a command that is run in it; NULL: none */
	const char *stdin_id;    /* of a stream that was announced; NULL: none */
	bool ignores[2];         /* of stdout and stderr no address is wanted */
	const struct file_spec *files;
	size_t file_count;
};

/* Strings are borrowed from the body, arrays belong to the scratch. */
int agentuity_decode_create(const cJSON *body, struct scratch *memory, struct sandbox_spec *spec,
	struct agentuity_create *create, struct error *e);
/* Makes the directory that is $HOME: no template comes with it. */
extern const struct op_first agentuity_home;
/* {stdout, stderr, stdin, timestamps}; stdin_id may be NULL: there is none. */
int agentuity_decode_streams(
	const cJSON *value, bool ignores[2], const char **stdin_id, struct error *e);
/* [{path, content}], the content as base64; more follow those that are there. */
int agentuity_decode_files(const cJSON *list, const char *field, struct scratch *memory,
	const struct file_spec **files, size_t *count, struct error *e);
/* Names of packages; an empty list is none. */
int agentuity_decode_names(const cJSON *list, const char *field, struct scratch *memory,
	const char *const **ret, struct error *e);
int agentuity_decode_argv(const cJSON *list, const char *field, struct scratch *memory,
	const char *const **ret, struct error *e);
