/* The settings that a sandbox gets from its template, and packages installed on top. */
#pragma once

#include "box/template/catalogue.h"

/* Root, disk, environment, user, working directory, and its name as it will be shown. */
void outfit_sandbox(struct sandbox *s, const struct sandbox_spec *spec, const struct template *t,
	const struct build *build);

/* Variables to begin with: the sandbox's own count more. */
void outfit_add_env(struct sandbox *s, const char *env, size_t len);

struct install;

/* Whether anything is to be installed, and may be. 1: yes; 0: nothing. */
int install_check(struct box *b, const struct sandbox_spec *spec, struct error *e);
/*
 * apt and npm packages, in a builder that stands on what the sandbox will stand on. On success the
 * sandbox's disk will begin with the result, which is kept for the next one with the same list.
 */
void install_begin(
	struct sandbox *s, const struct sandbox_spec *spec, sandbox_done_fn *done, void *arg);
