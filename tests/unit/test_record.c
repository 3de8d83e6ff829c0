/* Records between the front and a file worker. */
#include <errno.h>
#include <stdlib.h>

#include "base/processor.h"
#include "check.h"
#include "wire/record.h"

static void a_request_comes_back_as_it_went(void)
{
	autobuf out = {0};
	struct record_header h;
	struct file_request got, r = {
					 .fixed = {.op = FILE_READ,
						 .flags = FILE_FOLLOW,
						 .offset = 7,
						 .length = RECORD_UNKNOWN},
					 .text = {"/home", "a\nb", NULL, "root", NULL, "x"},
				 };
	CHECK_INT(record_append_request(&out, &r), 0);
	CHECK_INT(record_decode_header(out.data, &h), 0);
	CHECK_INT(h.type, RECORD_REQUEST);
	CHECK_INT((long long)h.size, (long long)(out.len - RECORD_HEADER_SIZE));
	CHECK_INT(record_decode_request(out.data + RECORD_HEADER_SIZE, (size_t)h.size, &got), 0);
	CHECK_INT(memcmp(&got.fixed, &r.fixed, sizeof r.fixed), 0);
	CHECK_STR(got.text[FILE_PATH], "a\nb");
	CHECK_STR(got.text[FILE_OTHER], "");
	CHECK_STR(got.text[FILE_EXTRA], "x");
}

static void refuses_requests_that_cannot_be(void)
{
	autobuf out = {0};
	struct file_request got, r = {.fixed = {.op = FILE_READ}};
	record_append_request(&out, &r);
	const char *payload = out.data + RECORD_HEADER_SIZE;
	size_t size = out.len - RECORD_HEADER_SIZE;
	CHECK_INT(record_decode_request(payload, size - 1, &got), -EPROTO);
	CHECK_INT(record_decode_request(payload, 8, &got), -EPROTO);
	r.fixed.op = FILE_OP_END;
	out.len = 0;
	record_append_request(&out, &r);
	CHECK_INT(record_decode_request(out.data + RECORD_HEADER_SIZE, size, &got), -EPROTO);
	r.fixed = (struct record_request){.op = FILE_READ, .flags = 1u << 31};
	out.len = 0;
	record_append_request(&out, &r);
	CHECK_INT(record_decode_request(out.data + RECORD_HEADER_SIZE, size, &got), -EPROTO);
	r.fixed = (struct record_request){.op = FILE_READ, .near = PROCESSOR_MAX + 1};
	out.len = 0;
	record_append_request(&out, &r);
	CHECK_INT(record_decode_request(out.data + RECORD_HEADER_SIZE, size, &got), -EPROTO);
	char *text = malloc(RECORD_MAX + 1);
	memset(text, 'x', RECORD_MAX);
	text[RECORD_MAX] = '\0';
	r.text[FILE_PATH] = text;
	CHECK_INT(record_append_request(&out, &r), -E2BIG);
	free(text);
}

static void refuses_headers_that_cannot_be(void)
{
	struct record_header got, h = {.type = RECORD_END, .size = RECORD_MAX + 1};
	CHECK_INT(record_decode_header((const char *)&h, &got), -EPROTO);
	h = (struct record_header){.type = RECORD_DATA, .size = UINT64_MAX};
	CHECK_INT(record_decode_header((const char *)&h, &got), -EPROTO);
	h = (struct record_header){.type = RECORD_DATA, .size = INT64_MAX};
	CHECK_INT(record_decode_header((const char *)&h, &got), 0);
	h = (struct record_header){.type = 33};
	CHECK_INT(record_decode_header((const char *)&h, &got), -EPROTO);
	h = (struct record_header){.type = RECORD_END, .zero = 1};
	CHECK_INT(record_decode_header((const char *)&h, &got), -EPROTO);
}

static void refuses_texts_that_do_not_fill_the_payload(void)
{
	char payload[sizeof(struct record_entry) + 4] = "";
	struct record_entry e = {.path_len = 4}, got;
	struct record_text t[4];
	memcpy(payload + sizeof e, "path", 4);
	memcpy(payload, &e, sizeof e);
	CHECK_INT(record_decode_entry(payload, sizeof payload, &got, t), 0);
	CHECK_INT((long long)t[0].len, 4);
	e.target_len = 1;
	memcpy(payload, &e, sizeof e);
	CHECK_INT(record_decode_entry(payload, sizeof payload, &got, t), -EPROTO);
	e = (struct record_entry){.path_len = 3};
	memcpy(payload, &e, sizeof e);
	CHECK_INT(record_decode_entry(payload, sizeof payload, &got, t), -EPROTO);
	e = (struct record_entry){.path_len = UINT32_MAX};
	memcpy(payload, &e, sizeof e);
	CHECK_INT(record_decode_entry(payload, sizeof payload, &got, t), -EPROTO);
	e = (struct record_entry){.path_len = 4};
	memcpy(payload, &e, sizeof e);
	payload[sizeof e + 1] = '\0';
	CHECK_INT(record_decode_entry(payload, sizeof payload, &got, t), -EPROTO);
}

static const struct check_test tests[] = {
	TEST(a_request_comes_back_as_it_went),
	TEST(refuses_requests_that_cannot_be),
	TEST(refuses_headers_that_cannot_be),
	TEST(refuses_texts_that_do_not_fill_the_payload),
};

int main(void)
{
	return RUN_TESTS(tests);
}
