#include "store/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "store/internal.h"

static const char put_text[] =
	"INSERT INTO $name ($stored) VALUES ($values) ON CONFLICT ($key) DO $update";
static const char add_text[] =
	"INSERT INTO $name ($stored) VALUES ($values) ON CONFLICT DO NOTHING RETURNING 1";
static const char delete_text[] = "DELETE FROM $name WHERE $key = ?1";
static const char find_text[] = "SELECT $columns FROM $name WHERE $key = ?1";
static const char each_text[] = "SELECT $columns FROM $name ORDER BY $order";

/* ---- statements from descriptions ---- */

static bool is_stored(const struct field *f)
{
	return f->column && !f->computed;
}

static void append_name(struct buf *out, const char *name)
{
	buf_append_char(out, '"');
	buf_append_str(out, name);
	buf_append_char(out, '"');
}

static void append_comma(struct buf *out, bool *is_first)
{
	if (!*is_first)
		buf_append_str(out, ", ");
	*is_first = false;
}

/* The columns that a row is read from, in the order in which store_read wants them. */
static void append_columns(struct buf *out, const struct store_table *t)
{
	bool is_first = true;
	for (size_t i = 0; i < t->fields->count; i++) {
		const struct field *f = &t->fields->fields[i];
		if (!f->column)
			continue;
		append_comma(out, &is_first);
		if (f->computed)
			buf_append_str(out, f->computed);
		else
			append_name(out, f->column);
	}
}

static void append_stored(struct buf *out, const struct store_table *t)
{
	bool is_first = true;
	for (size_t i = 0; i < t->fields->count; i++) {
		if (!is_stored(&t->fields->fields[i]))
			continue;
		append_comma(out, &is_first);
		append_name(out, t->fields->fields[i].column);
	}
}

static void append_values(struct buf *out, const struct store_table *t)
{
	bool is_first = true;
	for (size_t i = 0; i < t->fields->count; i++) {
		if (!is_stored(&t->fields->fields[i]))
			continue;
		append_comma(out, &is_first);
		buf_append_char(out, '?');
	}
}

static void append_key(struct buf *out, const struct store_table *t)
{
	bool is_first = true;
	for (size_t i = 0; i < t->fields->count; i++) {
		if (!(t->fields->fields[i].flags & FIELD_KEY))
			continue;
		append_comma(out, &is_first);
		append_name(out, t->fields->fields[i].column);
	}
}

static void append_update(struct buf *out, const struct store_table *t)
{
	bool is_first = true;
	for (size_t i = 0; i < t->fields->count; i++) {
		const struct field *f = &t->fields->fields[i];
		if (!is_stored(f) || f->flags & (FIELD_KEY | FIELD_FIXED))
			continue;
		buf_append_str(out, is_first ? "UPDATE SET " : ", ");
		is_first = false;
		append_name(out, f->column);
		buf_append_str(out, " = excluded.");
		append_name(out, f->column);
	}
	if (is_first)
		buf_append_str(out, "NOTHING");
}

static void append_table_name(struct buf *out, const struct store_table *t)
{
	append_name(out, t->name);
}

static void append_order(struct buf *out, const struct store_table *t)
{
	buf_append_str(out, t->order);
}

static const struct {
	const char *word;
	void (*append)(struct buf *out, const struct store_table *t);
} words[] = {
	{"$columns", append_columns},
	{"$stored", append_stored},
	{"$values", append_values},
	{"$key", append_key},
	{"$update", append_update},
	{"$name", append_table_name},
	{"$order", append_order},
};

static char *store_table_expand(const struct store_table *t, const char *text)
{
	struct buf out = {0};
	while (*text) {
		size_t i = 0;
		while (i < sizeof words / sizeof words[0] &&
			strncmp(text, words[i].word, strlen(words[i].word)) != 0)
			i++;
		if (i == sizeof words / sizeof words[0]) {
			buf_append_char(&out, *text++);
			continue;
		}
		words[i].append(&out, t);
		text += strlen(words[i].word);
	}
	return buf_take_str(&out);
}

const char *store_sql(struct store *s, const struct store_table *t, const char *text)
{
	size_t i = 0;
	for (; i < STORE_TEXTS_MAX && s->texts[i].sql; i++)
		if (s->texts[i].table == t && s->texts[i].text == text)
			return s->texts[i].sql;
	assert(i < STORE_TEXTS_MAX && "each statement of each table has a place");
	s->texts[i].table = t;
	s->texts[i].text = text;
	s->texts[i].sql = store_table_expand(t, text);
	assert(s->texts[i].sql && "the words of a statement are known");
	return s->texts[i].sql;
}

/* ---- rows ---- */

static void store_table_add_field(struct operation *op, const struct field *f, const void *row)
{
	const struct strings *list = (const void *)((const char *)row + f->offset);
	switch (field_storage(f)) {
	case STORED_BYTES:
		operation_add_blob(op, list->data, list->len);
		break;
	case STORED_TEXT:
		operation_add_text(op, field_text(f, row));
		break;
	default:
		operation_add_int(op, field_number(f, row));
	}
}

static void read_field(const struct field *f, const struct value *v, void *row)
{
	char *to = (char *)row + f->offset;
	const char *text = v->bytes ? v->bytes : "";
	if (f->kind == FIELD_CHARS) {
		size_t len = v->len < f->size ? v->len : f->size - 1;
		memcpy(to, text, len); /* the rest is zeroed */
	} else if (f->kind == FIELD_ENUM) {
		int value = field_enum_of(f, text);
		*(unsigned *)(void *)to =
			(unsigned)(value < 0 && f->missing ? field_enum_of(f, f->missing) : value);
	} else if (field_storage(f) == STORED_BYTES) {
		*(struct strings *)(void *)to = (struct strings){v->bytes, v->len};
	} else if (field_storage(f) == STORED_TEXT) {
		*(const char **)(void *)to = text;
	} else {
		field_set_number(f, row, v->number);
	}
}

void store_read(const struct store_table *t, const struct value *columns, void *row)
{
	memset(row, 0, t->fields->size);
	for (size_t i = 0; i < t->fields->count; i++)
		if (t->fields->fields[i].column)
			read_field(&t->fields->fields[i], columns++, row);
}

/* ---- what can be done with any table ---- */

static struct operation *operation_with_row(
	struct store *s, const struct store_table *t, const char *text, const void *row)
{
	struct operation *op = operation_with(store_sql(s, t, text), t->fields->count);
	for (size_t i = 0; i < t->fields->count; i++)
		if (is_stored(&t->fields->fields[i]))
			store_table_add_field(op, &t->fields->fields[i], row);
	return op;
}

void store_put(struct store *s, const struct store_table *t, const void *row, store_done_fn *done,
	void *arg)
{
	store_submit(s, operation_with_row(s, t, put_text, row), done, arg);
}

/* The statement returns a row only if it inserted one. */
static void added_row(struct operation *op, const struct value *columns, size_t count)
{
	(void)count;
	if (columns)
		op->is_new = true;
	else if (op->added)
		op->added(op->arg, op->error, op->is_new);
}

void store_add(struct store *s, const struct store_table *t, const void *row, store_added_fn *added,
	void *arg)
{
	struct operation *op = operation_with_row(s, t, add_text, row);
	op->row = added_row;
	op->added = added;
	store_submit(s, op, NULL, arg);
}

void store_delete(struct store *s, const struct store_table *t, const char *key,
	store_done_fn *done, void *arg)
{
	struct operation *op = operation_new(store_sql(s, t, delete_text));
	operation_add_text(op, key);
	op->makes_room = true;
	store_submit(s, op, done, arg);
}

struct walk {
	const struct store_table *table;
	void (*each)(void *arg, const void *row);
	void *arg;
	void *row;
};

static void walk_row(void *arg, const struct value *columns, size_t count)
{
	struct walk *w = arg;
	(void)count;
	store_read(w->table, columns, w->row);
	w->each(w->arg, w->row);
}

int store_each(struct store *s, const struct store_table *t, const char *where,
	void (*each)(void *arg, const void *row), void *arg)
{
	struct walk w = {t, each, arg, mem_new(t->fields->size)};
	int r = s->backend->run(
		s->connection, store_sql(s, t, where ? where : each_text), NULL, 0, walk_row, &w);
	free(w.row);
	return r;
}

/* The search for one row, or a list. */
struct query {
	const struct store_table *table;
	store_found_fn *found; /* NULL: the row was told */
	void *arg;
	void *row;
	bool first_only;
};

/* Each row, then the closing NULL; of a search the first row or NULL. */
static void query_row(struct operation *op, const struct value *columns, size_t count)
{
	struct query *q = op->arg;
	(void)count;
	if (columns && q->found) {
		store_read(q->table, columns, q->row);
		q->found(q->arg, q->row, 0);
		q->found = q->first_only ? NULL : q->found;
	}
	if (columns)
		return;
	if (q->found)
		q->found(q->arg, NULL, op->error);
	free(q->row);
	free(q);
}

static void query_submit(struct store *s, struct operation *op, const struct query *query)
{
	struct query *q = mem_copy(query, sizeof *query);
	q->row = mem_new(q->table->fields->size);
	op->row = query_row;
	store_submit_read(s, op, q);
}

void store_search(struct store *s, const struct store_table *t, struct operation *op,
	store_found_fn *found, void *arg)
{
	query_submit(
		s, op, &(struct query){.table = t, .found = found, .arg = arg, .first_only = true});
}

void store_list(struct store *s, const struct store_table *t, struct operation *op,
	store_found_fn *each, void *arg)
{
	query_submit(s, op, &(struct query){.table = t, .found = each, .arg = arg});
}

void store_find(struct store *s, const struct store_table *t, const char *key,
	store_found_fn *found, void *arg)
{
	struct operation *op = operation_new(store_sql(s, t, find_text));
	operation_add_text(op, key);
	store_search(s, t, op, found, arg);
}

static void expired_row(struct operation *op, const struct value *columns, size_t count)
{
	(void)count;
	op->each(op->arg, columns ? columns[0].bytes : NULL);
}

void store_expire(struct store *s, const char *sql, int64_t before_ms, unsigned limit,
	store_expired_fn *each, void *arg)
{
	struct operation *op = operation_new(sql);
	operation_add_int(op, before_ms);
	operation_add_int(op, limit);
	op->row = expired_row;
	op->makes_room = true;
	op->each = each;
	store_submit(s, op, NULL, arg);
}

/* ---- the tables that a database has ---- */

struct known_columns {
	const struct store_table *table;
	struct field_set there;
	bool any;
};

static void note_column(void *arg, const struct value *columns, size_t count)
{
	struct known_columns *k = arg;
	(void)count;
	k->any = true;
	for (size_t i = 0; i < k->table->fields->count; i++) {
		const struct field *f = &k->table->fields->fields[i];
		if (is_stored(f) && strcmp(f->column, columns[0].bytes) == 0)
			field_set_add(&k->there, i);
	}
}

static void append_definition(struct buf *out, const struct backend *b, const struct field *f)
{
	enum field_storage kind = field_storage(f);
	append_name(out, f->column);
	buf_append_char(out, ' ');
	buf_append_str(out, b->types[kind]);
	buf_append_str(out, " NOT NULL DEFAULT ");
	/* A name of our own, or the back end's word for nothing. */
	if (f->kind == FIELD_ENUM || f->missing) {
		buf_append_char(out, '\'');
		buf_append_str(out, f->missing ? f->missing : f->names[0]);
		buf_append_char(out, '\'');
	} else {
		buf_append_str(out, b->empty[kind]);
	}
}

static int create_table(struct store *s, const struct store_table *t)
{
	autobuf sql = {0};
	bool is_first = true;
	buf_append_str(&sql, "CREATE TABLE ");
	append_name(&sql, t->name);
	buf_append_str(&sql, " (");
	for (size_t i = 0; i < t->fields->count; i++) {
		if (!is_stored(&t->fields->fields[i]))
			continue;
		append_comma(&sql, &is_first);
		append_definition(&sql, s->backend, &t->fields->fields[i]);
	}
	buf_append_str(&sql, ", PRIMARY KEY (");
	append_key(&sql, t);
	buf_append(&sql, "))", sizeof "))");
	return s->backend->script(s->connection, sql.data);
}

static int add_column(struct store *s, const struct store_table *t, const struct field *f)
{
	autobuf sql = {0};
	buf_append_str(&sql, "ALTER TABLE ");
	append_name(&sql, t->name);
	buf_append_str(&sql, " ADD COLUMN ");
	append_definition(&sql, s->backend, f);
	buf_append_char(&sql, '\0');
	return s->backend->script(s->connection, sql.data);
}

int store_complete(struct store *s, const struct store_table *t, struct error *e)
{
	struct known_columns known = {.table = t};
	struct value name = {STORED_TEXT, 0, (char *)(uintptr_t)t->name, strlen(t->name)};
	int r = s->backend->run(
		s->connection, s->backend->column_list, &name, 1, note_column, &known);
	if (r == 0 && !known.any) {
		r = create_table(s, t);
	} else {
		for (size_t i = 0; i < t->fields->count && r == 0; i++)
			if (is_stored(&t->fields->fields[i]) && !field_set_has(&known.there, i))
				r = add_column(s, t, &t->fields->fields[i]);
	}
	if (r < 0)
		return error_set(e, ERROR_INTERNAL, "cannot complete the table %s: %s", t->name,
			s->backend->message(s->connection));
	return 0;
}
