/* API keys, for whoever has one of the scope admin. Comes with bunker.h. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct bunker_key {
	const char *id;
	const char *name;
	const char *tenant;
	const char *scope;  /* read use admin */
	const char *origin; /* created local option */
	const char *created_at;
	const char *expires_at;     /* "": never */
	const char *last_used_at;   /* to the minute; "": never */
	const char *rotated_at;     /* "": never */
	const char *previous_until; /* when the key before the rotation ends; "": it has */
	const char *key;            /* what is sent; of one just made or rotated, else "" */
	struct bunker_json *json;
};
void bunker_key_finish(struct bunker_key *key);

struct bunker_key_list {
	struct bunker_key *items;
	size_t count;
};
void bunker_key_list_finish(struct bunker_key_list *list);
/* {"keys":[...]}, for the caller to free. NULL: out of memory. */
char *bunker_key_list_json(const struct bunker_key_list *list);

struct bunker_key_options {
	const char *name;
	const char *tenant;     /* NULL: that of the caller's key */
	const char *scope;      /* NULL: use */
	const char *expires_in; /* "720h"; NULL: never */
};
int bunker_key_create(struct bunker *b, const struct bunker_key_options *options,
	struct bunker_key *ret, struct bunker_error *e);
/* tenant NULL: of all tenants whose keys the caller has. */
int bunker_key_list(
	struct bunker *b, const char *tenant, struct bunker_key_list *ret, struct bunker_error *e);
/* ref: an id, or a name of the caller's tenant. */
int bunker_key_get(
	struct bunker *b, const char *ref, struct bunker_key *ret, struct bunker_error *e);
/* The same key with another text. grace: how long the old one is good, NULL: not at all. */
int bunker_key_rotate(struct bunker *b, const char *ref, const char *grace, const char *expires_in,
	struct bunker_key *ret, struct bunker_error *e);
/* It is refused at once, and what it has open is cut. */
int bunker_key_revoke(struct bunker *b, const char *ref, struct bunker_error *e);

#ifdef __cplusplus
}
#endif
