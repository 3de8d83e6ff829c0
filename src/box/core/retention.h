/* Forgets executions and sandboxes that ended longer ago than the retention. */
#pragma once

struct box;

/* From now on, until the box is closed. */
void retention_start(struct box *b);
