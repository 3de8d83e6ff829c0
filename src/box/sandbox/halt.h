/* Steps between which an operation that has the turn may work on the disk. */
#pragma once

#include "box/sandbox/sandbox.h"

/* Every process stops where it is. Nothing is lost: what is to be sent waits for the thaw. */
void sandbox_freeze(struct sandbox *s, sandbox_done_fn *done, void *arg);
void sandbox_thaw(struct sandbox *s, sandbox_done_fn *done, void *arg);
/* Disconnects from init: its executions have ended, and later calls wait for the next boot. */
void sandbox_disconnect(struct sandbox *s);
/* Ends every process and init; the disk, the object and the row stay. Always works, some time.
 * After sandbox_disconnect. */
void sandbox_halt(struct sandbox *s, sandbox_done_fn *done, void *arg);
/* Boots it: with a new disk or, again, on the one it has. On failure no process is left. */
void sandbox_boot(struct sandbox *s, bool again, sandbox_done_fn *done, void *arg);
