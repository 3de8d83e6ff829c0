/* The process that talks to the network. */
#pragma once

#include "server/certificates.h"
#include "server/config.h"
#include "server/owner.h"

struct front_config {
	const struct config *config;
	const char *data;
	const char *local_key; /* of the CLI on this machine */
	const char *address;   /* for the ready line */
	int listen_fd;
	int warden_fd;
	int keeper_fd;
	int network_fd; /* to bunker-wire */
	struct certificates *certificates;
	uid_t uid;
	struct owner_disks disks;
	uint64_t *beats; /* shared with the parent: server/watchdog.h */
	int *announced;  /* shared with the parent: the ready line was printed */
};

/* Runs until it is told to stop. The exit status of the process. */
int front_main(const struct front_config *f);
