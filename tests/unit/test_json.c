/* JSON in and out: what is refused, what the messages say, what is written. */
#include <stdlib.h>

#include "check.h"
#include "json/json.h"
#include "base/utf8.h"

static struct error error;

static void delete_tree(cJSON **tree)
{
	cJSON_Delete(*tree);
}
#define autotree __attribute__((cleanup(delete_tree))) cJSON

static bool parses_n(const char *text, size_t len)
{
	/* A copy without a byte after it, so that the sanitizer sees every read past the end. */
	char *copy = malloc(len ? len : 1);
	memcpy(copy, text, len);
	error = (struct error){0};
	autotree *tree = NULL;
	int r = json_parse(copy, len, &tree, &error);
	free(copy);
	CHECK(r == 0 || error.code == ERROR_INVALID_JSON);
	return r == 0;
}

#define PARSES(literal) parses_n("" literal, sizeof(literal) - 1)

/* ---- in ---- */

static void accepts_every_kind_of_value(void)
{
	CHECK(PARSES("{\"a\": [1, -0, 0.5, 1e3, -1.5E-7, 12345], \"b\": {}, \"c\": []}"));
	CHECK(PARSES(" \t\r\n true \n") && PARSES("false") && PARSES("null") && PARSES("\"\""));
	CHECK(PARSES(
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\xc3\xa9\xf0\x9f\x98\x80\""));
}

static void refuses_text_that_is_not_utf8(void)
{
	CHECK(!PARSES("\"\xff\"") && !PARSES("\"\x80\"") && !PARSES("\"\xc3\""));
	CHECK(!PARSES("\"\xc0\xaf\"") && !PARSES("\"\xe0\x80\xaf\"") &&
		!PARSES("\"\xf0\x80\x80\xaf\""));
	CHECK(!PARSES("\"\xed\xa0\x80\"") && !PARSES("\"\xed\xbf\xbf\""));
	CHECK(!PARSES("\"\xf4\x90\x80\x80\"") && !PARSES("\"\xf5\x80\x80\x80\""));
	CHECK(!PARSES("\"\xe2\x82") && !PARSES("{\"\xff\": 1}"));
}

static void refuses_nul_in_strings(void)
{
	CHECK(!PARSES("\"a\\u0000b\""));
	CHECK_STR(error.message, "this is not JSON: NUL in a string at byte 2");
	CHECK(!PARSES("{\"a\\u0000\": 1}"));
	CHECK(!PARSES("\"a\0b\"") && !PARSES("{}\0") && !PARSES("\0"));
}

static void refuses_malformed_escapes(void)
{
	CHECK(!PARSES("\"\\u00zz\"") && !PARSES("\"\\u12\"") && !PARSES("\"\\u\"") &&
		!PARSES("\"\\x41\""));
	CHECK(!PARSES("\"\\") && !PARSES("\"\\\"") && !PARSES("\"\\u004"));
}

static void refuses_lone_surrogates(void)
{
	CHECK(!PARSES("\"\\ud800\"") && !PARSES("\"\\udc00\"") && !PARSES("\"\\ud800\\u0041\""));
}

static void refuses_control_characters(void)
{
	CHECK(!PARSES("\"a\nb\"") && !PARSES("\"\t\"") && !PARSES("\x01 1") && !PARSES("[1,\v2]"));
}

static bool parses_nested(size_t depth, char open, char close)
{
	autobuf text = {0};
	for (size_t i = 0; i < depth; i++)
		buf_append_char(&text, open);
	for (size_t i = 0; i < depth; i++)
		buf_append_char(&text, close);
	return parses_n(text.data, text.len);
}

static void refuses_deep_nesting(void)
{
	CHECK(parses_nested(JSON_MAX_DEPTH, '[', ']'));
	CHECK(!parses_nested(JSON_MAX_DEPTH + 1, '[', ']'));
	CHECK_STR(error.message, "the nesting is deeper than 64 levels");
	CHECK(!parses_nested(1000000, '[', ']'));
	CHECK(!parses_nested(1000000, '{', '}'));
}

static void refuses_duplicate_keys(void)
{
	CHECK(!PARSES("{\"a\": 1, \"b\": 2, \"a\": 3}"));
	CHECK_STR(error.message, "the key \"a\" is there twice");
	CHECK_STR(error.field, "a");
	CHECK(!PARSES("[{\"x\": {\"a\": 1, \"\\u0061\": 2}}]"));
	CHECK(PARSES("{\"a\": {\"a\": 1}, \"A\": 2}"));
}

static bool parses_keys(int count, int last)
{
	autobuf text = {0};
	buf_append_char(&text, '{');
	for (int i = 0; i < count; i++)
		buf_printf(&text, "\"k%d\":0,", i);
	buf_printf(&text, "\"k%d\":0}", last);
	return parses_n(text.data, text.len);
}

static void refuses_duplicates_among_many_and_too_many_keys(void)
{
	CHECK(parses_keys(JSON_MAX_KEYS - 1, JSON_MAX_KEYS));
	CHECK(!parses_keys(JSON_MAX_KEYS - 1, 4711));
	CHECK_STR(error.field, "k4711");
	CHECK(!parses_keys(JSON_MAX_KEYS, JSON_MAX_KEYS));
	CHECK_STR(error.message, "there are more than 10000 keys");
}

static void refuses_too_many_values(void)
{
	autobuf text = {0};
	buf_append_char(&text, '[');
	for (int i = 1; i < JSON_MAX_VALUES; i++)
		buf_append_str(&text, "0,");
	buf_append_str(&text, "0]");
	CHECK(parses_n(text.data, text.len));
	text.len--;
	buf_append_str(&text, ",0]");
	CHECK(!parses_n(text.data, text.len));
}

static void refuses_trailing_text(void)
{
	CHECK(!PARSES("{} x") && !PARSES("{}{}") && !PARSES("1 2") && !PARSES("null,") &&
		!PARSES("[]]"));
	CHECK(!PARSES("nullx") && !PARSES("truefalse"));
}

static void refuses_malformed_numbers(void)
{
	static const char *const numbers[] = {"01", "-", "1.", ".5", "+1", "1e", "1e+", "-01", "00",
		"0x10", "1.e3", "1234567890123456789012345678901234567890123456789012345678901234",
		"1-2", "--1", "NaN", "Infinity", "1_000"};
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		if (parses_n(numbers[i], strlen(numbers[i])))
			check_fail(__FILE__, __LINE__, numbers[i], "accepted", "refused");
}

static void refuses_numbers_that_are_not_finite(void)
{
	CHECK(!PARSES("[1e400]") && !PARSES("-1e999"));
	CHECK_STR(error.message, "a number is too large");
	CHECK(PARSES("1e300") && PARSES("1e-400"));
}

static void refuses_what_is_not_json(void)
{
	static const char *const texts[] = {"", "  ", "{", "[", "}", "]", "[1,]", "{\"a\":1,}",
		"{,}", "[,1]", "{\"a\"}", "{\"a\":}", "{a:1}", "{1:2}", "'a'", "tru", "nul", "True",
		"[1 2]", "[1}", "{\"a\":1]", "\"abc", "// x\n1", "\xef\xbb\xbf{}", "{\"a\" \"b\"}",
		"undefined"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (parses_n(texts[i], strlen(texts[i])))
			check_fail(__FILE__, __LINE__, texts[i], "accepted", "refused");
}

/* ---- fields ---- */

struct thing {
	const char *name;
	bool on;
	int64_t count;
	int64_t timeout;
	int64_t memory;
	int64_t cpu;
	const cJSON *inner;
	const cJSON *list;
	const cJSON *env;
	const cJSON *extra;
};

static const struct json_field thing_fields[] = {
	{"name", FIELD_TEXT, offsetof(struct thing, name), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, 8},
	{"on", FIELD_BOOL, offsetof(struct thing, on)},
	{"count", FIELD_INTEGER, offsetof(struct thing, count), 0, 1, 100},
	{"timeout", FIELD_DURATION, offsetof(struct thing, timeout), 0, 1000, 3600000},
	{"memory", FIELD_BYTES, offsetof(struct thing, memory), 0, 1 << 20, INT64_C(1) << 40},
	{"cpu", FIELD_CPU, offsetof(struct thing, cpu), 0, 100, 4000},
	{"inner", FIELD_OBJECT, offsetof(struct thing, inner)},
	{"list", FIELD_ARRAY, offsetof(struct thing, list), FIELD_NOT_EMPTY, 0, 2},
	{"env", FIELD_STRING_MAP, offsetof(struct thing, env), 0, 0, 3},
	{"extra", FIELD_ANY, offsetof(struct thing, extra)},
};

static cJSON *thing_tree;

static int decode(const char *text, const char *path, struct thing *thing)
{
	cJSON_Delete(thing_tree);
	thing_tree = NULL;
	error = (struct error){0};
	CHECK(json_parse(text, strlen(text), &thing_tree, &error) == 0);
	return json_decode(thing_tree, thing_fields, sizeof thing_fields / sizeof thing_fields[0],
		path, thing, &error);
}

/* The text must be refused, with this code, field and message. */
static void refused(const char *text, enum error_code code, const char *field, const char *message)
{
	struct thing thing = {0};
	CHECK(decode(text, "", &thing) < 0);
	CHECK_STR(error.field, field);
	CHECK_STR(error.message, message);
	CHECK_INT(error.code, code);
}

static void fills_a_struct(void)
{
	struct thing t = {0};
	CHECK(decode("{\"name\":\"x\",\"on\":true,\"count\":7,\"timeout\":\"1m30s\",\"memory\":\"256Mi\","
		     "\"cpu\":\"500m\",\"inner\":{},\"list\":[1],\"env\":{\"A\":\"b\"},\"extra\":1.5}",
		      "", &t) == 0);
	CHECK_STR(t.name, "x");
	CHECK(t.on && t.count == 7 && t.timeout == 90000 && t.memory == 256 << 20 && t.cpu == 500);
	CHECK(cJSON_IsObject(t.inner) && cJSON_GetArraySize(t.list) == 1);
	CHECK_STR(cJSON_GetObjectItem(t.env, "A")->valuestring, "b");
	CHECK(t.extra->valuedouble == 1.5);
}

static void takes_numbers_for_sizes_and_cpu(void)
{
	struct thing t = {0};
	CHECK(decode("{\"name\":\"x\",\"memory\":1048576,\"cpu\":0.3}", "", &t) == 0);
	CHECK(t.memory == 1048576 && t.cpu == 300);
	CHECK(decode("{\"name\":\"x\",\"cpu\":\"1.5\"}", "", &t) == 0);
	CHECK(t.cpu == 1500);
}

static void leaves_absent_and_null_fields_alone(void)
{
	struct thing t = {.count = 42, .on = true};
	CHECK(decode("{\"name\":\"x\",\"count\":null}", "", &t) == 0);
	CHECK(t.count == 42 && t.on);
}

static void names_unknown_and_missing_fields(void)
{
	refused("{\"name\":\"x\",\"nme\":1}", ERROR_UNKNOWN_FIELD, "nme",
		"\"nme\" is not a known field");
	refused("{\"Name\":\"x\"}", ERROR_UNKNOWN_FIELD, "Name", "\"Name\" is not a known field");
	refused("{}", ERROR_MISSING_FIELD, "name", "\"name\" is required");
	refused("{\"name\":null}", ERROR_MISSING_FIELD, "name", "\"name\" is required");
}

static void says_what_a_field_must_be(void)
{
	const enum error_code code = ERROR_INVALID_FIELD;
	refused("{\"name\":1}", code, "name", "\"name\" must be a string");
	refused("{\"name\":\"\"}", code, "name", "\"name\" must be a string that is not empty");
	refused("{\"name\":\"123456789\"}", code, "name",
		"\"name\" must not be longer than 8 bytes");
	refused("{\"on\":1}", code, "on", "\"on\" must be true or false");
	refused("{\"count\":\"1\"}", code, "count", "\"count\" must be a whole number");
	refused("{\"count\":1.5}", code, "count", "\"count\" must be a whole number");
	refused("{\"count\":0}", code, "count", "\"count\" must be between 1 and 100");
	refused("{\"count\":-1}", code, "count", "\"count\" must be between 1 and 100");
	refused("{\"count\":9007199254740994}", code, "count", "\"count\" must be a whole number");
	refused("{\"count\":1e300}", code, "count", "\"count\" must be a whole number");
	refused("{\"timeout\":30}", code, "timeout",
		"\"timeout\" must be a duration such as \"30s\"");
	refused("{\"timeout\":\"30\"}", code, "timeout",
		"\"timeout\" must be a duration such as \"30s\"");
	refused("{\"timeout\":\"2h\"}", code, "timeout", "\"timeout\" must be between 1s and 1h");
	refused("{\"memory\":\"1Kx\"}", code, "memory",
		"\"memory\" must be a size such as \"256Mi\" or a number of bytes");
	refused("{\"memory\":-5}", code, "memory",
		"\"memory\" must be a size such as \"256Mi\" or a number of bytes");
	refused("{\"memory\":\"1Ki\"}", code, "memory", "\"memory\" must be between 1Mi and 1Ti");
	refused("{\"cpu\":-1}", code, "cpu",
		"\"cpu\" must be an amount of CPU such as \"500m\" or 0.5");
	refused("{\"cpu\":1e300}", code, "cpu",
		"\"cpu\" must be an amount of CPU such as \"500m\" or 0.5");
	refused("{\"cpu\":64}", code, "cpu", "\"cpu\" must be between 100m and 4000m");
	refused("{\"inner\":[]}", code, "inner", "\"inner\" must be an object");
	refused("{\"list\":{}}", code, "list", "\"list\" must be an array");
	refused("{\"list\":[]}", code, "list", "\"list\" must not be empty");
	refused("{\"list\":[1,2,3]}", code, "list", "\"list\" must not have more than 2 entries");
	refused("{\"env\":[]}", code, "env", "\"env\" must be an object of strings");
	refused("{\"env\":{\"A\":1}}", code, "env.A", "\"env.A\" must be a string");
}

static void puts_the_path_in_front(void)
{
	struct thing t = {0};
	CHECK(decode("{\"cpu\":true}", "resources.", &t) < 0);
	CHECK_STR(error.field, "resources.cpu");
	CHECK(decode("{}", "resources.", &t) < 0);
	CHECK_STR(error.message, "\"resources.name\" is required");
}

static void wants_an_object_at_the_top(void)
{
	struct thing t = {0};
	CHECK(decode("[1]", "", &t) < 0);
	CHECK_INT(error.code, ERROR_INVALID_JSON);
	CHECK_STR(error.message, "a JSON object was expected");
	CHECK(json_decode(NULL, thing_fields, 1, "", &t, &error) < 0);
}

static void survives_very_long_names(void)
{
	struct thing t = {0};
	autobuf text = {0};
	buf_append_str(&text, "{\"");
	for (int i = 0; i < 5000; i++)
		buf_append_str(&text, "\xc3\xa9");
	buf_append(&text, "\":1}", 5);
	CHECK(decode(text.data, "", &t) < 0);
	CHECK_INT(error.code, ERROR_UNKNOWN_FIELD);
}

/* ---- out ---- */

static struct buf written;

static const char *text_of(struct buf *b)
{
	buf_append_char(b, '\0');
	CHECK(!b->failed);
	return b->data;
}

static struct json_writer fresh_writer(void)
{
	buf_finish(&written);
	return (struct json_writer){.out = &written};
}

static void places_commas(void)
{
	struct json_writer w = fresh_writer();
	json_begin_object(&w);
	json_put_string(&w, "a", "b");
	json_put_int(&w, "i", INT64_MIN);
	json_put_bool(&w, "t", true);
	json_key(&w, "list");
	json_begin_array(&w);
	json_int(&w, 1);
	json_begin_object(&w);
	json_end_object(&w);
	json_begin_array(&w);
	json_end_array(&w);
	json_null(&w);
	json_end_array(&w);
	json_key(&w, "raw");
	json_raw(&w, "{\"x\": 1}");
	json_put_string(&w, "no", NULL);
	json_put_time(&w, "at", 0);
	json_end_object(&w);
	CHECK_STR(text_of(&written),
		"{\"a\":\"b\",\"i\":-9223372036854775808,\"t\":true,\"list\":[1,{},[],null],"
		"\"raw\":{\"x\": 1},\"no\":null,\"at\":\"1970-01-01T00:00:00.000Z\"}");
}

static const char *quoted(const char *s, size_t len)
{
	struct json_writer w = fresh_writer();
	json_string_n(&w, s, len);
	return text_of(&written);
}

static void escapes_what_json_wants_escaped(void)
{
	CHECK_STR(quoted("", 0), "\"\"");
	CHECK_STR(quoted("a\"b\\c/d", 7), "\"a\\\"b\\\\c/d\"");
	CHECK_STR(quoted("\b\f\n\r\t\0\x1f\x7f", 8), "\"\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\"");
	CHECK_STR(quoted("12345678\n12345678", 17), "\"12345678\\n12345678\"");
}

static void replaces_bytes_that_are_not_utf8(void)
{
	CHECK_STR(quoted("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9),
		"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
	CHECK_STR(quoted("a\xff"
			 "b",
			  3),
		"\"a\xef\xbf\xbd"
		"b\"");
	CHECK_STR(quoted("\xe2\x82", 2), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	CHECK_STR(quoted("\xed\xa0\x80", 3), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void writes_what_it_can_read_back(void)
{
	char bytes[512];
	for (size_t n = 0; n < sizeof bytes; n++) {
		for (size_t i = 0; i < n; i++)
			bytes[i] = (char)(1 + (i * 31 + n * 7) % 127);
		quoted(bytes, n);
		autotree *tree = NULL;
		CHECK(json_parse(written.data, written.len - 1, &tree, &error) == 0);
		CHECK(strlen(tree->valuestring) == n && memcmp(tree->valuestring, bytes, n) == 0);
	}
}

static void encodes_base64_with_padding(void)
{
	static const char *const pairs[][2] = {
		{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"\xff\xfe\xfd", "//79"}};
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		struct json_writer w = fresh_writer();
		json_begin_array(&w);
		json_base64(&w, pairs[i][0], strlen(pairs[i][0]));
		json_int(&w, 1);
		json_end_array(&w);
		char wanted[64];
		snprintf(wanted, sizeof wanted, "[\"%s\",1]", pairs[i][1]);
		CHECK_STR(text_of(&written), wanted);
	}
}

static void knows_a_line_of_json(void)
{
	static const char *const lines[] = {"1", " [1, 2.5e-3 ,\t-0]", "{}", "[]", "[[],{}]",
		"{\"a\":{\"b\":[true,false,null]}}", "\"\\u00e4\\n\xc3\xa4\"", "\"\\ud800\"",
		"[[1],[2]]", "{\"a\":1,\"a\":2}"};
	static const char *const others[] = {"", " ", "01", "1.", "1e", "-", "[1,]", "[,1]",
		"[1 2]", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}", "[", "]", "{]", "[}", "nul",
		"nulll", "\"", "\"\\x\"", "\"\\u12g4\"", "\"\xff\"", "\"\n\"", "1\n", "[1,\n2]",
		"\r1", "1 2", "{} {}", "NaN", "+1", ".5", "'a'", "\"a\" x"};
	char deep[2 * JSON_MAX_DEPTH + 3];
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		CHECK(json_is_line(lines[i], strlen(lines[i])));
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		CHECK(!json_is_line(others[i], strlen(others[i])));
	CHECK(!json_is_line("\"\0\"", 3));
	memset(deep, '[', JSON_MAX_DEPTH + 1);
	memset(deep + JSON_MAX_DEPTH + 1, ']', JSON_MAX_DEPTH + 1);
	CHECK(json_is_line(deep + 1, (size_t)2 * JSON_MAX_DEPTH));
	CHECK(!json_is_line(deep, (size_t)2 * JSON_MAX_DEPTH + 2));
}

static void writes_json_without_anything_beyond_ascii(void)
{
	static const char text[] = "{\"k\":\"a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"}";
	struct buf out = {0};
	json_append_ascii(&out, text, sizeof text - 1);
	buf_append_char(&out, '\0');
	CHECK_STR(out.data, "{\"k\":\"a\\u00e4\\u20ac\\ud83d\\ude00\"}");
	buf_finish(&out);
}

static void joins_text_that_was_cut_anywhere(void)
{
	static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z";
	for (size_t piece = 1; piece < sizeof text; piece++) {
		struct utf8_rest rest = {.len = 0};
		struct buf out = {0};
		for (size_t at = 0; at < sizeof text - 1; at += piece) {
			size_t left = sizeof text - 1 - at;
			utf8_join(&rest, text + at, left < piece ? left : piece, &out);
			CHECK_INT((long long)utf8_incomplete_tail(out.data, out.len), 0);
		}
		buf_append_char(&out, '\0');
		CHECK_STR(out.data, text);
		buf_finish(&out);
	}
}

static const struct check_test tests[] = {
	TEST(knows_a_line_of_json),
	TEST(writes_json_without_anything_beyond_ascii),
	TEST(joins_text_that_was_cut_anywhere),
	TEST(accepts_every_kind_of_value),
	TEST(refuses_text_that_is_not_utf8),
	TEST(refuses_nul_in_strings),
	TEST(refuses_malformed_escapes),
	TEST(refuses_lone_surrogates),
	TEST(refuses_control_characters),
	TEST(refuses_deep_nesting),
	TEST(refuses_duplicate_keys),
	TEST(refuses_duplicates_among_many_and_too_many_keys),
	TEST(refuses_too_many_values),
	TEST(refuses_trailing_text),
	TEST(refuses_malformed_numbers),
	TEST(refuses_numbers_that_are_not_finite),
	TEST(refuses_what_is_not_json),
	TEST(fills_a_struct),
	TEST(takes_numbers_for_sizes_and_cpu),
	TEST(leaves_absent_and_null_fields_alone),
	TEST(names_unknown_and_missing_fields),
	TEST(says_what_a_field_must_be),
	TEST(puts_the_path_in_front),
	TEST(wants_an_object_at_the_top),
	TEST(survives_very_long_names),
	TEST(places_commas),
	TEST(escapes_what_json_wants_escaped),
	TEST(replaces_bytes_that_are_not_utf8),
	TEST(writes_what_it_can_read_back),
	TEST(encodes_base64_with_padding),
};

int main(void)
{
	int failed = RUN_TESTS(tests);
	cJSON_Delete(thing_tree);
	buf_finish(&written);
	return failed;
}
