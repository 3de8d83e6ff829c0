/* A process that bunker-wire starts, as what differs between them. */
#pragma once

#include "netns/netns.h"

#define DAEMON_NAME_SIZE 40

struct daemon {
	const char *name; /* argv[0] */
	char cgroup[DAEMON_NAME_SIZE];
	char socket_path[NETNS_PATH_MAX]; /* of a socket that is the front's */
	uid_t uid;
	const char *argument; /* behind its uid and the level of its log; or NULL */
};

/* Starts it. Returns a connection. */
int daemon_start(const struct netns *n, const struct daemon *s);
/* Returns a connection to one that runs. */
int daemon_connect(const struct daemon *s);
/* Removes what is left of one that has ended, or will in a moment. */
void daemon_remove(const struct netns *n, const struct daemon *s);
