#pragma once

#include "box/sandbox/part.h"

/* The sandbox is awake again: calls that have waited for it go on. */
void files_awake(struct sandbox *s);
/* The sandbox does not wake: fails the calls that have waited for it. */
void files_refuse_waiting(struct sandbox *s, const struct error *e);
/* The sandbox ends, or we do: its calls end with e. */
void files_end_all(struct sandbox *s, const struct error *e);
void file_watcher_remove_all(struct sandbox *s);

extern const struct sandbox_part files_part;
