/* API keys by their hash, and secrets of the server's own; those are read and written at start. */
#include "store/keys.h"

#include <string.h>

#include "base/cleanup.h"
#include "store/internal.h"

struct secret_row {
	const char *name;
	struct strings secret;
};

static const struct field secret_fields[] = {
	{FIELD_AT(TEXT, struct secret_row, name), .flags = FIELD_KEY, .column = "name"},
	{FIELD_AT(LIST, struct secret_row, secret), .column = "secret"},
};

static const struct field_table secret_table = {
	secret_fields, ARRAY_LEN(secret_fields), sizeof(struct secret_row)};
const struct store_table store_keys = {"api_keys", &key_model, "created_ms, id"};
const struct store_table store_secrets = {"secrets", &secret_table, "name"};

static const char sql_put_use[] = "UPDATE api_keys SET used_ms = ? WHERE id = ?";
static const char sql_get_secret[] = "SELECT secret FROM secrets WHERE name = ?";
static const char sql_set_secret[] = "INSERT INTO secrets (name, secret) VALUES (?,?)"
				     " ON CONFLICT (name) DO UPDATE SET secret = excluded.secret";
/* The table `keys` is version 0.2's; its keys could not be revoked, so it is not read. */
static const char sql_count_keys[] =
	"SELECT (SELECT count(*) FROM keys) + (SELECT count(*) FROM api_keys)";

void store_put_key(struct store *s, const struct key_record *row, store_done_fn *done, void *arg)
{
	store_put(s, &store_keys, row, done, arg);
}

void store_delete_key(struct store *s, const char *id, store_done_fn *done, void *arg)
{
	store_delete(s, &store_keys, id, done, arg);
}

void store_put_key_use(struct store *s, const char *id, int64_t used_ms)
{
	struct operation *op = operation_new(sql_put_use);
	operation_add_int(op, used_ms);
	operation_add_text(op, id);
	store_submit(s, op, NULL, NULL);
}

int store_each_key(struct store *s, void (*each)(void *arg, const void *row), void *arg)
{
	return store_each(s, &store_keys, NULL, each, arg);
}

/* ---- secrets ---- */

static struct value text_value(const char *text)
{
	return (struct value){STORED_TEXT, 0, (char *)(uintptr_t)text, strlen(text)};
}

static struct value bytes_value(const uint8_t *bytes, size_t len)
{
	return (struct value){STORED_BYTES, 0, (char *)(uintptr_t)bytes, len};
}

struct secret_search {
	uint8_t *secret;
	bool found;
};

static void take_secret(void *arg, const struct value *columns, size_t count)
{
	struct secret_search *search = arg;
	(void)count;
	search->found = columns[0].len == STORE_SECRET_SIZE;
	if (search->found)
		memcpy(search->secret, columns[0].bytes, STORE_SECRET_SIZE);
}

int store_keep_secret(
	struct store *s, const char *name, uint8_t secret[STORE_SECRET_SIZE], struct error *e)
{
	struct secret_search search = {.secret = secret};
	const struct value values[] = {text_value(name), bytes_value(secret, STORE_SECRET_SIZE)};
	/* Only a new secret is written, so that a server starts on a full disk. */
	int r = s->backend->run(s->connection, sql_get_secret, values, 1, take_secret, &search);
	if (r == 0 && !search.found)
		r = s->backend->run(
			s->connection, sql_set_secret, values, ARRAY_LEN(values), NULL, NULL);
	if (r < 0)
		return error_set(e, ERROR_INTERNAL, "cannot keep a secret: %s",
			s->backend->message(s->connection));
	return 0;
}

/* ---- the identity ---- */

#define IDENTITY "identity"

static void take_identity(void *arg, const struct value *columns, size_t count)
{
	char *id = arg;
	(void)count;
	if (columns[0].len != ID_LEN)
		return;
	memcpy(id, columns[0].bytes, ID_LEN);
	id[ID_LEN] = '\0';
}

static void keys_take_number(void *arg, const struct value *columns, size_t count)
{
	(void)count;
	*(int64_t *)arg = columns[0].number;
}

int store_set_identity(struct store *s, const char id[ID_SIZE], struct error *e)
{
	const struct value values[] = {
		text_value(IDENTITY), bytes_value((const uint8_t *)id, ID_LEN)};
	int r = s->backend->run(
		s->connection, sql_set_secret, values, ARRAY_LEN(values), NULL, NULL);
	return r < 0 ? store_error(e, r, "the database's identity could not be stored") : 0;
}

/* Every server stores its local key, so a database without any has never been used. */
int store_get_identity(struct store *s, char ret[ID_SIZE], struct error *e)
{
	const struct value name = text_value(IDENTITY);
	int64_t keys = 0;
	ret[0] = '\0';
	int r = s->backend->run(s->connection, sql_get_secret, &name, 1, take_identity, ret);
	if (r == 0 && !ret[0])
		r = s->backend->run(
			s->connection, sql_count_keys, NULL, 0, keys_take_number, &keys);
	if (r < 0)
		return store_error(e, r, "the database's identity could not be read");
	if (ret[0] || keys == 0)
		return 0;
	id_generate(ret);
	return store_set_identity(s, ret, e);
}
