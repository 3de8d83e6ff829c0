/* Sandboxes for work of our own. */
#pragma once

struct box;
struct sandbox;

/*
 * Makes a hidden sandbox for a tenant without charging it, with the default limits and the largest
 * disk.
 */
struct sandbox *hidden_new(struct box *b, const char *tenant);
/* Ends what goes on in it, and frees it; then `gone` is called. */
void hidden_dismiss(struct sandbox *s, void (*gone)(void *arg), void *arg);
/* NULL: there is none, or it is freed. */
struct sandbox *hidden_find(struct box *b, const char *id);
