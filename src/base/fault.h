/*
 * Sudden death, for tests: in a build with sanitizers a process can be told to die at its n-th
 * step. A release has nothing of this.
 *
 * BUNKER_FAULTS names a file of one 64-bit number per process. It is mapped, so whoever writes a
 * number there arms that process at once; each FAULT_POINT() it passes takes one off, and the one
 * that reaches 0 kills it. A number below 0 counts up, and at 0 the process stays where it is and
 * spins. A number that is 0 does nothing: a process that is started again lives.
 */
#pragma once

enum fault_process {
	FAULT_FRONT,
	FAULT_WARDEN,
	FAULT_KEEPER,
	FAULT_PROCESSES
};

#if BUNKER_SANITIZED

/* Once, before the processes part. */
void fault_open(void);
/* Names the calling process from now on. */
void fault_become(enum fault_process process);
void fault_point(void);
#define FAULT_POINT() fault_point()

#else

#define fault_open()          ((void)0)
#define fault_become(process) ((void)0)
#define FAULT_POINT()         ((void)0)

#endif
