/* The start: what the store says, the warden finds and inits answer is brought together. */
#pragma once

struct box;

int reconcile_load(struct box *b);
void reconcile_start(struct box *b);
