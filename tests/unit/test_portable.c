/* A sandbox as JSON: from a tar and back to it, whatever the pieces it comes in. */
#include "image/portable.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/tar_push.h"
#include "check.h"
#include "json/push.h"

static struct error error;

/* ---- tokens ---- */

/* All of them as letters, with the texts behind; pieces are joined. */
static int tokens(const char *text, size_t step, struct buf *out)
{
	static const char letters[] = "?{}[]k\"\"#.";
	struct json_push p = {0};
	size_t len = strlen(text);
	int token = JSON_MORE;
	bool in_text = false;
	for (size_t at = 0; token >= 0 && token != JSON_DONE;) {
		token = json_push_step(&p, &error);
		if (token == JSON_MORE || (token == JSON_DONE && at < len)) {
			size_t n = len - at < step ? len - at : step;
			json_push_add(&p, text + at, n);
			at += n;
			if (n == 0)
				json_push_end(&p);
			token = JSON_MORE;
			continue;
		}
		if (token > 0 && token != JSON_PIECE)
			buf_append_char(out, letters[token]);
		if (token == JSON_PIECE && !in_text)
			buf_append_char(out, ':');
		in_text = token == JSON_PIECE;
		if (token == JSON_KEY || token == JSON_PIECE || token == JSON_LITERAL)
			buf_append(out, p.text.data, p.text.len);
	}
	json_push_finish(&p);
	buf_append_char(out, '\0');
	return token < 0 ? -1 : 0;
}

static void takes_json_apart_in_pieces_of_any_size(void)
{
	for (size_t step = 1; step < 80; step++) {
		autobuf out = {0};
		CHECK(tokens(" {\"a\\u00e9\\n\":[1,-2.5e3 ,true,null,\"\"],\"b\":{\"c\":\"x\\ud83d\\ude00\xc3\xa9\\\"\"}} ",
			      step, &out) == 0);
		CHECK_STR(out.data,
			"{ka\xc3\xa9\n[#1#-2.5e3#true#null\"]kb{kc:x\xf0\x9f\x98\x80\xc3\xa9\"\"}}.");
	}
}

static void refuses_what_is_no_json(void)
{
	static const char *const bad[] = {"", "{", "[1,]", "{\"a\"}", "{a:1}", "[1 2]", "tru",
		"nan", "01", "1.", "\"\x01\"", "\"\xff\"", "\"\\x\"", "\"\\ud800\"", "\"\\udc00\"",
		"\"\\u0000\"", "{} {}", "[}", "\"a", "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		for (size_t step = 1; step < 4; step++) {
			autobuf out = {0};
			CHECK(tokens(bad[i], step, &out) < 0);
		}
}

/* ---- objects ---- */

static int read_all(const char *text, size_t len, size_t step, struct buf *tar)
{
	struct portable_reader *r = portable_reader_new();
	int result = PORTABLE_MORE;
	for (size_t at = 0; result >= 0 && result != PORTABLE_DONE;) {
		result = portable_read(r, tar, SIZE_MAX, &error);
		if (result != PORTABLE_MORE)
			continue;
		size_t n = len - at < step ? len - at : step;
		if (n == 0)
			portable_reader_end(r);
		portable_reader_add(r, text + at, n);
		at += n;
	}
	portable_reader_free(r);
	return result < 0 ? -1 : 0;
}

static void add_member(struct buf *out, char type, const char *path, const char *target,
	const char *content, bool plain)
{
	struct tar_member m = {.type = type,
		.size = strlen(content),
		.mode = 0751,
		.uid = 1000,
		.gid = 33,
		.mtime_s = -2,
		.mtime_ns = 500000000,
		.plain = plain};
	buf_append(&m.path, path, strlen(path) + 1);
	buf_append(&m.target, target, strlen(target) + 1);
	tar_append_header(out, &m);
	buf_append_str(out, content);
	while (out->len % TAR_BLOCK)
		buf_append_char(out, '\0');
	tar_member_finish(&m);
}

static void describe(const struct tar_push *p, struct buf *out)
{
	const struct tar_member *m = &p->reader.member;
	buf_printf(out, "\n%c %s %s %o %u:%u %lld.%u %d ", m->type, m->path.data, m->target.data,
		m->type == '2' || m->type == '1' ? 0 : m->mode, m->uid, m->gid,
		(long long)m->mtime_s, m->mtime_ns, m->plain);
}

/* What an archive holds, as text; in any order. */
static void summarize(const struct buf *tar, struct buf *out)
{
	struct tar_push p = {0};
	int step;
	tar_push_add(&p, tar->data, tar->len);
	while ((step = tar_push_step(&p)) > 0 && step != TAR_END)
		if (step == TAR_MEMBER)
			describe(&p, out);
		else
			buf_append(out, p.piece, p.piece_len);
	CHECK(step == TAR_END);
	tar_push_finish(&p);
	buf_append_char(out, '\0');
}

static void comes_back_from_json_as_it_was(void)
{
	autobuf tar = {0}, json = {0}, wanted = {0};
	const struct portable_head head = {"base", "/", "A=b", 4, 1};
	struct portable_writer *w = portable_writer_new(&head, &json);
	add_member(&tar, '0', "a/file", "", "some content", false);
	add_member(&tar, '0', "a/\xff\n\"", "", "", false);
	add_member(&tar, '0', "a/.wh.named", "", "x", true);
	add_member(&tar, '5', "a/empty", "", "", false);
	add_member(&tar, '2', "l", "/to/\xfe", "", false);
	add_member(&tar, '1', "hard", "a/file", "", false);
	buf_append(&tar, (const char[2 * TAR_BLOCK]){0}, 2 * TAR_BLOCK);
	for (size_t at = 0; at < tar.len; at += 100)
		CHECK(portable_write(w, tar.data + at, tar.len - at < 100 ? tar.len - at : 100,
			      &error) == 0);
	CHECK(portable_write_end(w, &error) == 0);
	portable_writer_free(w);
	summarize(&tar, &wanted);
	for (size_t step = 1; step <= json.len; step = step * 2 + 1) {
		autobuf again = {0}, got = {0};
		CHECK(read_all(json.data, json.len, step, &again) == 0);
		summarize(&again, &got);
		CHECK_STR(got.data, wanted.data);
	}
}

static void refuses_an_object_in_any_pieces_alike(void)
{
	static const char *const bad[] = {"[]",
		"{\"files\":[{\"path\":\"../a\",\"contents\":\"\"}]}",
		"{\"files\":[{\"path\":\"a\",\"size\":2,\"encoding\":\"base64\",\"contents\":\"YQ==\"}]}",
		"{\"files\":[{\"path\":\"a\",\"size\":1,\"encoding\":\"base64\",\"contents\":\"YQ==YQ==\"}]}",
		"{\"files\":[{\"path\":\"a\",\"size\":1,\"encoding\":\"base64\",\"contents\":\"YQ=\"}]}",
		"{\"links\":[{\"path\":\"a\",\"target\":\"b\"},{\"path\":\"./a\",\"target\":\"b\"}]}",
		"{\"env\":{\"A\":[]}}", "{\"env\":{\"A\":{}}}", "{\"what\":1}"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		for (size_t step = 1; step < 20; step++) {
			autobuf tar = {0};
			CHECK(read_all(bad[i], strlen(bad[i]), step, &tar) < 0);
			CHECK(error.message[0]);
		}
}

static const struct check_test tests[] = {
	TEST(takes_json_apart_in_pieces_of_any_size),
	TEST(refuses_what_is_no_json),
	TEST(comes_back_from_json_as_it_was),
	TEST(refuses_an_object_in_any_pieces_alike),
};

int main(void)
{
	return RUN_TESTS(tests);
}
