/*
 * The disk that ended commands take: rows of the database and spool files, and the logs of builds.
 * It is counted for each tenant, in bytes, and limited by --kept-limit and, for all tenants
 * together, by a tenth of the file system. Near the limit the tenant's oldest results go; near the
 * common one those of the tenant that has most. If no ended command is left to remove, new output
 * is not kept. The database has the sum of each tenant's rows, so that it is known after a restart.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct box;
struct execution;
struct kept;
struct kept_account;

/* Reads the sums; before the loop runs. */
int kept_open(struct box *b);
void kept_close(struct box *b);

struct kept_account *kept_of(struct box *b, const char *tenant);
/* For bytes that are about to be written to a spool file. False: there is no room. */
bool kept_charge(struct kept_account *a, uint64_t bytes);
/* Returns what was charged. */
void kept_release(struct kept_account *a, uint64_t bytes);
/* Charges for what is there already. */
void kept_force_charge(struct kept_account *a, uint64_t bytes);
/* A row was stored that stands for so much; it can go when room is needed. */
void kept_add_row(struct kept_account *a, uint64_t bytes);

/* Told with the number of executions that were removed. */
typedef void kept_expired_fn(void *arg, unsigned count);
/* Forgets at most `limit` executions that ended before, the oldest first, with their files. */
void kept_expire(
	struct box *b, int64_t before_ms, unsigned limit, kept_expired_fn *expired, void *arg);
/* Removes files that no execution has: of a server that died between a commit and the removal. */
void kept_sweep(struct box *b);
