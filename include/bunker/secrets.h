/* Secrets of the caller's tenant, of which only names are ever told. Comes with bunker.h. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct bunker_secret {
	const char *name;
	const char *created_at;
	const char *updated_at; /* when its value was given last */
	int64_t sandboxes;      /* that have a rule which names it */
	bool readable;          /* else it was stored under a key that the server has lost */
	struct bunker_json *json;
};
void bunker_secret_finish(struct bunker_secret *secret);

struct bunker_secret_list {
	struct bunker_secret *items;
	size_t count;
};
int bunker_secret_list(struct bunker *b, struct bunker_secret_list *ret, struct bunker_error *e);
void bunker_secret_list_finish(struct bunker_secret_list *list);
/* {"secrets":[...]}, for the caller to free. NULL: out of memory. */
char *bunker_secret_list_json(const struct bunker_secret_list *list);

/* Makes it, or gives it another value; in force when this returns. Needs the scope admin. */
int bunker_secret_put(struct bunker *b, const char *name, const char *value,
	struct bunker_secret *ret, struct bunker_error *e);
int bunker_secret_get(
	struct bunker *b, const char *name, struct bunker_secret *ret, struct bunker_error *e);
/* Fails with in_use while a sandbox has a rule that names it. Needs the scope admin. */
int bunker_secret_delete(struct bunker *b, const char *name, struct bunker_error *e);

#ifdef __cplusplus
}
#endif
