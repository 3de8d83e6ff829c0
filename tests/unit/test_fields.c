/*
 * The tables of fields: that they describe every member of their structs once, and that what goes
 * through JSON and through the store comes back. `test_fields schema` prints the schemas, which
 * tools/check-schemas compares with api/openapi.yaml.
 */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "json/json.h"
#include "model/sandbox.h"
#include "store/store.h"

static const struct field *row(size_t i)
{
	return &sandbox_model.fields[i];
}

/* A byte that no row covers may only be padding: less than the alignment of what follows. */
static void describes_every_member_once(void)
{
	char owner[sizeof(struct sandbox_record)] = {0};
	for (size_t i = 0; i < sandbox_model.count; i++)
		for (size_t at = row(i)->offset; at < row(i)->offset + row(i)->size; at++) {
			CHECK(!owner[at]);
			owner[at] = 1;
		}
	size_t gap = 0;
	for (size_t at = 0; at < sizeof owner; at++) {
		gap = owner[at] ? 0 : gap + 1;
		CHECK(gap < 8);
	}
}

static void has_no_name_twice(void)
{
	for (size_t i = 0; i < sandbox_model.count; i++)
		for (size_t k = 0; k < i; k++) {
			if (row(i)->name && row(k)->name)
				CHECK(strcmp(row(i)->name, row(k)->name) != 0);
			if (row(i)->column && row(k)->column)
				CHECK(strcmp(row(i)->column, row(k)->column) != 0);
			if (row(i)->option && row(k)->option)
				CHECK(strcmp(row(i)->option, row(k)->option) != 0);
		}
}

static void takes_requests_from_the_settings_alone(void)
{
	for (size_t i = 0; i < sandbox_model.count; i++)
		if (row(i)->flags & (FIELD_CREATE | FIELD_CHANGE))
			CHECK(row(i)->offset + row(i)->size <= sizeof(struct sandbox_settings));
}

/* A value of its own for every row. */
static void fill(struct sandbox_record *r, char texts[][32])
{
	static char env[] = "A=1\0B=2";
	memset(r, 0, sizeof *r);
	for (size_t i = 0; i < sandbox_model.count; i++) {
		const struct field *f = row(i);
		char *at = (char *)r + f->offset;
		snprintf(texts[i], 32, f->kind == FIELD_JSON ? "{\"x\":%zu}" : "/t%zu", i);
		if (f->kind == FIELD_CHARS)
			snprintf(at, f->size, "%s", texts[i]);
		else if (f->kind == FIELD_TEXT || f->kind == FIELD_JSON)
			*(const char **)(void *)at = texts[i];
		else if (f->kind == FIELD_ENV)
			*(struct strings *)(void *)at = (struct strings){env, sizeof env};
		else if (f->kind == FIELD_BOOL || f->kind == FIELD_ENUM)
			field_set_number(f, r, 1);
		else if (f->size)
			field_set_number(f, r, (int64_t)(f->min ? f->min : 1000) + (int64_t)i * 10);
	}
	r->name = "n";
	r->user = "u";
}

static void check_same(const struct field *f, const void *a, const void *b)
{
	const struct strings *x = (const void *)((const char *)a + f->offset);
	const struct strings *y = (const void *)((const char *)b + f->offset);
	if (field_storage(f) == STORED_NUMBER) {
		CHECK_INT(field_number(f, a), field_number(f, b));
	} else if (field_storage(f) == STORED_TEXT) {
		CHECK_STR(field_text(f, a), field_text(f, b));
	} else {
		CHECK_INT((long long)x->len, (long long)y->len);
		CHECK(memcmp(x->data, y->data, x->len) == 0);
	}
}

static char texts[FIELD_SET_MAX][32];

/* Of all that an answer has, what a request may have, too. */
static void reads_from_json_what_it_wrote(void)
{
	struct field settable[FIELD_SET_MAX];
	struct field_table t = {settable, 0, sandbox_model.size};
	struct sandbox_record from, back = {0};
	struct field_set given = {0};
	autobuf out = {0};
	autoscratch memory = {0};
	struct json_writer w = {.out = &out};
	struct error e = {0};
	cJSON *tree;
	fill(&from, texts);
	for (size_t i = 0; i < sandbox_model.count; i++)
		if (row(i)->flags & FIELD_CREATE)
			settable[t.count++] = *row(i);
	json_begin_object(&w);
	json_encode(&w, &t, &from, NULL);
	json_end_object(&w);
	CHECK_INT(json_parse(out.data, out.len, &tree, &e), 0);
	const struct json_part parts[] = {
		{settable, NULL, t.count, 0, &back.settings, &given}, {0}};
	int r = json_decode_parts(tree, parts, &memory, &e);
	cJSON_Delete(tree);
	CHECK_STR(e.message, "");
	CHECK_INT(r, 0);
	for (size_t i = 0; i < t.count; i++) {
		CHECK(field_set_has(&given, i));
		if (field_storage(&settable[i]) == STORED_NUMBER) /* texts were the tree's */
			check_same(&settable[i], &from, &back);
	}
}

static int refusal(const char *body, struct error *e)
{
	struct sandbox_settings s = {0};
	autoscratch memory = {0};
	cJSON *tree;
	if (json_parse(body, strlen(body), &tree, e) < 0)
		return -2;
	const struct json_part parts[] = {
		{sandbox_model.fields, NULL, sandbox_model.count, FIELD_CREATE, &s, NULL}, {0}};
	int r = json_decode_parts(tree, parts, &memory, e);
	cJSON_Delete(tree);
	return r;
}

static void names_the_field_and_its_limit(void)
{
	struct error e;
	CHECK(refusal("{\"resources\":{\"memory\":\"1Mi\"}}", &e) < 0);
	CHECK_STR(e.message, "\"resources.memory\" must be between 16Mi and 64Ti");
	CHECK_STR(e.field, "resources.memory");
	CHECK(refusal("{\"timeout\":{\"idel\":\"1s\"}}", &e) < 0);
	CHECK_STR(e.message, "\"timeout.idel\" is not a known field");
	CHECK(refusal("{\"onIdle\":\"stop\"}", &e) < 0);
	CHECK_STR(e.message, "\"onIdle\" must be \"destroy\", \"pause\" or \"suspend\"");
	CHECK(refusal("{\"status\":\"idle\"}", &e) < 0);
	CHECK_STR(e.message, "\"status\" is not a known field");
	CHECK(refusal("{\"timeout\":\"1s\"}", &e) < 0);
	CHECK_STR(e.message, "\"timeout\" must be an object");
	CHECK_INT(refusal("{\"timeout\":{\"idle\":null},\"name\":null}", &e), 0);
}

static struct sandbox_record kept;
static int found;

static void compare(void *arg, const void *r)
{
	const struct sandbox_record *record = r;
	(void)arg;
	found++;
	for (size_t i = 0; i < sandbox_model.count; i++)
		if (row(i)->column && !row(i)->computed)
			check_same(row(i), &kept, record);
}

static void keeps_every_column(void)
{
	char path[] = "/tmp/bunker-fields-XXXXXX", database[64];
	uv_loop_t loop;
	struct store *store;
	struct error e;
	CHECK(mkdtemp(path) != NULL);
	snprintf(database, sizeof database, "%s/db", path);
	fill(&kept, texts);
	kept.ended_ms = 0;
	for (int i = 0; i < 2; i++) {
		uv_loop_init(&loop);
		CHECK_INT(store_open(&store, &loop, database, &e), 0);
		if (i == 0)
			store_put_sandbox(store, &kept, NULL, NULL);
		else
			CHECK_INT(store_each_sandbox(store, compare, NULL), 0);
		store_close(store);
		uv_run(&loop, UV_RUN_DEFAULT);
		uv_loop_close(&loop);
	}
	CHECK_INT(found, 1);
	char command[96];
	snprintf(command, sizeof command, "rm -rf %s", path);
	CHECK_INT(system(command), 0);
}

static int print_schemas(void)
{
	struct buf out = {0};
	struct json_writer w = {.out = &out};
	json_begin_object(&w);
	json_key(&w, "Sandbox");
	json_schema(&w, &sandbox_model, FIELD_SHOWN);
	json_key(&w, "CreateRequest");
	json_schema(&w, &sandbox_model, FIELD_CREATE);
	json_key(&w, "ChangeRequest");
	json_schema(&w, &sandbox_model, FIELD_CHANGE);
	json_end_object(&w);
	printf("%.*s\n", (int)out.len, out.data);
	buf_finish(&out);
	return 0;
}

static const struct check_test tests[] = {
	TEST(describes_every_member_once),
	TEST(has_no_name_twice),
	TEST(takes_requests_from_the_settings_alone),
	TEST(reads_from_json_what_it_wrote),
	TEST(names_the_field_and_its_limit),
	TEST(keeps_every_column),
};

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "schema") == 0)
		return print_schemas();
	return check_run(tests, sizeof tests / sizeof tests[0]);
}
