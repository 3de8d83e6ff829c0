/*
 * Dockerfiles, as far as they are understood here: one FROM, RUN, COPY, ADD of local files, ENV,
 * WORKDIR, USER, ARG, CMD, ENTRYPOINT, EXPOSE; comments, continued lines, the escape directive,
 * variables. Anything else is an error that names its line.
 *
 * It is read in two steps, because variables may come from what FROM names: dockerfile_read finds
 * the instructions and FROM; dockerfile_plan puts in the variables.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/scratch.h"

#define DOCKERFILE_MAX (1u << 20)

struct dockerfile_line; /* an instruction, as it is written */

struct dockerfile {
	const char *from;
	struct dockerfile_line *lines; /* those behind FROM */
	size_t line_count;
	char escape;
	/* Given by the user, and as ARG before FROM says; both for ARG behind it. */
	const char *const *build_args; /* NAME=VALUE, NULL-terminated */
	const char *const *early_args;
};

enum dockerfile_kind {
	DOCKERFILE_RUN,
	DOCKERFILE_COPY,
	DOCKERFILE_ENV,
	DOCKERFILE_WORKDIR,
	DOCKERFILE_USER
};

/* Lists are NULL-terminated. */
struct dockerfile_step {
	enum dockerfile_kind kind;
	int line;
	const char *text;           /* as it is written, in one line */
	const char *const *argv;    /* RUN */
	const char *const *env;     /* ENV: NAME=VALUE; RUN: the ARGs that it sees */
	const char *const *sources; /* COPY */
	const char *path;           /* COPY, WORKDIR */
	const char *owner;          /* COPY; NULL: not said */
	const char *user;           /* USER */
	int mode;                   /* COPY; -1: not said */
	bool unpack;                /* ADD: archives are unpacked */
};

/* "user" of "user:group", with the names that sandboxes have for 0 and 1000. */
const char *dockerfile_user(struct scratch *memory, const char *text);

struct dockerfile_plan {
	struct dockerfile_step *steps;
	size_t step_count;
	const char *const *entrypoint, *const *command; /* NULL: not said */
	bool entrypoint_is_line;                        /* for a shell, and takes no arguments */
	const char *const *ports;                       /* NULL: none */
};

struct dockerfile_error {
	int line; /* 0: none in particular */
	char message[256];
};

/* args: NAME=VALUE, NULL-terminated, or NULL. The text may hold anything. */
int dockerfile_read(const char *text, size_t len, const char *const *args, struct scratch *memory,
	struct dockerfile *ret, struct dockerfile_error *e);
/* env: of what FROM names, NAME=VALUE, NULL-terminated. */
int dockerfile_plan(const struct dockerfile *file, const char *const *env, struct scratch *memory,
	struct dockerfile_plan *ret, struct dockerfile_error *e);
