/* Memory that only a start needed. */
#pragma once

/*
 * Returns free heap memory and the pages of programs and libraries to the kernel; they are read
 * again from the page cache when used. Call it before waiting for work.
 */
void trim_memory(void);
