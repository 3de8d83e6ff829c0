/*
 * Which server, with which key.
 *
 * The URL is --url, BUNKER_URL or the local default. The key is --api-key, BUNKER_API_KEY or, for a
 * server on this machine only, the first line of its key file: root's key is never sent elsewhere.
 */
#pragma once

#include "cli/arguments.h"

enum session_start {
	SESSION_NEEDS_SERVER,
	SESSION_STARTS_SERVER /* in the background, when none answers at the default local URL */
};

/* For so long a server may be away in the middle of a call. */
#define SESSION_PATIENCE_S 10

/* Returns 0, or -1 having said why. */
int cli_session_open(const struct arguments *args, enum session_start start, struct bunker **ret);
/* Only which they are, for the caller to free; the URL without a slash at its end. */
int cli_session_resolve(const struct arguments *args, char **url, char **key);
/*
 * Whether a call that failed by *e lost its server, which has come back meanwhile. For calls that
 * can only begin anew.
 */
bool cli_session_await(struct bunker *b, const struct bunker_error *e);
/* Says on stderr what became of a call; for people without a server, how to get one. */
void cli_session_report(const struct arguments *args, const struct bunker_error *e);
/* Whether nothing at all listens there. */
bool cli_session_is_dead(const char *url);
/* A file of the local server's data directory, for the caller to free. NULL: out of memory. */
char *cli_session_data_path(const char *name);
