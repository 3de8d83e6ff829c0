#pragma once

struct box;

/* Carries out what is due for every sandbox whose time is up, and sets the clock again. */
void expiry_check(struct box *b);
