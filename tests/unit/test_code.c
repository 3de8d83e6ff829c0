/* What interpreters write, as the front reads it: messages among anything, in pieces of any size.
 */
#include <stdlib.h>

#include "box/code/code_core.h"
#include "check.h"

static const char key[] = "0123456789abcdef0123456789abcdef";
static size_t charged;
static struct code_message message;
static struct buf told; /* TYPE(field,field) of each message */

static void fresh(void)
{
	code_message_reset(&message);
	message = (struct code_message){.charged = &charged};
	buf_finish(&told);
}

static void note_message(void)
{
	buf_append_str(&told, message.type);
	for (size_t i = 0; i < message.field_count; i++) {
		buf_append_char(&told, i ? ',' : '(');
		buf_append(&told, message.fields[i].data, message.fields[i].len);
	}
	buf_append_str(&told, message.field_count ? ")" : "");
	buf_append_char(&told, ';');
}

/* In pieces of this size; what is left out is a '-'. */
static void feed(const char *data, size_t len, size_t piece)
{
	for (size_t at = 0; at < len;) {
		size_t part = len - at < piece ? len - at : piece;
		bool left_out = false;
		size_t used = code_message_feed(&message, key, data + at, part, &left_out);
		CHECK(used > 0 && used <= part);
		if (message.state == CODE_MESSAGE_WHOLE)
			note_message();
		if (left_out)
			buf_append_char(&told, '-');
		at += used;
	}
	buf_append_char(&told, '\0');
}

static void append_message(struct buf *out, const char *head, const char *body)
{
	buf_printf(out, "\n%s %s\n%s", key, head, body);
}

static void check_told(const struct buf *stream, const char *wanted)
{
	for (size_t piece = 1; piece <= stream->len; piece += piece < 50 ? 1 : 1000) {
		fresh();
		feed(stream->data, stream->len, piece);
		CHECK_STR(told.data, wanted);
		CHECK_INT((long long)charged,
			(long long)(message.state == CODE_MESSAGE_WHOLE ? message.total : 0));
	}
}

static void finds_messages_in_pieces_of_any_size(void)
{
	autobuf s = {0};
	append_message(&s, "ready 6 5", "3.11.2/home");
	append_message(&s, "done", "");
	append_message(&s, "result 10 1 0", "text/plain7");
	check_told(&s, "ready(3.11.2,/home);done;result(text/plain,7,);");
}

static void passes_over_what_is_no_message(void)
{
	autobuf s = {0};
	buf_append_str(&s, "noise without an end");
	append_message(&s, "done", "");
	buf_printf(&s, "\n\n\n%.31s done\n\n%s", key, key);
	buf_printf(&s, "\n%s\tdone\n", key);
	append_message(&s, "error 1 1 1", "abc");
	buf_append_str(&s, "trailing");
	append_message(&s, "done", "");
	check_told(&s, "done;error(a,b,c);done;");
}

static void believes_nobody_with_another_key(void)
{
	autobuf s = {0};
	buf_append_str(&s, "\n00000000000000000000000000000000 done\n");
	buf_append_str(&s, "\n0123456789abcdef0123456789abcdeF done\n");
	check_told(&s, "");
}

static void refuses_heads_that_make_no_sense(void)
{
	static const char *const heads[] = {"", " 1", "result x", "result 1 x", "result -1",
		"result 1  1", "result 1 ", "averyverylongtype 1", "result 99999999999999999999",
		"result 0x10", "result 1\t1"};
	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
		autobuf s = {0};
		append_message(&s, heads[i], "z");
		append_message(&s, "done", "");
		check_told(&s, "done;");
	}
}

static void refuses_more_fields_than_it_has_room_for(void)
{
	autobuf s = {0}, head = {0};
	buf_append_str(&head, "result");
	for (int i = 0; i <= CODE_FIELDS_MAX; i++)
		buf_append_str(&head, " 0");
	buf_append_char(&head, '\0');
	append_message(&s, head.data, "");
	buf_finish(&head);
	for (int i = 0; i < 1000; i++)
		buf_append_str(&head, "a");
	buf_append_char(&head, '\0');
	append_message(&s, head.data, "");
	append_message(&s, "done", "");
	check_told(&s, "done;");
}

static void understands_nothing_behind_a_message_that_is_too_large(void)
{
	autobuf s = {0};
	append_message(&s, "result 10 8388608", "text/plain");
	append_message(&s, "done", "");
	check_told(&s, "");
	CHECK(message.state == CODE_MESSAGE_NONSENSE);
}

static void leaves_out_what_there_is_no_room_for(void)
{
	autobuf s = {0};
	fresh();
	charged = CODE_BUFFERS_MAX - 5;
	append_message(&s, "result 10 1", "text/plain7");
	append_message(&s, "error 1 1 1", "abc");
	feed(s.data, s.len, 7);
	CHECK_STR(told.data, "-error(a,b,c);");
	code_message_reset(&message);
	CHECK_INT((long long)charged, CODE_BUFFERS_MAX - 5);
	charged = 0;
}

static void tells_a_run_by_lengths_and_to_a_shell_in_quotes(void)
{
	struct code_run r = {0};
	autobuf out = {0};
	buf_append_str(&r.code, "a'b\n\\$(x)\xc3\xa4");
	buf_append(&r.env, "A=1\0B=", 7);
	code_language_run(CODE_PYTHON, &r, &out);
	buf_append_char(&out, '\0');
	CHECK_STR(out.data, "__bunker_run 11 3 2\na'b\n\\$(x)\xc3\xa4"
			    "A=1B=");
	buf_finish(&out);
	code_language_run(CODE_BASH, &r, &out);
	buf_append_char(&out, '\0');
	CHECK_STR(out.data,
		"__bunker_run $'a\\047b\\012\\134\\044\\050x\\051\\303\\244' $'A\\0751' $'B\\075'\n"
		"eval \"$__bunker_code\" 0</dev/null\n__bunker_done\n");
	buf_finish(&r.code);
	buf_finish(&r.env);
}

static void knows_languages_by_all_their_names(void)
{
	static const struct {
		const char *name;
		enum code_language language;
	} names[] = {{"python", CODE_PYTHON}, {"Python3", CODE_PYTHON}, {"js", CODE_JAVASCRIPT},
		{"TypeScript", CODE_JAVASCRIPT}, {"ts", CODE_JAVASCRIPT}, {"sh", CODE_BASH}};
	enum code_language language;
	struct error e;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		CHECK_INT(code_language_of(names[i].name, &language, &e), 0);
		CHECK_INT(language, names[i].language);
	}
	CHECK(code_language_of("r", &language, &e) < 0);
	CHECK_STR(e.field, "language");
	CHECK(code_language_of("", &language, &e) < 0);
}

static const struct check_test tests[] = {
	TEST(finds_messages_in_pieces_of_any_size),
	TEST(passes_over_what_is_no_message),
	TEST(believes_nobody_with_another_key),
	TEST(refuses_heads_that_make_no_sense),
	TEST(refuses_more_fields_than_it_has_room_for),
	TEST(understands_nothing_behind_a_message_that_is_too_large),
	TEST(leaves_out_what_there_is_no_room_for),
	TEST(tells_a_run_by_lengths_and_to_a_shell_in_quotes),
	TEST(knows_languages_by_all_their_names),
};

int main(void)
{
	message.charged = &charged;
	int failed = RUN_TESTS(tests);
	code_message_reset(&message);
	buf_finish(&told);
	return failed;
}
