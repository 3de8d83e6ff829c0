/* The storage of one output stream: memory first, then a file, then only for those who pace. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box/sandbox/object.h"
#include "check.h"
#include "box/process/execution_core.h"

static char directory[] = "/tmp/bunker-output-XXXXXX";
static char path[64], name[16];
static struct spool spool = {.dir = directory};

static void fresh_path(void)
{
	static int counter;
	snprintf(name, sizeof name, "%d", counter++);
	snprintf(path, sizeof path, "%s/%s.0", directory, name);
}

static void begin(struct output *o)
{
	output_init(o, &spool, NULL, name, 0);
}

static char pattern_at(uint64_t offset)
{
	return (char)('a' + offset % 23);
}

static void append(struct output *o, uint64_t limit, bool tail, uint64_t offset, size_t len)
{
	char *data = malloc(len + 1);
	for (size_t i = 0; i < len; i++)
		data[i] = pattern_at(offset + i);
	CHECK_INT(output_append(o, limit, tail, offset, data, len), 0);
	free(data);
}

static void check_read(struct output *o, uint64_t from, uint64_t to)
{
	struct buf out = {0};
	uint64_t position = from;
	while (position < to) {
		uint64_t before = position;
		CHECK_INT(output_read(o, &position, 1000, &out), 0);
		CHECK(position > before);
	}
	CHECK_INT((long long)out.len, (long long)(to - from));
	for (size_t i = 0; i < out.len; i++)
		CHECK_INT(out.data[i], pattern_at(from + i));
	buf_finish(&out);
}

static void keeps_short_output_in_memory_and_unacknowledged(void)
{
	struct output o;
	struct stat st;
	fresh_path();
	begin(&o);
	append(&o, 1 << 20, false, 0, 1000);
	append(&o, 1 << 20, false, 1000, 500);
	CHECK_INT((long long)output_release(&o, UINT64_MAX), 0);
	CHECK(stat(path, &st) < 0);
	check_read(&o, 0, 1500);
	output_finish(&o);
}

static void has_long_output_on_disk_before_it_is_acknowledged(void)
{
	struct output o;
	struct stat st;
	fresh_path();
	begin(&o);
	for (uint64_t at = 0; at < 100000; at += 10000)
		append(&o, 1 << 20, false, at, 10000);
	CHECK_INT((long long)output_release(&o, UINT64_MAX), 100000);
	CHECK_INT(stat(path, &st), 0);
	CHECK_INT(st.st_size, 100000);
	check_read(&o, 0, 100000);
	output_finish(&o);
}

static void takes_bytes_that_come_twice_once(void)
{
	struct output o;
	fresh_path();
	begin(&o);
	append(&o, 1 << 20, false, 0, 40000);
	append(&o, 1 << 20, false, 10000, 40000);
	append(&o, 1 << 20, false, 0, 50000);
	CHECK_INT((long long)o.end, 50000);
	check_read(&o, 0, 50000);
	output_finish(&o);
}

static void refuses_a_hole(void)
{
	struct output o;
	fresh_path();
	begin(&o);
	append(&o, 1 << 20, false, 0, 10);
	CHECK_INT(output_append(&o, 1 << 20, false, 11, "x", 1), -EPROTO);
	output_finish(&o);
}

static void stops_keeping_at_the_limit(void)
{
	struct output o;
	fresh_path();
	begin(&o);
	append(&o, 50000, false, 0, 45000);
	append(&o, 50000, false, 45000, 45000);
	CHECK_INT((long long)o.stored, 50000);
	CHECK_INT((long long)o.end, 90000);
	CHECK_INT((long long)output_release(&o, UINT64_MAX), 90000);
	check_read(&o, 0, 50000);
	output_finish(&o);
}

static void holds_what_is_beyond_the_limit_for_a_paced_reader(void)
{
	struct output o;
	fresh_path();
	begin(&o);
	append(&o, 50000, true, 0, 90000);
	CHECK_INT((long long)output_release(&o, 0), 50000);
	CHECK_INT((long long)output_release(&o, 60000), 60000);
	check_read(&o, 60000, 90000);
	CHECK_INT((long long)output_release(&o, 90000), 90000);
	append(&o, 50000, true, 90000, 10);
	check_read(&o, 90000, 90010);
	output_finish(&o);
}

static void goes_on_with_what_an_earlier_server_left(void)
{
	struct output o;
	fresh_path();
	begin(&o);
	append(&o, 1 << 20, false, 0, 70000);
	output_finish(&o);
	begin(&o);
	output_restore(&o);
	CHECK_INT((long long)o.end, 70000);
	append(&o, 1 << 20, false, 60000, 20000);
	check_read(&o, 0, 80000);
	output_finish(&o);
}

static void remove_directory(void)
{
	for (int i = 0; i < 256; i++) {
		snprintf(path, sizeof path, "%s/%d.0", directory, i);
		unlink(path);
	}
	rmdir(directory);
}

static void holds_the_last_bytes_of_a_terminal_for_who_comes_late(void)
{
	struct output o;
	fresh_path();
	begin(&o);
	o.recent = 1000;
	append(&o, 5000, true, 0, 5000);
	CHECK_INT((long long)output_release(&o, UINT64_MAX), 0);
	append(&o, 5000, true, 5000, 3000);
	CHECK_INT((long long)output_release(&o, UINT64_MAX), 7000);
	check_read(&o, 7000, 8000);
	/* What is between is gone, and says so by a jump. */
	struct buf out = {0};
	uint64_t position = 6000;
	CHECK_INT(output_read(&o, &position, 10, &out), 0);
	CHECK_INT((long long)position, 7010);
	CHECK_INT(out.data[0], pattern_at(7000));
	buf_finish(&out);
	output_finish(&o);
}

static void writes_nothing_to_disk_without_a_spool(void)
{
	struct output o;
	struct stat st;
	fresh_path();
	output_init(&o, NULL, NULL, name, 0);
	append(&o, OUTPUT_IN_MEMORY, false, 0, 90000);
	CHECK_INT((long long)o.stored, OUTPUT_IN_MEMORY);
	CHECK_INT((long long)output_release(&o, UINT64_MAX), 90000);
	CHECK(stat(path, &st) < 0);
	check_read(&o, 0, OUTPUT_IN_MEMORY);
	output_finish(&o);
}

static void keeps_few_of_many_files_open(void)
{
	enum {
		MANY = 3 * SPOOL_OPEN_MAX
	};
	static struct output many[MANY];
	for (int i = 0; i < MANY; i++) {
		fresh_path();
		begin(&many[i]);
		append(&many[i], 1 << 20, false, 0, 40000);
	}
	CHECK_INT(spool.open_count, SPOOL_OPEN_MAX);
	for (int i = 0; i < MANY; i++)
		append(&many[i], 1 << 20, false, 40000, 1000 + (size_t)i);
	for (int i = 0; i < MANY; i++)
		check_read(&many[i], 0, 41000 + (uint64_t)i);
	CHECK_INT(spool.open_count, SPOOL_OPEN_MAX);
	for (int i = 0; i < MANY; i++)
		output_finish(&many[i]);
	CHECK_INT(spool.open_count, 0);
	CHECK(!spool.open);
}

static const struct check_test tests[] = {
	TEST(writes_nothing_to_disk_without_a_spool),
	TEST(keeps_few_of_many_files_open),
	TEST(holds_the_last_bytes_of_a_terminal_for_who_comes_late),
	TEST(keeps_short_output_in_memory_and_unacknowledged),
	TEST(has_long_output_on_disk_before_it_is_acknowledged),
	TEST(takes_bytes_that_come_twice_once),
	TEST(refuses_a_hole),
	TEST(stops_keeping_at_the_limit),
	TEST(holds_what_is_beyond_the_limit_for_a_paced_reader),
	TEST(goes_on_with_what_an_earlier_server_left),
};

int main(void)
{
	if (!mkdtemp(directory))
		return 1;
	atexit(remove_directory);
	return RUN_TESTS(tests);
}
