/* Whether database and disks belong together. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/id.h"
#include "store/store.h"

/* The disks as the keeper found them. */
struct owner_disks {
	char owner[ID_SIZE]; /* the identity of their database; "": not known */
	bool exist;
};

/*
 * Fails when the database is not that of the disks, unless it is to adopt them. owner is what is to
 * be written on the disks; "": nothing. data is for the message.
 */
int owner_settle(struct store *store, const struct owner_disks *disks, bool adopt, const char *data,
	char owner[ID_SIZE], struct error *e);
