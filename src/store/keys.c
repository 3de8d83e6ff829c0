/* API keys by their hash, and secrets of the server's own. Read and written at start only. */
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "store/internal.h"

struct key_row {
	struct strings hash;
	const char *tenant;
	int64_t created_ms;
};

struct secret_row {
	const char *name;
	struct strings secret;
};

static const struct field key_fields[] = {
	{FIELD_AT(LIST, struct key_row, hash), .flags = FIELD_KEY, .column = "hash"},
	{FIELD_AT(TEXT, struct key_row, tenant), .column = "tenant"},
	{FIELD_AT(TIME, struct key_row, created_ms), .column = "created_ms"},
};

static const struct field secret_fields[] = {
	{FIELD_AT(TEXT, struct secret_row, name), .flags = FIELD_KEY, .column = "name"},
	{FIELD_AT(LIST, struct secret_row, secret), .column = "secret"},
};

static const struct field_table key_table = {
	key_fields, ARRAY_LEN(key_fields), sizeof(struct key_row)};
static const struct field_table secret_table = {
	secret_fields, ARRAY_LEN(secret_fields), sizeof(struct secret_row)};
const struct store_table store_keys = {"keys", &key_table, "created_ms, hash"};
const struct store_table store_secrets = {"secrets", &secret_table, "name"};

static const char sql_add_key[] =
	"INSERT INTO keys (hash, tenant, created_ms) VALUES (?,?,?) ON CONFLICT DO NOTHING";
static const char sql_keep_secret[] =
	"INSERT INTO secrets (name, secret) VALUES (?,?)"
	" ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING secret";

struct key_reader {
	void (*each)(void *arg, const char *tenant, const uint8_t hash[STORE_HASH_SIZE]);
	void *arg;
};

static void read_key(void *arg, const void *row)
{
	const struct key_reader *reader = arg;
	const struct key_row *key = row;
	if (key->hash.len == STORE_HASH_SIZE)
		reader->each(reader->arg, key->tenant, (const uint8_t *)key->hash.data);
}

int store_each_key(struct store *s,
	void (*each)(void *arg, const char *tenant, const uint8_t hash[STORE_HASH_SIZE]), void *arg)
{
	return store_each(s, &store_keys, NULL, read_key, &(struct key_reader){each, arg});
}

static struct value text_value(const char *text)
{
	return (struct value){STORED_TEXT, 0, (char *)(uintptr_t)text, strlen(text)};
}

static struct value bytes_value(const uint8_t *bytes, size_t len)
{
	return (struct value){STORED_BYTES, 0, (char *)(uintptr_t)bytes, len};
}

int store_add_key(
	struct store *s, const char *tenant, const uint8_t hash[STORE_HASH_SIZE], struct error *e)
{
	const struct value values[] = {bytes_value(hash, STORE_HASH_SIZE), text_value(tenant),
		{STORED_NUMBER, clock_wall_ms(), NULL, 0}};
	if (s->backend->run(s->connection, sql_add_key, values, ARRAY_LEN(values), NULL, NULL) < 0)
		return error_set(e, ERROR_INTERNAL, "cannot store the API key: %s",
			s->backend->message(s->connection));
	return 0;
}

static void take_secret(void *arg, const struct value *columns, size_t count)
{
	(void)count;
	if (columns[0].len == STORE_SECRET_SIZE)
		memcpy(arg, columns[0].bytes, STORE_SECRET_SIZE);
}

int store_keep_secret(
	struct store *s, const char *name, uint8_t secret[STORE_SECRET_SIZE], struct error *e)
{
	uint8_t fresh[STORE_SECRET_SIZE];
	memcpy(fresh, secret, sizeof fresh);
	const struct value values[] = {text_value(name), bytes_value(fresh, sizeof fresh)};
	if (s->backend->run(s->connection, sql_keep_secret, values, ARRAY_LEN(values), take_secret,
		    secret) < 0)
		return error_set(e, ERROR_INTERNAL, "cannot keep a secret: %s",
			s->backend->message(s->connection));
	return 0;
}
