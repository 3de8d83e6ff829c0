/* Booted sandboxes that have no owner yet. */
#pragma once

struct box;
struct sandbox;

struct sandbox *pool_take(struct box *b);
void pool_refill(struct box *b);
/* Refills after a delay, because a sandbox was just taken. */
void pool_refill_later(struct box *b);
/* Removes a pooled sandbox that died. */
void pool_discard(struct sandbox *s);
void pool_drain(struct box *b);
