#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/id_list.h"
#include "base/mount_points.h"
#include "base/processor.h"
#include "base/schedule.h"
#include "base/trim.h"
#include "base/units.h"
#include "check.h"

static int64_t duration(const char *text)
{
	int64_t ms = -1;
	int r = units_parse_duration_ms(text, &ms);
	return r < 0 ? r : ms;
}

static int64_t size(const char *text)
{
	int64_t bytes = -1;
	int r = units_parse_size(text, &bytes);
	return r < 0 ? r : bytes;
}

static int64_t cpu(const char *text)
{
	int64_t millicores = -1;
	int r = units_parse_millicores(text, &millicores);
	return r < 0 ? r : millicores;
}

static void reads_durations_as_go_does(void)
{
	CHECK_INT(duration("30s"), 30000);
	CHECK_INT(duration("1h30m"), 5400000);
	CHECK_INT(duration("250ms"), 250);
	CHECK_INT(duration("1.5s"), 1500);
	CHECK_INT(duration("0s"), 0);
	CHECK_INT(duration("0"), 0);
}

static void refuses_what_is_no_duration(void)
{
	static const char *const bad[] = {"", "s", "30", "-1s", "+1s", "1 s", "1s ", "1d", "1.s",
		".5s", "1e3s", "1h-5m", "99999999999999999999s", "9223372036854775807h"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		CHECK(duration(bad[i]) < 0);
}

static void reads_sizes_as_kubernetes_does(void)
{
	CHECK_INT(size("256Mi"), 256 << 20);
	CHECK_INT(size("1Gi"), 1 << 30);
	CHECK_INT(size("500M"), 500000000);
	CHECK_INT(size("1024"), 1024);
	CHECK_INT(size("1.5Ki"), 1536);
}

static void refuses_what_is_no_size(void)
{
	static const char *const bad[] = {
		"", "Mi", "-1", "1X", "1 Gi", "0x10", "1Gi1", "99999999Ti", "9223372036854775808"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		CHECK(size(bad[i]) < 0);
}

static void reads_cpu_in_millicores_and_cores(void)
{
	CHECK_INT(cpu("500m"), 500);
	CHECK_INT(cpu("0.5"), 500);
	CHECK_INT(cpu("2"), 2000);
	CHECK(cpu("1x") < 0);
	CHECK(cpu("-1") < 0);
}

static void formats_amounts_so_that_they_read_back(void)
{
	static const int64_t amounts[] = {0, 1, 999, 1000, 1024, 5400000, 1 << 30, 123456789};
	for (size_t i = 0; i < sizeof amounts / sizeof amounts[0]; i++) {
		char text[UNITS_TEXT_SIZE];
		units_format_duration_ms(amounts[i], text);
		CHECK_INT(duration(text), amounts[i]);
		units_format_size(amounts[i], text);
		CHECK_INT(size(text), amounts[i]);
		units_format_millicores(amounts[i], text);
		CHECK_INT(cpu(text), amounts[i]);
	}
}

static void makes_ids_that_are_valid_and_different(void)
{
	char a[ID_SIZE], b[ID_SIZE];
	for (int i = 0; i < 1000; i++) {
		id_generate(a);
		id_generate(b);
		CHECK(id_is_valid(a));
		CHECK(strcmp(a, b) != 0);
	}
}

static void refuses_what_is_no_id(void)
{
	CHECK(!id_is_valid(""));
	CHECK(!id_is_valid("abcdefghij012345678"));
	CHECK(!id_is_valid("abcdefghij01234567890"));
	CHECK(!id_is_valid("Abcdefghij0123456789"));
	CHECK(!id_is_valid("../../../../etc/pass"));
}

static void writes_times_in_rfc3339(void)
{
	char text[RFC3339_SIZE];
	clock_format_rfc3339(-500, text);
	CHECK_STR(text, "1969-12-31T23:59:59.500Z");
	clock_format_rfc3339(1763238820123, text);
	CHECK_STR(text, "2025-11-15T20:33:40.123Z");
}

static void keeps_a_buffer_failed_once_it_is_too_big(void)
{
	struct buf b = {0};
	CHECK(!buf_reserve(&b, BUF_MAX + 1));
	buf_append_str(&b, "x");
	CHECK(b.failed);
	CHECK_INT((long long)b.len, 0);
	buf_finish(&b);
}

static void gives_every_error_a_name_and_a_status(void)
{
	for (int code = 1; code < ERROR_CODE_COUNT; code++) {
		CHECK(error_name((enum error_code)code) != NULL);
		CHECK(error_http_status((enum error_code)code) >= 400);
		CHECK_INT(error_from_name(error_name((enum error_code)code)), code);
	}
}

static void tells_an_errno_by_its_meaning(void)
{
	struct error e;
	error_set_errno(&e, -ENOSPC, "cannot write %s", "x");
	CHECK_INT(e.code, ERROR_NO_SPACE);
	CHECK_STR(e.message, "cannot write x: No space left on device");
}

static bool is_prompt(void)
{
	return sched_getscheduler(0) & SCHED_RESET_ON_FORK;
}

/* The end of a child that says whether something holds in it. */
static void gives_each_id_one_uuid_and_takes_it_back(void)
{
	char id[ID_SIZE], again[ID_SIZE], uuid[UUID_SIZE];
	for (int i = 0; i < 1000; i++) {
		id_generate(id);
		uuid_from_id(id, uuid);
		CHECK(strlen(uuid) == UUID_SIZE - 1 && uuid[14] == '8' && uuid[19] == '8');
		CHECK(uuid_to_id(uuid, again));
		CHECK_STR(again, id);
	}
	uuid_from_id("99999999999999999999", uuid);
	CHECK_STR(uuid, "a8b8b452-291f-8000-80e8-20ffffffffff");
	CHECK(uuid_to_id(uuid, again));
	CHECK_STR(again, "99999999999999999999");
	CHECK(!uuid_to_id("ffffffff-ffff-8000-80ff-ffffffffffff", again)); /* above 36^20 */
	CHECK(!uuid_to_id("00000000-0000-0000-0000-000000000000", again));
	CHECK(!uuid_to_id("00000000-0000-4000-8000-000000000000", again));
	CHECK(!uuid_to_id("00000000-0000-8000-8000-00000000000g", again));
	CHECK(!uuid_to_id("00000000_0000-8000-8000-000000000000", again));
	CHECK(!uuid_to_id("00000000-0000-8000-8000-00000000000", again));
	CHECK(!uuid_to_id("", again));
}

static bool holds_in_child(pid_t child)
{
	int status = 0;
	return waitpid(child, &status, 0) == child && status == 0;
}

static void is_prompt_without_its_children_and_as_nice_as_before(void)
{
	pid_t child = fork();
	if (child == 0) {
		setpriority(PRIO_PROCESS, 0, 7);
		bool was = is_prompt();
		schedule_promptly();
		pid_t grandchild = is_prompt() && !was ? fork() : -1;
		if (grandchild == 0)
			_exit(is_prompt());
		_exit(!holds_in_child(grandchild) || getpriority(PRIO_PROCESS, 0) != 7);
	}
	CHECK(holds_in_child(child));
}

static bool may_run_on(unsigned count)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == (int)count;
}

static void stays_on_a_processor_until_it_is_let_go(void)
{
	pid_t child = fork();
	if (child == 0) {
		cpu_set_t all;
		sched_getaffinity(0, sizeof all, &all);
		uint64_t near = processor_near();
		processor_stay(near);
		bool stays = may_run_on(1) && processor_near() == near;
		processor_stay(PROCESSOR_MAX + 1);
		stays = stays && may_run_on(1);
		processor_stay(0);
		_exit(!stays || !may_run_on((unsigned)CPU_COUNT(&all)));
	}
	CHECK(holds_in_child(child));
}

static int pages_of_files(void)
{
	int pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	if (f && fscanf(f, "%*d %*d %d", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages;
}

static void gives_back_what_a_start_needed(void)
{
	int before = pages_of_files();
	trim_memory();
	CHECK(before > 0 && pages_of_files() < before);
}

static void lists_the_ids_of_directories_in_order_and_once(void)
{
	enum {
		COUNT = 200
	};
	char directory[] = "/tmp/bunker-test-ids-XXXXXX", name[64], last[ID_SIZE] = "";
	struct id_list list = {0};
	CHECK(mkdtemp(directory) != NULL);
	int fd = open(directory, O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < COUNT; i++) {
		snprintf(name, sizeof name, "%020d%s", i * 7 % COUNT, i % 2 ? ".sock" : "");
		CHECK(mkdirat(fd, name, 0700) == 0);
	}
	CHECK(mkdirat(fd, "no-id", 0700) == 0);
	id_list_add(&list, fd);
	id_list_add(&list, fd);
	id_list_sort(&list);
	CHECK_INT((long long)list.count, COUNT);
	for (const char *id = ""; (id = id_list_after(&list, id)) != NULL;) {
		CHECK(strcmp(id, last) > 0);
		memcpy(last, id, ID_SIZE);
	}
	CHECK_STR(last, "00000000000000000199");
	CHECK(id_list_after(&list, "zzzzzzzzzzzzzzzzzzzz") == NULL);
	id_list_free(&list);
	close(fd);
	snprintf(name, sizeof name, "rm -r %s", directory);
	CHECK(system(name) == 0);
}

static void lists_mount_points_from_the_last_one_up(void)
{
	static const char text[] =
		"21 1 0:20 / / rw - ext4 /dev/vda rw\n"
		"22 21 0:21 /a\\040b /mnt/c\\040d\\134 rw,nosuid shared:1 - tmpfs x rw\n"
		"23 21 0:22 / /proc rw - proc proc rw";
	static const char *const wanted[] = {"/proc", "/mnt/c d\\", "/"};
	autobuf points = {0};
	const char *point = NULL;
	CHECK(mount_points_before(&points, NULL) == NULL);
	mount_points_parse(&points, text, sizeof text - 1);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		point = mount_points_before(&points, point);
		CHECK(point != NULL);
		CHECK_STR(point, wanted[i]);
	}
	CHECK(mount_points_before(&points, point) == NULL);
}

static const struct check_test tests[] = {
	TEST(lists_mount_points_from_the_last_one_up),
	TEST(reads_durations_as_go_does),
	TEST(refuses_what_is_no_duration),
	TEST(reads_sizes_as_kubernetes_does),
	TEST(refuses_what_is_no_size),
	TEST(reads_cpu_in_millicores_and_cores),
	TEST(formats_amounts_so_that_they_read_back),
	TEST(makes_ids_that_are_valid_and_different),
	TEST(gives_each_id_one_uuid_and_takes_it_back),
	TEST(refuses_what_is_no_id),
	TEST(writes_times_in_rfc3339),
	TEST(keeps_a_buffer_failed_once_it_is_too_big),
	TEST(gives_every_error_a_name_and_a_status),
	TEST(tells_an_errno_by_its_meaning),
	TEST(is_prompt_without_its_children_and_as_nice_as_before),
	TEST(stays_on_a_processor_until_it_is_let_go),
	TEST(gives_back_what_a_start_needed),
	TEST(lists_the_ids_of_directories_in_order_and_once),
};

int main(void)
{
	return RUN_TESTS(tests);
}
