/*
 * On which processor a process runs. Whoever asks and then has nothing to do but wait for the
 * answer sleeps: its processor is the quickest place to answer from, because none has to be woken
 * up, neither there nor back. `near` names it, as 1 + its number; 0: anywhere.
 */
#pragma once

#include <stdint.h>

#define PROCESSOR_MAX 1024

/* Where we are. */
uint64_t processor_near(void);
/* For whoever has much to do: anywhere. */
void processor_stay(uint64_t near);
