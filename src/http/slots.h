/*
 * Which connections may be open. A stranger is a connection that has shown no key and no token yet.
 * When slots are short, the stranger that has waited longest without a whole request loses its slot
 * to the next one; some slots strangers do not get at all, and one address gets only so many.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

struct http_connection;
struct http_peer;
struct http_server;

/* Counts a connection of this address until http_peer_drop. NULL: it is not counted. */
struct http_peer *http_peer_count(struct http_server *s, const struct sockaddr_storage *address);
/* NULL is fine. */
void http_peer_drop(struct http_server *s, struct http_peer *peer);
/* Whether the connection just counted gets a slot; a stranger may have to go for it. */
bool http_slots_make(struct http_server *s, const struct http_peer *peer);
/* The connection drops the peer when it leaves. */
void http_slots_enter(struct http_connection *c, struct http_peer *peer);
/* Marks a connection that has shown a key. */
void http_slots_know(struct http_connection *c);
/* Gives the slot back when the connection is closed. Does nothing if it has none. */
void http_slots_leave(struct http_connection *c);
