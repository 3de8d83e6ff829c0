/* How the kernel's scheduler should see a process of ours. */
#pragma once

/*
 * For whoever others wait for, and who does little at a time: when it wakes up it goes before those
 * that compute, and takes no larger share for it. Children are not like that unless they say so.
 */
void schedule_promptly(void);
