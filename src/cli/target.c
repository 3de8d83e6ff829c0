#include "cli/target.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/suggest.h"
#include "client/failure.h"

/* Shorter beginnings of ids are more often a slip than meant. */
#define PREFIX_MIN   3
#define PREFIX_SHOWN 8

static bool target_is_prefix(const char *target)
{
	size_t len = strlen(target);
	return len >= PREFIX_MIN && len < ID_LEN &&
	       strspn(target, "abcdefghijklmnopqrstuvwxyz0123456789") == len;
}

static int target_refuse(
	const struct bunker_sandbox_list *all, const char *target, struct bunker_error *e)
{
	struct suggestion s;
	cli_suggest_begin(&s, target, strlen(target));
	for (size_t i = 0; i < all->count; i++)
		cli_suggest_offer(&s, all->items[i].name);
	return client_fail(e, "not_found", "there is no sandbox with the id or name \"%s\"%s%s%s",
		target, s.best ? "; did you mean \"" : "", s.best ? s.best : "",
		s.best ? "\"?" : "");
}

static int target_refuse_many(const struct bunker_sandbox_list *all, const char *target,
	size_t count, struct bunker_error *e)
{
	autobuf ids = {0};
	size_t shown = 0;
	for (size_t i = 0; i < all->count && shown < PREFIX_SHOWN; i++)
		if (strncmp(all->items[i].id, target, strlen(target)) == 0)
			buf_printf(&ids, "%s%s", shown++ ? ", " : "", all->items[i].id);
	buf_append_char(&ids, '\0');
	return client_fail(e, "ambiguous", "\"%s\" is the beginning of %zu ids: %s%s", target,
		count, ids.failed ? "" : ids.data, count > shown ? ", ..." : "");
}

/* Only when nothing else fits: it costs a list of all sandboxes. */
static int target_apply_prefix(
	struct bunker *b, const char *target, target_fn *fn, void *arg, struct bunker_error *e)
{
	struct bunker_sandbox_list all;
	size_t count = 0, found = 0;
	int r = bunker_list(b, NULL, &all, e);
	if (r < 0)
		return r;
	for (size_t i = 0; target_is_prefix(target) && i < all.count; i++)
		if (strncmp(all.items[i].id, target, strlen(target)) == 0) {
			found = i;
			count++;
		}
	r = count == 1  ? fn(b, all.items[found].id, arg, e)
	    : count > 1 ? target_refuse_many(&all, target, count, e)
			: target_refuse(&all, target, e);
	bunker_sandbox_list_finish(&all);
	return r;
}

int cli_target_apply(
	struct bunker *b, const char *target, target_fn *fn, void *arg, struct bunker_error *e)
{
	if (id_is_valid(target)) {
		int r = fn(b, target, arg, e);
		if (r == 0 || e->http_status != 404)
			return r;
	}
	struct bunker_sandbox_list found;
	const struct bunker_list_options by_name = {.name = target, .limit = 1};
	int r = bunker_list(b, &by_name, &found, e);
	if (r < 0)
		return r;
	r = found.count > 0 ? fn(b, found.items[0].id, arg, e)
			    : target_apply_prefix(b, target, fn, arg, e);
	bunker_sandbox_list_finish(&found);
	return r;
}

static int take_id(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	struct bunker_sandbox sandbox;
	if (bunker_get(b, id, &sandbox, e) < 0)
		return -1;
	bunker_sandbox_finish(&sandbox);
	snprintf(arg, ID_SIZE, "%s", id);
	return 0;
}

int cli_target_find(struct bunker *b, const char *target, char id[ID_SIZE], struct bunker_error *e)
{
	return cli_target_apply(b, target, take_id, id, e);
}
