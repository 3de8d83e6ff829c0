/*
 * Processor affinity for request/reply pairs. A process that sends a request and sleeps until the
 * reply leaves its processor idle: answering from there avoids waking another one, in both
 * directions. `near` is 1 + the processor's number; 0: any processor.
 */
#pragma once

#include <stdint.h>

#define PROCESSOR_MAX 1024

/* Returns the number of the processor that the caller runs on, plus 1; 0 if it is unknown. */
uint64_t processor_near(void);
/* Pins the process to `near`; 0 restores the original affinity, for work that takes long. */
void processor_stay(uint64_t near);
