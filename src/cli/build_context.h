/*
 * The files that a step of a build takes from the working directory, as a tar archive known by its
 * SHA-256. The same files make the same archive, regardless of owner and times.
 */
#pragma once

#include "base/scratch.h"
#include "bunker.h"
#include "cli/ignore.h"

#define BUILD_CONTEXT_HASH_SIZE 65

/*
 * Expands the patterns and paths of a Dockerfile into a NULL-terminated list. Prints what is wrong
 * with them.
 */
int cli_build_context_expand(
	const char *const *sources, struct scratch *memory, const char *const **ret);
/* Packs the paths and uploads them, unless the server has them. Says on stderr what fails. */
int cli_build_context_send(struct bunker *b, const char *const *paths, const struct ignore *ignore,
	char hash[BUILD_CONTEXT_HASH_SIZE], struct bunker_error *e);
/* The same for an archive as it is. */
int cli_build_context_send_archive(struct bunker *b, const char *path,
	char hash[BUILD_CONTEXT_HASH_SIZE], struct bunker_error *e);
/* Whether ADD would unpack it, by its name. */
bool cli_build_context_is_archive(const char *path);
