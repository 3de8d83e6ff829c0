/*
 * The ports of a sandbox as data: what listens there, and who may see it without a key. A sandbox's
 * grants are one text of its row: "PORT" opens a port to everyone, "PORT:ID:EXPIRES" is a token,
 * and commas part them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/field.h"
#include "base/id.h"

#define PORT_GRANTS_MAX    64  /* of a sandbox */
#define PORT_LISTENERS_MAX 256 /* that a list shows */

struct port_grant {
	int64_t port;
	char id[ID_SIZE];   /* of the token; "": the port is open to everyone */
	int64_t expires_ms; /* of the token: wall clock */
};

/* Returns whether there was another one at *at, which leads into a sandbox's text. */
bool port_grant_next(const char **at, struct port_grant *ret);
void port_grant_append(struct buf *out, const struct port_grant *grant);
/* Returns whether one of the grants opens the port to whoever holds this token, or to everyone. */
bool port_grants_open(const char *grants, int64_t port, const char *token_id, int64_t now_ms);

/* Returns the first port that is open to everyone, 0 if there is none. */
int64_t port_grants_first_open(const char *grants);

struct sandbox_view;
/* Returns whether everyone may see the port, by the sandbox's setting or a grant. */
bool port_is_public(const struct sandbox_view *view, int64_t port);

/* A TCP socket that listens in a sandbox. */
struct port_listener {
	int64_t port;
	char address[48];  /* that it is bound to */
	uint64_t inode;    /* the socket's */
	int64_t uid;       /* whose it is, inside */
	int64_t pid;       /* of the first process that holds it; 0: not found */
	char command[128]; /* of that process; "": not found */
	bool is_public;    /* everyone may see the port */
};

extern const struct field_table port_model;

/*
 * Reads the listening sockets of /proc/net/tcp, or tcp6, in `text`: count of them are in `list`
 * already, which has room for PORT_LISTENERS_MAX. Returns the new count. The text is hostile: lines
 * that do not read are left out.
 */
size_t port_parse_listeners(const char *text, struct port_listener *list, size_t count);
