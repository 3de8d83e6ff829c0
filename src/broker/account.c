/* The sandboxes: what is to be added to their requests, and the authority that each trusts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "broker/authority.h"
#include "broker/broker.h"

static struct account *sandboxes;

struct account *account_find(const char *id)
{
	struct account *s = NULL;
	HASH_FIND(by_id, sandboxes, id, ID_LEN, s);
	return s;
}

unsigned account_count(void)
{
	return HASH_CNT(by_id, sandboxes);
}

static struct account *account_get(const char *id)
{
	struct account *s = account_find(id);
	if (s)
		return s;
	s = mem_new(sizeof *s);
	memcpy(s->id, id, ID_LEN);
	HASH_ADD(by_id, sandboxes, id[0], ID_LEN, s);
	return s;
}

static void coming_drop(struct account *s)
{
	if (s->coming)
		explicit_bzero(s->coming, s->coming_size);
	free(take_ptr(s->coming));
}

/* Takes the entries. Returns false if their authority is none. */
static bool account_set_entries(struct account *s, struct entries *next)
{
	if (!s->is_told || !entries_have_same_authority(&s->entries, next)) {
		struct authority *authority = NULL;
		if (next->key.len > 0 && authority_open(&authority, next) < 0)
			return false;
		exchange_review(s, NULL);
		authority_close(s->authority);
		s->authority = authority;
	} else {
		exchange_review(s, next);
	}
	entries_finish(&s->entries);
	s->entries = *next;
	*next = (struct entries){0};
	s->is_told = s->is_fresh = true;
	exchange_wake();
	return true;
}

bool account_take_entries(const struct broker_sandbox *part, const uint8_t *data)
{
	struct account *s = account_get(part->head.id);
	struct entries next;
	if (part->part_at == 0) {
		coming_drop(s);
		s->coming = mem_new((size_t)part->entries_size + 1);
		s->coming_size = part->entries_size;
	}
	if (!s->coming || s->coming_size != part->entries_size)
		return false;
	memcpy(s->coming + part->part_at, data, part->part_size);
	if (part->part_at + part->part_size < part->entries_size)
		return true;
	if (entries_init(&next, take_ptr(s->coming), part->entries_size) < 0)
		return false;
	bool taken = account_set_entries(s, &next);
	entries_finish(&next);
	return taken;
}

void account_forget(struct account *s)
{
	if (!s)
		return;
	exchange_review(s, NULL);
	coming_drop(s);
	entries_finish(&s->entries);
	authority_close(s->authority);
	HASH_DELETE(by_id, sandboxes, s);
	free(s);
}

void account_begin_sync(void)
{
	for (struct account *s = sandboxes; s; s = s->by_id.next)
		s->is_fresh = false;
}

void account_forget_all_but_fresh(void)
{
	struct account *s, *next;
	HASH_ITER (by_id, sandboxes, s, next)
		if (!s->is_fresh)
			account_forget(s);
}
