/*
 * The tables of fields: that they describe every member of their structs once, and that what goes
 * through JSON and through the store comes back. `test_fields schema` prints the schemas, which
 * tools/check-schemas compares with api/openapi.yaml.
 */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "json/alias.h"
#include "model/build.h"
#include "model/checkpoint.h"
#include "model/code.h"
#include "model/destination.h"
#include "model/event.h"
#include "model/execution.h"
#include "model/key.h"
#include "model/port.h"
#include "model/sandbox.h"
#include "model/secret.h"
#include "model/snapshot.h"
#include "model/volume.h"
#include "server/dialects.h"
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
	static char env[] = "A=1\0B=2", list[] = "a.test\0*.b.test:443";
	static char rules[] = "a.test x-a: 1\0a.test x-b: v: w\0*.b.test c: ${secret:D}";
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
		else if (f->kind == FIELD_LIST)
			*(struct strings *)(void *)at = (struct strings){list, sizeof list};
		else if (f->kind == FIELD_HEADERS)
			*(struct strings *)(void *)at = (struct strings){rules, sizeof rules};
		else if (f->kind == FIELD_BOOL || f->kind == FIELD_ENUM)
			field_set_number(f, r, 1);
		else if (f->size)
			field_set_number(f, r, (int64_t)(f->min ? f->min : 1000) + (int64_t)i * 10);
	}
	r->name = "n";
	r->user = "u";
	r->preview_host = "h";
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

/* ---- aliases ---- */

static const char *const their_expiries[] = {"kill", "freeze", "stop", NULL};
static const char *const their_modes[] = {"long", "short"};

static bool has_project(const void *record)
{
	return ((const struct sandbox_record *)record)->project[0];
}

static void put_upper(struct json_writer *w, const struct field *f, const void *record)
{
	char letter[2] = {(char)(field_text(f, record)[0] - 'a' + 'A'), '\0'};
	json_string(w, letter);
}

#define OURS(member) JSON_ALIAS(struct sandbox_record, member)
#define BOTH         .flags = FIELD_CREATE | FIELD_SHOWN

/* One of each kind of difference that a foreign API may have. */
static const struct json_alias first_aliases[] = {
	{"boxID", OURS(id), .prefix = "box-"},
	{"team", OURS(tenant), .empty = JSON_EMPTY_NULL},
};
static const struct json_alias foreign_aliases[] = {
	{"label", OURS(name), .flags = FIELD_CREATE | FIELD_SHOWN | FIELD_REQUIRED},
	{"envVars", OURS(env), BOTH},
	{"memoryMB", OURS(resources.memory), BOTH, .scale = 1 << 20},
	{"times.stop.minutes", OURS(idle_ms), BOTH, .scale = 60000, .max = 3600000},
	{"times.stop.then", OURS(on_idle), BOTH, .names = their_expiries},
	{"times.run", OURS(execution_ms), BOTH, .empty = JSON_EMPTY_OMITTED},
	{"resumes", OURS(auto_resume), BOTH},
	{"mode", OURS(ephemeral), .names = their_modes},
	{"project.id", OURS(project), .shown_if = has_project},
	{"project.letter", OURS(project), .shown_if = has_project, .put = put_upper},
	{"version", .constant = "1"},
	{"secret", OURS(description), .flags = FIELD_CREATE},
};
static const struct json_alias_table first_table = {
	.model = &sandbox_model, .aliases = first_aliases, .count = 2};
static const struct json_alias_table foreign_table = {.model = &sandbox_model,
	.first = &first_table,
	.aliases = foreign_aliases,
	.count = sizeof foreign_aliases / sizeof foreign_aliases[0]};

static int decode_foreign(const char *body, struct scratch *memory, struct sandbox_settings *to,
	struct error *e, cJSON **tree)
{
	struct field rows[JSON_ALIASES_MAX];
	size_t count = json_alias_rows(&foreign_table, FIELD_CREATE, rows);
	const struct json_part parts[] = {{rows, NULL, count, 0, to, NULL}, {0}};
	*e = (struct error){0};
	CHECK_INT(json_parse(body, strlen(body), tree, e), 0);
	return json_decode_parts(*tree, parts, memory, e);
}

static void writes_and_reads_what_another_api_calls_it(void)
{
	static char env[] = "A=1";
	struct sandbox_record from = {.name = "n",
		.description = "d",
		.tenant = "",
		.project = "p",
		.id = "i",
		.env = {env, sizeof env},
		.resources.memory = 512 << 20,
		.idle_ms = 120000,
		.on_idle = EXPIRY_SUSPEND,
		.auto_resume = true,
		.ephemeral = true};
	struct sandbox_settings back = {0};
	autobuf out = {0};
	autoscratch memory = {0};
	struct json_writer w = {.out = &out};
	struct error e;
	cJSON *tree;
	json_encode_alias_object(&w, &foreign_table, &from);
	buf_append_char(&out, '\0');
	CHECK_STR(out.data,
		"{\"boxID\":\"box-i\",\"team\":null,\"label\":\"n\",\"envVars\":{\"A\":\"1\"},"
		"\"memoryMB\":512,\"times\":{\"stop\":{\"minutes\":2,\"then\":\"stop\"}},"
		"\"resumes\":true,\"mode\":\"short\",\"project\":{\"id\":\"p\",\"letter\":\"P\"},"
		"\"version\":1}");
	CHECK_INT(decode_foreign("{\"label\":\"n\",\"envVars\":{\"A\":\"1\"},\"memoryMB\":512,"
				 "\"times\":{\"stop\":{\"minutes\":2,\"then\":\"stop\"},"
				 "\"run\":\"3s\"},\"resumes\":true,\"secret\":\"d\"}",
			  &memory, &back, &e, &tree),
		0);
	CHECK_STR(back.name, "n");
	CHECK_STR(back.description, "d");
	CHECK_STR(back.env.data, "A=1");
	CHECK_INT(back.resources.memory, 512 << 20);
	CHECK_INT(back.idle_ms, 120000);
	CHECK_INT(back.execution_ms, 3000);
	CHECK_INT(back.on_idle, EXPIRY_SUSPEND);
	CHECK(back.auto_resume);
	cJSON_Delete(tree);
}

static void leaves_out_an_object_without_members(void)
{
	struct sandbox_record from = {.name = "", .tenant = "t", .project = "", .execution_ms = 5};
	autobuf out = {0};
	struct json_writer w = {.out = &out};
	json_encode_alias_object(&w, &foreign_table, &from);
	buf_append_char(&out, '\0');
	CHECK(!strstr(out.data, "project"));
	CHECK(strstr(out.data,
		"\"times\":{\"stop\":{\"minutes\":0,\"then\":\"kill\"},\"run\":\"5ms\"}"));
}

static void refuses_in_the_words_of_the_other_api(void)
{
	static const struct {
		const char *body, *message;
	} cases[] = {
		{"{}", "\"label\" is required"},
		{"{\"label\":1}", "\"label\" must be a string"},
		{"{\"label\":\"n\",\"memoryMB\":1}",
			"\"memoryMB\" must be between 16 and 67108864"},
		{"{\"label\":\"n\",\"memoryMB\":\"1Gi\"}", "\"memoryMB\" must be a whole number"},
		{"{\"label\":\"n\",\"times\":{\"stop\":{\"minutes\":61}}}",
			"\"times.stop.minutes\" must be between 0 and 60"},
		{"{\"label\":\"n\",\"times\":{\"stop\":{\"then\":\"destroy\"}}}",
			"\"times.stop.then\" must be \"kill\", \"freeze\" or \"stop\""},
		{"{\"label\":\"n\",\"times\":{\"stop\":1}}", "\"times.stop\" must be an object"},
		{"{\"label\":\"n\",\"name\":\"n\"}", "\"name\" is not a known field"},
		{"{\"label\":\"n\",\"boxID\":\"x\"}", "\"boxID\" is not a known field"},
		{"{\"label\":\"n\",\"envVars\":{\"A\":1}}", "\"envVars.A\" must be a string"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sandbox_settings to = {0};
		autoscratch memory = {0};
		struct error e;
		cJSON *tree;
		CHECK(decode_foreign(cases[i].body, &memory, &to, &e, &tree) < 0);
		CHECK_STR(e.message, cases[i].message);
		cJSON_Delete(tree);
	}
}

/* Names that answers have twice would be one member too many. */
static void check_shown_names(const struct json_alias_table *t)
{
	for (const struct json_alias *a = t->aliases; a < t->aliases + t->count; a++)
		for (const struct json_alias *b = t->aliases; b < a; b++)
			CHECK(strcmp(a->name, b->name) != 0);
}

static void check_aliases(const struct json_alias_table *t)
{
	struct field rows[JSON_ALIASES_MAX];
	if (t->first)
		check_aliases(t->first);
	for (const struct json_alias *a = t->aliases; a < t->aliases + t->count; a++) {
		const struct field *f = json_alias_field(t, a);
		int writers = (a->put != NULL) + (a->constant != NULL) + (a->prefix != NULL);
		if (f)
			CHECK_INT((long long)f->size, (long long)a->size);
		else
			CHECK(a->put || a->constant);
		CHECK(writers + (a->names != NULL) <= 1);
		if (a->names)
			CHECK(f->kind == FIELD_ENUM || f->kind == FIELD_BOOL);
		if (a->empty)
			CHECK(f != NULL);
		if (a->scale)
			CHECK_INT(field_storage(f), STORED_NUMBER);
	}
	CHECK(json_alias_rows(t, FIELD_CREATE, rows) <= JSON_ALIASES_MAX);
	check_shown_names(t);
}

static void calls_only_fields_by_other_names_that_there_are(void)
{
	check_aliases(&foreign_table);
	for (const struct dialect *const *d = dialects; *d; d++)
		for (const struct json_alias_table *const *t = (*d)->aliases; t && *t; t++)
			check_aliases(*t);
}

/* ---- the store ---- */

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

/* As api/openapi.yaml calls them. */
static const struct {
	const char *name;
	const struct field_table *table;
	unsigned flags;
} schemas[] = {
	{"Sandbox", &sandbox_model, FIELD_SHOWN},
	{"CreateRequest", &sandbox_model, FIELD_CREATE},
	{"ChangeRequest", &sandbox_model, FIELD_CHANGE},
	{"Snapshot", &snapshot_model, FIELD_SHOWN},
	{"Checkpoint", &checkpoint_model, FIELD_SHOWN},
	{"Volume", &volume_model, FIELD_SHOWN},
	{"Key", &key_model, FIELD_SHOWN},
	{"Port", &port_model, FIELD_SHOWN},
	{"Destination", &destination_model, FIELD_SHOWN},
	{"KeyRequest", &key_model, FIELD_CREATE},
	{"Secret", &secret_model, FIELD_SHOWN},
	{"SecretRequest", &secret_model, FIELD_CREATE},
	{"Template", &template_model, FIELD_SHOWN},
	{"Build", &build_model, FIELD_SHOWN},
	{"ExecutionFields", &execution_model, FIELD_SHOWN},
	{"Process", &process_model, FIELD_SHOWN},
	{"Context", &code_context_model, FIELD_SHOWN},
	{"LifeEvent", &event_model, FIELD_SHOWN},
};

static int print_schemas(void)
{
	struct buf out = {0};
	struct json_writer w = {.out = &out};
	json_begin_object(&w);
	for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
		json_key(&w, schemas[i].name);
		json_schema(&w, schemas[i].table, schemas[i].flags);
	}
	json_end_object(&w);
	printf("%.*s\n", (int)out.len, out.data);
	buf_finish(&out);
	return 0;
}

static void leaves_out_what_a_record_does_not_have(void)
{
	struct buf out = {0};
	struct json_writer w = {.out = &out};
	const struct snapshot_record uncounted = {.id = "i", .bytes = 5, .files = -1};
	const struct execution_view killed = {.id = "x",
		.kind = EXECUTION_JOB,
		.status = EXECUTION_FAILED,
		.shown_status = "failed",
		.signal = 9,
		.exit_code = 137,
		.length = {7, 0}};
	const struct execution_view running = {.id = "x", .status = EXECUTION_RUNNING};
	json_encode_object(&w, &snapshot_model, &uncounted, NULL);
	buf_append_char(&out, '\0');
	CHECK(!strstr(out.data, "sizeBytes") && !strstr(out.data, "env"));
	CHECK(strstr(out.data, "\"status\":\"ready\""));
	out.len = 0;
	w.need_comma = false;
	json_encode_object(&w, &process_model, &killed, NULL);
	buf_append_char(&out, '\0');
	CHECK(strstr(out.data, "\"exitCode\":137,\"signal\":\"SIGKILL\""));
	CHECK(strstr(out.data, "\"stdout\":{\"length\":7,\"kept\":0}"));
	out.len = 0;
	w.need_comma = false;
	json_encode_object(&w, &execution_model, &running, NULL);
	buf_append_char(&out, '\0');
	CHECK(!strstr(out.data, "exitCode"));
	buf_finish(&out);
}

static const struct check_test tests[] = {
	TEST(describes_every_member_once),
	TEST(has_no_name_twice),
	TEST(takes_requests_from_the_settings_alone),
	TEST(reads_from_json_what_it_wrote),
	TEST(names_the_field_and_its_limit),
	TEST(writes_and_reads_what_another_api_calls_it),
	TEST(leaves_out_an_object_without_members),
	TEST(refuses_in_the_words_of_the_other_api),
	TEST(calls_only_fields_by_other_names_that_there_are),
	TEST(keeps_every_column),
	TEST(leaves_out_what_a_record_does_not_have),
};

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "schema") == 0)
		return print_schemas();
	return check_run(tests, sizeof tests / sizeof tests[0]);
}
