/*
 * bunker-broker: adds headers with a tenant's secrets to requests of its sandboxes. It is given a
 * sandbox's connection and the one to the host that was meant (wire/broker.h), answers the former
 * as that host, by a certificate of the sandbox's own authority, and checks the latter's
 * certificate. One thread, one epoll loop. It has no files and opens no socket: whoever takes it
 * over reaches the hosts that its sandboxes may reach anyway, and has the secrets of one tenant.
 *
 * A request that it does not understand, or that is for another host, does not go on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

#include "base/id.h"
#include "broker/entries.h"
#include "stream/loop.h"
#include "stream/peer.h"
#include "wire/broker.h"

#define CONNECTIONS_MAX 1024

struct authority;

/* A sandbox, of which the front has told something. */
struct account {
	char id[ID_SIZE];
	bool is_fresh; /* since the front's last BEGIN */
	bool is_told;  /* its entries have come as a whole */
	struct entries entries;
	struct authority *authority; /* NULL: it has none, and gets no TLS */
	uint32_t coming_size;
	uint8_t *coming; /* entries whose last part has not come */
	UT_hash_handle by_id;
};

/* ---- main.c ---- */

int broker_main(int argc, char **argv);

/* ---- control.c: what root, the front and egress say ---- */

int broker_listen(int listen_fd);
/* Ends when nobody needs us any more. */
void broker_check_end(void);

/* ---- account.c ---- */

struct account *account_find(const char *id);
unsigned account_count(void);
/* A part of its entries. Returns false if malformed. */
bool account_take_entries(const struct broker_sandbox *part, const uint8_t *entries);
void account_forget(struct account *s);
void account_forget_all_but_fresh(void);
void account_begin_sync(void);

/* ---- exchange.c ---- */

/* Takes both descriptors. */
void exchange_begin(struct peer *egress, const struct broker_connection *c, int inner, int outer);
/* Ends what egress calls by this number. */
void exchange_end(const struct peer *egress, uint64_t number);
void exchange_end_all(const struct peer *egress);
/* Before a sandbox's entries become these: what is for other ones is reset. NULL: all of it. */
void exchange_review(const struct account *s, const struct entries *next);
/* Those that waited for entries go on. */
void exchange_wake(void);
unsigned exchange_total(void);
void exchange_tick(void);

/* ---- confine.c ---- */

int broker_confine(uid_t uid);
