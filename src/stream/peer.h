/*
 * Connections of those who tell bunker-egress or bunker-broker what to do: root (bunker-wire), the
 * front, and the other one of these two processes. A message is a packet, with descriptors unless
 * it is the front's. Nobody is waited for: who does not read its answers is closed, and says
 * everything anew when it connects again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/id.h"
#include "stream/loop.h"

#define PEER_FDS         3
#define PEER_MESSAGE_MAX 65536

enum peer_kind {
	PEER_ROOT,
	PEER_FRONT,
	PEER_BESIDE /* the other process, over a socket pair that root has brought */
};

struct peer {
	struct peer *prev, *next;
	struct source source;
	enum peer_kind kind;
	pid_t pid;        /* of PEER_FRONT and PEER_ROOT */
	char id[ID_SIZE]; /* of PEER_BESIDE: what root calls it */
};

struct peer_handlers {
	/* A message. Descriptors that are not taken, by setting them to -1, are closed. */
	void (*take)(struct peer *p, const uint8_t *message, size_t len, int fds[PEER_FDS]);
	/* It is gone; its memory is there until the end of this turn. */
	void (*closed)(struct peer *p);
};

/* Who connects is root by its uid; who else may is decided by the owner of the socket's name. */
int peers_listen(int listen_fd, const struct peer_handlers *handlers);
void peers_stop_listening(void);
bool peers_have(enum peer_kind kind);
/* The PEER_BESIDE of this id, or NULL. */
struct peer *peers_find(const char *id);
/* Reads what they have said already. */
void peers_read_all_but(const struct peer *p);
/* Sends to each of this kind that has room for it. Returns whether somebody took it. */
bool peers_send(enum peer_kind kind, const void *message, size_t len);

/* Takes the descriptor of a PEER_BESIDE. Returns NULL when it cannot be watched. */
struct peer *peer_add(int fd, const char *id);
/* Sends, or closes it. */
void peer_send(struct peer *p, const void *message, size_t len);
/* Sends with descriptors, which stay the caller's. Returns 0, or a negative error. */
int peer_try_send(struct peer *p, const void *message, size_t len, const int *fds, size_t count);
void peer_close(struct peer *p);
