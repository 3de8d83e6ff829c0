/* Memory that only a start needed. */
#pragma once

/* Gives back what the allocator holds, and the pages of programs and libraries, which come again
 * from the page cache as they are used. For who is about to wait for work. */
void trim_memory(void);
