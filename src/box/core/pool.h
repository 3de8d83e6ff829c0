/* Booted sandboxes that nobody has yet. */
#pragma once

struct box;
struct sandbox;

struct sandbox *pool_take(struct box *b);
void pool_refill(struct box *b);
/* When somebody has just come. */
void pool_refill_later(struct box *b);
/* One that died before anybody had it. */
void pool_discard(struct sandbox *s);
void pool_drain(struct box *b);
