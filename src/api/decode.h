/*
 * Request bodies as the core wants them. The tables say what there is; what is found is checked
 * here, once, and named in the error. Strings are borrowed from the JSON tree, arrays belong to the
 * scratch.
 */
#pragma once

#include "base/scratch.h"
#include "box/execution.h"
#include "box/files.h"
#include "box/sandbox.h"
#include "http/json.h"

/* What an exec takes; a run takes this and all of create. */
struct exec_options {
	struct execution_spec spec;
	struct file_spec *files;
	size_t file_count;
	bool base64; /* how output is given back */
};

int decode_create(
	const cJSON *body, struct scratch *memory, struct sandbox_spec *ret, struct error *e);
int decode_change(
	const cJSON *body, struct scratch *memory, struct sandbox_change *ret, struct error *e);
int decode_exec(
	const cJSON *body, struct scratch *memory, struct exec_options *ret, struct error *e);
int decode_run(const cJSON *body, struct scratch *memory, struct sandbox_spec *create,
	struct exec_options *exec, struct error *e);
/* "utf8" or "base64"; NULL is utf8. */
int decode_encoding(const char *text, const char *field, bool *base64, struct error *e);
