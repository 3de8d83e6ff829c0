/*
 * Request bodies as the core wants them. The tables say what there is; what is found is checked
 * here, once, and named in the error. Strings are borrowed from the JSON tree, arrays belong to the
 * scratch.
 */
#pragma once

#include "base/scratch.h"
#include "model/execution.h"
#include "model/file.h"
#include "model/sandbox.h"
#include "json/json.h"

/* Options of an exec; a run takes these and all of a create. */
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
/* The whole of a sandbox's network. */
int decode_network(
	const cJSON *body, struct scratch *memory, struct network_settings *ret, struct error *e);
int decode_exec(
	const cJSON *body, struct scratch *memory, struct exec_options *ret, struct error *e);
/* A process or job; its kind stays as it is. */
int decode_process(
	const cJSON *body, struct scratch *memory, struct execution_spec *ret, struct error *e);
/* A program text, and how its interpreter is to run it. */
struct code_options {
	struct execution_spec spec;
	const char *language; /* as it was asked for */
};
int decode_code(
	const cJSON *body, struct scratch *memory, struct code_options *ret, struct error *e);
int decode_run(const cJSON *body, struct scratch *memory, struct sandbox_spec *create,
	struct exec_options *exec, struct error *e);
/* No ".." in it, and, if asked for, absolute. */
int decode_path(const char *path, const char *field, bool absolute, struct error *e);
/* "0644"; NULL: none was given. */
int decode_mode(
	const char *text, const char *field, bool *has_mode, unsigned *mode, struct error *e);
/* A user's name and a working directory; NULL is fine. */
int decode_place(const char *user, const char *cwd, struct error *e);
/* A map from names to new values, or null for those to be taken out; NULL changes nothing. */
int decode_env_change(
	const cJSON *map, struct scratch *memory, struct sandbox_change *ret, struct error *e);
/* "utf8" or "base64"; NULL is utf8. */
int decode_encoding(const char *text, const char *field, bool *base64, struct error *e);
