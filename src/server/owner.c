/*
 * A start removes what the database does not know. So before anything else, database and disks are
 * compared by the identity that both have: one that is new, or another one, beside disks that exist
 * is an error.
 *
 *     the database    the disks       then
 *     A               A               fine
 *     A               not marked      fine: an older program's. They are marked
 *     A or new        none exist      fine: they are marked
 *     new or B        A, or older     refused, unless the disks are to be adopted
 */
#include "server/owner.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

static int owner_refuse(const char *identity, const char *data, struct error *e)
{
	return error_set(e, ERROR_UNAVAILABLE,
		"the disks in %s/disks belong to another database, and %s/front/bunker.db %s: put the "
		"right one back, or start once with --adopt-disks, which sets the disks aside for a day",
		data, data, identity[0] ? "is not theirs" : "is new");
}

int owner_settle(struct store *store, const struct owner_disks *disks, bool adopt, const char *data,
	char owner[ID_SIZE], struct error *e)
{
	char identity[ID_SIZE];
	owner[0] = '\0';
	if (store_get_identity(store, identity, e) < 0)
		return -1;
	if (identity[0] && strcmp(identity, disks->owner) == 0)
		return 0;
	bool known = identity[0] && !disks->owner[0];
	if (disks->exist && !known && !adopt)
		return owner_refuse(identity, data, e);
	if (disks->exist && !known)
		log_warn("the disks of another database are adopted", "data", data);
	if (!identity[0]) {
		id_generate(identity);
		if (store_set_identity(store, identity, e) < 0)
			return -1;
	}
	memcpy(owner, identity, ID_SIZE);
	return 0;
}
