/*
 * Volumes: named directories with a limit of their own, mounted into one sandbox or many, and
 * outliving them all. Their content is shared without locks: two sandboxes may write the same file.
 */
#pragma once

#include "box/files/files.h"
#include "box/sandbox/sandbox.h"
#include "model/volume.h"

#define VOLUME_IDLE_MS 5000 /* so long after the last file call its porter goes */

struct volume;

/* v is NULL and e says why when it failed. */
typedef void volume_created_fn(void *arg, struct volume *v, const struct error *e);
/* limit 0: the default of a sandbox's disk. */
int volume_create(struct box *b, const char *tenant, const char *name, int64_t limit,
	volume_created_fn *created, void *arg, struct error *e);
/* By id or name; NULL also for those of others. */
struct volume *volume_find(struct box *b, const char *tenant, const char *id_or_name);
/* Finds a volume of any tenant, for callers that have shown a token of it. */
struct volume *volume_find_any(struct box *b, const char *id);
/* In the order of their creation. */
struct volume *volume_first(struct box *b, const char *tenant);
struct volume *volume_next(const struct volume *v);
void volume_view(const struct volume *v, struct volume_view *out);
/* Refused with in_use while a sandbox has it. */
int volume_delete(struct volume *v, sandbox_done_fn *done, void *arg, struct error *e);
/*
 * As file_begin, on what is in the volume, with root's rights and the volume as the root: no path
 * and no link in it leads out. No sandbox of the tenant's is needed or seen, and no call keeps a
 * volume from being deleted: it ends then.
 */
int volume_file_begin(struct volume *v, const struct file_request *request,
	const struct file_events *events, void *arg, struct file_call **ret, struct error *e);
