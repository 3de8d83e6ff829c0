/* Scheduler attributes of server processes. */
#pragma once

/*
 * Requests short scheduler slices for a latency-critical process: on wakeup it runs before
 * compute-bound ones, with no larger share of CPU time. Children do not inherit it.
 */
void schedule_promptly(void);
