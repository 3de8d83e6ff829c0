/*
 * bunker-wire: the process that gives a sandbox a network without a wire. In the sandbox's network
 * namespace every address becomes local, and a sk_lookup program delivers what is sent to any of
 * them to two sockets, which bunker-egress gets: there is no interface over which a packet could
 * leave. It also starts bunker-egress and bunker-brokers, and starts them again.
 *
 * It is asked by the front, which it does not trust, by ids alone (wire/network.h). It reads
 * nothing that a sandbox or the internet has sent.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/id.h"
#include "wire/egress.h"
#include "wire/network.h"

#define NETNS_PATH_MAX    108 /* as sun_path */
#define NETNS_BROKERS_MAX 64
#define EGRESS_CGROUP     "egress"

struct netns_config {
	const char *data;
	int cgroup_fd;    /* the directory of the sandboxes' v2 cgroups, named by id; borrowed */
	int memory_fd;    /* the same of v1's memory controller, or -1 */
	uid_t front_uid;  /* who may bring policies */
	uid_t egress_uid; /* what bunker-egress runs as */
	uid_t broker_uid; /* the same of a bunker-broker; others have those below */
	const char *trust_file; /* what brokers check hosts' certificates against */
	struct egress_config egress;
};

struct netns {
	struct netns_config config;
	int front_pair[2]; /* the front's, ours */
	int addresses_fd;  /* tells when the host's own addresses change; -1: nobody listens */
	int log_pipe[2];   /* what the processes say that we start, and that may outlive us */
	pid_t pid;
	bool has_died;
	bool unwalled; /* this host has no networks to give */
};

/* ---- open.c: in the process that starts it ---- */

int netns_start(struct netns *n, const struct netns_config *config, struct error *e);
/* Starts it again if `pid` was it. */
void netns_child_ended(struct netns *n, pid_t pid);
/* It ends, and so does bunker-egress, unless sandboxes need it. */
void netns_leave(struct netns *n);

/* ---- ops.c ---- */

void netns_main(struct netns *n) __attribute__((noreturn));

/* ---- namespace.c ---- */

struct netns_sockets {
	int tcp, udp, link;
	enum network_step step; /* that failed */
};

void netns_close_sockets(struct netns_sockets *s);
/* The namespace of the sandbox's init: a descriptor, and its inode. */
int netns_find(const struct netns *n, const char *id, uint64_t *inode);
/* Makes everything in the namespace local, and the sockets that get it. */
int netns_connect(int namespace_fd, struct netns_sockets *ret);
/* Takes addresses and routes away again. */
int netns_disconnect(int namespace_fd);
/* Tries all of it in a new namespace. Returns 0, or a negative error with the step that failed. */
int netns_probe(enum network_step *step);

/* ---- routes.c: in the namespace of the caller ---- */

int netns_add_routes(void);
int netns_drop_routes(void);

/* ---- lookup.c ---- */

/* The program that delivers to these sockets; a descriptor or -errno. */
int netns_load_program(int tcp, int udp);
int netns_attach_program(int program, int namespace_fd);

/* ---- wall.c ---- */

/*
 * From now on no process that is born in the cgroup connects to what the configuration does not
 * open, or to an address of this host, but to its resolvers. Replaces the wall that stood there.
 */
int netns_raise_wall(int cgroup_fd, const struct egress_config *config);
/* The same for bunker-egress, whose cgroup is made if it is not there. Not if unwalled. */
int netns_wall_egress(const struct netns *n);
/* A socket on which the kernel tells of addresses of this host that come and go; or -errno. */
int netns_watch_addresses(void);
/* Reads all that was told. */
void netns_read_addresses(int fd);

/* ---- egress.c: bunker-egress ---- */

/* Connects to the one that runs, if it is of our version, else starts one. Returns a connection. */
int netns_adopt_egress(struct netns *n, void (*held)(const char *id, uint64_t inode));
int netns_start_egress(struct netns *n);
int netns_send_open(int fd, const char *id, uint64_t inode, const struct netns_sockets *s);
/* Returns whether it has ended; then nothing of it is left. */
bool netns_part_from_egress(struct netns *n, int fd);

/* ---- brokers.c: bunker-broker ---- */

/* Those that run are ours. */
void netns_adopt_brokers(const struct netns *n, int egress_fd);
/* It runs, or is started. Returns -EMFILE if there are too many. */
int netns_want_broker(const struct netns *n, const char *id, int egress_fd);
/* Connects all of them with an egress that was started again. */
void netns_pair_brokers(int egress_fd);
/* Returns how many are to be polled; *timeout_ms is set if one is to be started again. */
size_t netns_poll_brokers(struct pollfd polls[NETNS_BROKERS_MAX], int *timeout_ms);
void netns_turn_brokers(const struct netns *n, const struct pollfd *polls, int egress_fd);
void netns_part_from_brokers(const struct netns *n);

/* ---- confine.c ---- */

int netns_confine(struct error *e);
