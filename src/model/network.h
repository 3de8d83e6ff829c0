/* The network settings of a sandbox, as data. */
#pragma once

#include "base/address.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/field.h"
#include "model/rules.h"
#include "wire/egress.h"

#define NETWORK_LIST_MAX 1000 /* entries of a list */

/* Entries are names, "*.name", addresses, ranges, each with ":port" or without, and presets. */
struct network_settings {
	enum network_mode mode;
	struct strings allow, deny;
	struct strings rules; /* what is added to its requests: model/rules.h */
};

extern const char *const network_mode_names[];
extern const struct field_table network_model;

/*
 * Returns -1 with the field and a sentence if a list does not fit its mode, has an entry that is
 * none, or names private addresses that are not in one of these ranges, which the operator opened.
 */
int network_check_lists(const struct network_settings *n, const struct address_range *opened,
	size_t opened_count, struct error *e);
/* Puts a name into lower case and takes a dot off its end. Returns false if it is none. */
bool network_settle_name(char *name);
/* Whether an entry is a name or a preset, and no address or range. */
bool network_entry_is_name(const char *entry);
/* Appends the rules of lists that were checked, as bunker-egress takes them. */
void network_pack_rules(const struct network_settings *n, struct buf *out);
