/* The connection of a sandbox to its init. */
#pragma once

struct box;
struct init_link;
struct sandbox;

typedef void sandbox_connected_fn(void *arg, struct sandbox *s, int error);
/* To its init, that is or will be. */
struct init_link *sandbox_link_new(struct sandbox *s);
/* To its init; the callback comes when init has named every process it has, and ends that it knows
 * of are stored. */
void sandbox_connect(struct sandbox *s, sandbox_connected_fn *connected, void *arg);
/* Called when a connection attempt has failed. */
void sandbox_not_connected(struct sandbox *s, int error);
/* Called when the end of one of those processes is stored, or was refused. */
void sandbox_settled(struct sandbox *s);
/* Reports connections whose ends have not arrived in time. */
void sandbox_check_settling(struct box *b);
