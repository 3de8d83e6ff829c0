#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "check.h"
#include "wire/frame.h"

static const char *const some_argv[] = {"sh", "-c", "echo hi", NULL};
static const char *const some_envp[] = {"A=1", "B=", NULL};

static struct buf encoded_start(void)
{
	struct buf out = {0};
	struct start_request request = {
		.fixed = {.timeout_ms = 5, .open_files = 7, .flags = FRAME_START_STDIN},
		.user = "user",
		.cwd = "/tmp",
		.name = "job",
		.argv = (const char **)(uintptr_t)some_argv,
		.envp = (const char **)(uintptr_t)some_envp,
	};
	memcpy(request.fixed.execution, "abcdefghij0123456789", 21);
	CHECK_INT(frame_encode_start(&out, 42, &request), 0);
	return out;
}

static void gives_back_a_start_as_it_was_sent(void)
{
	struct buf out = encoded_start();
	struct frame_header h;
	struct start_request r;
	CHECK_INT(frame_decode(out.data, out.len, &h), (long long)out.len);
	CHECK_INT(h.type, FRAME_START);
	CHECK_INT((long long)h.tag, 42);
	CHECK_INT(frame_decode_start(out.data + FRAME_HEADER_SIZE, h.size, &r), 0);
	CHECK_STR(r.user, "user");
	CHECK_STR(r.cwd, "/tmp");
	CHECK_STR(r.name, "job");
	CHECK_STR(r.argv[2], "echo hi");
	CHECK(r.argv[3] == NULL);
	CHECK_STR(r.envp[1], "B=");
	CHECK(r.envp[2] == NULL);
	CHECK_INT((long long)r.fixed.timeout_ms, 5);
	start_request_finish(&r);
	buf_finish(&out);
}

static void waits_for_the_rest_of_a_frame(void)
{
	struct buf out = encoded_start();
	struct frame_header h;
	for (size_t len = 0; len < out.len; len++)
		CHECK_INT(frame_decode(out.data, len, &h), 0);
	buf_finish(&out);
}

static void refuses_a_start_cut_anywhere(void)
{
	struct buf out = encoded_start();
	struct start_request r;
	size_t size = out.len - FRAME_HEADER_SIZE;
	for (size_t len = 0; len < size; len++)
		CHECK(frame_decode_start(out.data + FRAME_HEADER_SIZE, len, &r) < 0);
	buf_finish(&out);
}

static void refuses_a_start_with_more_behind_it(void)
{
	struct buf out = encoded_start();
	struct start_request r;
	buf_append_char(&out, '\0');
	CHECK(frame_decode_start(out.data + FRAME_HEADER_SIZE, out.len - FRAME_HEADER_SIZE, &r) <
		0);
	buf_finish(&out);
}

static void refuses_counts_that_lie(void)
{
	struct buf out = encoded_start();
	struct start_request r;
	struct frame_start *fixed = (struct frame_start *)(void *)(out.data + FRAME_HEADER_SIZE);
	static const uint32_t lies[] = {0, 2, 4, 4097, 0x7fffffff, 0xffffffff};
	for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
		fixed->argc = lies[i];
		CHECK(frame_decode_start(
			      out.data + FRAME_HEADER_SIZE, out.len - FRAME_HEADER_SIZE, &r) < 0);
	}
	buf_finish(&out);
}

static void refuses_headers_that_no_side_sends(void)
{
	struct frame_header h, got;
	static const struct frame_header bad[] = {
		{.type = 0},
		{.type = FRAME_LAST_OF_FRONT + 1},
		{.type = FRAME_LAST_OF_INIT + 1},
		{.type = FRAME_OUTPUT, .stream = FRAME_STREAMS},
		{.type = FRAME_OUTPUT, .size = FRAME_MAX_DATA + 1},
		{.type = FRAME_START, .size = FRAME_MAX_PAYLOAD + 1},
		{.type = FRAME_START, .size = 0xffffffff},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		h = bad[i];
		CHECK_INT(frame_decode((const char *)&h, sizeof h, &got), -EPROTO);
	}
}

static void refuses_to_send_a_start_that_is_too_long(void)
{
	static char big[FRAME_MAX_PAYLOAD + 1];
	const char *argv[] = {big, NULL}, *envp[] = {NULL};
	struct start_request request = {
		.user = "user", .cwd = "", .name = "", .argv = argv, .envp = envp};
	struct buf out = {0};
	memset(big, 'x', sizeof big - 1);
	CHECK_INT(frame_encode_start(&out, 1, &request), -E2BIG);
	CHECK_INT((long long)out.len, 0);
	buf_finish(&out);
}

static void refuses_a_payload_of_another_size(void)
{
	struct frame_exit exit = {0};
	struct frame_header h = {.size = sizeof exit - 1};
	CHECK_INT(frame_payload(&h, (const char *)&exit, &exit, sizeof exit), -EPROTO);
}

static struct buf encoded_record(void)
{
	struct buf out = {0};
	struct frame_process fixed = {.pid = 7, .kind = 2, .input_received = 9};
	static const char strings[] = "user\0/tmp\0job\0sh\0-c\0true";
	memcpy(fixed.execution, "abcdefghij0123456789", 21);
	buf_append(&out, &fixed, sizeof fixed);
	buf_append(&out, strings, sizeof strings);
	return out;
}

static void gives_back_a_record_as_it_was_sent(void)
{
	struct buf out = encoded_record();
	struct process_frame r;
	CHECK_INT(frame_decode_process(out.data, out.len, &r), 0);
	CHECK_STR(r.user, "user");
	CHECK_STR(r.cwd, "/tmp");
	CHECK_STR(r.name, "job");
	CHECK_INT((long long)r.command_len, 11);
	CHECK_STR(r.command + 3, "-c");
	CHECK_INT(r.fixed.pid, 7);
	CHECK_INT((long long)r.fixed.input_received, 9);
	buf_finish(&out);
}

static void refuses_a_record_that_lies(void)
{
	struct process_frame r;
	struct buf out = encoded_record();
	/* The command may be shorter, but ends with a NUL. */
	for (size_t len = 0; len < out.len; len++)
		CHECK_INT(frame_decode_process(out.data, len, &r) == 0,
			len >= sizeof(struct frame_process) + 14 && out.data[len - 1] == '\0');
	memset(out.data, 'x', FRAME_EXECUTION_LEN);
	CHECK(frame_decode_process(out.data, out.len, &r) < 0);
	buf_finish(&out);
	out = encoded_record();
	static char more[FRAME_MAX_COMMAND];
	buf_append(&out, more, sizeof more);
	CHECK(frame_decode_process(out.data, out.len, &r) < 0);
	buf_finish(&out);
}

static void takes_a_status_only_with_its_directory(void)
{
	struct buf out = {0};
	struct frame_status status = {.cpu_us = 5}, got = {0};
	const char *cwd;
	buf_append(&out, &status, sizeof status);
	buf_append(&out, "/home", 6);
	CHECK_INT(frame_decode_status(out.data, out.len, &got, &cwd), 0);
	CHECK_STR(cwd, "/home");
	CHECK_INT((long long)got.cpu_us, 5);
	for (size_t len = 0; len < out.len; len++)
		CHECK(frame_decode_status(out.data, len, &got, &cwd) < 0);
	buf_append(&out, "x", 2);
	CHECK(frame_decode_status(out.data, out.len, &got, &cwd) < 0);
	buf_finish(&out);
}

static void takes_a_worker_only_with_its_user(void)
{
	struct buf out = {0};
	struct frame_worker worker = {.open_files = 64}, got;
	const char *user;
	frame_append_worker(&out, &worker, "root");
	const char *payload = out.data + FRAME_HEADER_SIZE;
	size_t size = out.len - FRAME_HEADER_SIZE;
	CHECK_INT(frame_decode_worker(payload, size, &got, &user), 0);
	CHECK_STR(user, "root");
	CHECK_INT(got.open_files, 64);
	for (size_t len = 0; len < size; len++)
		CHECK(frame_decode_worker(payload, len, &got, &user) < 0);
	buf_append(&out, "x", 2);
	CHECK(frame_decode_worker(out.data + FRAME_HEADER_SIZE, size + 2, &got, &user) < 0);
	buf_finish(&out);
}

static const struct check_test tests[] = {
	TEST(takes_a_worker_only_with_its_user),
	TEST(gives_back_a_record_as_it_was_sent),
	TEST(refuses_a_record_that_lies),
	TEST(takes_a_status_only_with_its_directory),
	TEST(gives_back_a_start_as_it_was_sent),
	TEST(waits_for_the_rest_of_a_frame),
	TEST(refuses_a_start_cut_anywhere),
	TEST(refuses_a_start_with_more_behind_it),
	TEST(refuses_counts_that_lie),
	TEST(refuses_headers_that_no_side_sends),
	TEST(refuses_to_send_a_start_that_is_too_long),
	TEST(refuses_a_payload_of_another_size),
};

int main(void)
{
	return RUN_TESTS(tests);
}
