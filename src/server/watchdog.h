/*
 * Replaces a front whose loop has stopped turning.
 *
 * The front counts its beats in memory that it shares with its parent. Once a second the parent
 * looks: a front that has not beaten for `patience` is killed, and its caller starts another.
 *
 * The parent counts its looks and not the time, because a suspended machine is not the front's
 * fault: a parent that stood still together with it looks once. A look does not count when the
 * loop's thread was stopped (SIGSTOP, a debugger) or waits for a disk: the first is intended, and
 * killing does not end the second. A front that wants to run and has got less than a tenth of a
 * processor is not killed: it is the machine that is slow. Nothing counts before the first beat: a
 * start may have a database to rebuild.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

/* ---- the parent ---- */

/*
 * Once, before the first front; patience 0 is none at all. SIGALRM is blocked from here on and must
 * be let through where the parent waits. `also` is called with every look, also without patience,
 * or NULL. Returns what the front beats in.
 */
uint64_t *watchdog_open(int64_t patience_ms, void (*also)(int number));
/* Sets the front to watch until the next call; 0 for none. */
void watchdog_guard(pid_t front);
/* Whether the front that is watched was killed for its silence. */
bool watchdog_has_killed(void);

/* ---- the front ---- */

/* Beats with the loop from now on, and does not keep it alive. */
void watchdog_beat(uint64_t *beats, uv_loop_t *loop, uv_timer_t *timer);
/* The loop is about to end. */
void watchdog_leave(uv_timer_t *timer);
