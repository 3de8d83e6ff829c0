/* File work inside a sandbox, with the rights of a user of it. */
#pragma once

#include <stddef.h>

#include "base/error.h"

struct sandbox;

struct file_spec {
	const char *path; /* absolute, or relative to the working directory */
	const char *content;
	size_t len;
	unsigned mode;
};

/* Whose they are and where relative paths begin; NULL: as the sandbox has it. */
struct files_owner {
	const char *user;
	const char *cwd;
};

/* Writes them one after the other; stops at the first that fails. Everything is copied. */
void files_write(struct sandbox *s, const struct files_owner *owner, const struct file_spec *files,
	size_t count, void (*done)(void *arg, const struct error *e), void *arg);
