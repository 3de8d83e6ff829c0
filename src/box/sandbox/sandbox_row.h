/* A sandbox from its row and back. */
#pragma once

#include "model/sandbox.h"
#include "store/store.h"

struct box;
struct sandbox;

struct sandbox *sandbox_from_row(struct box *b, const struct sandbox_record *row);
/* Stores the sandbox as it is, with the status that it is meant to have. */
void sandbox_store(struct sandbox *s, enum sandbox_status status, store_done_fn *done, void *arg);
