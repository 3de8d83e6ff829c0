/* Names of templates, what they give to sandboxes, and their rows. */
#include <stdlib.h>
#include <unistd.h>

#include "box/template/settings.h"
#include "model/template.h"
#include "check.h"
#include "store/templates.h"

static char database[] = "/tmp/bunker-templates-XXXXXX";

static void takes_names_as_people_write_them(void)
{
	static const char *const good[] = {
		"base", "Python", "a", "3.12", "docker.io/library/python", "x_y-z.1"};
	static const char *const bad[] = {"", "-a", ".a", "a/", "/a", "a//b", "a b", "a:b", "ä",
		"a/-b", "../a", "a\nb", "a%2fb"};
	char name[TEMPLATE_NAME_MAX + 2];
	struct error e;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		CHECK_INT(template_check_name(good[i], "name", &e), 0);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		CHECK(template_check_name(bad[i], "name", &e) < 0);
	memset(name, 'a', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	CHECK(template_check_name(name, "name", &e) < 0);
	CHECK_INT(template_check_name(name + 1, "name", &e), 0);
	CHECK(template_check_tag("a/b", "tag", &e) < 0);
	CHECK_INT(template_check_tag("3.12-slim", "tag", &e), 0);
}

static void splits_a_reference_at_its_colon(void)
{
	char name[TEMPLATE_NAME_MAX + 1], tag[TEMPLATE_TAG_MAX + 1];
	struct error e;
	CHECK_INT(template_split("python:3.12", name, tag, &e), 0);
	CHECK_STR(name, "python");
	CHECK_STR(tag, "3.12");
	CHECK_INT(template_split("python", name, tag, &e), 0);
	CHECK_STR(tag, "");
	CHECK(template_split("python:", name, tag, &e) < 0);
	CHECK(template_split(":x", name, tag, &e) < 0);
	CHECK(template_split("a:b:c", name, tag, &e) < 0);
}

static void a_variable_replaces_the_one_of_its_name(void)
{
	struct settings s = {0};
	settings_set_env(&s, "A=1");
	settings_set_env(&s, "AB=2");
	settings_set_env(&s, "A=3");
	CHECK_INT((long long)s.env.len, 9);
	CHECK_STR(s.env.data, "AB=2");
	CHECK_STR(s.env.data + 5, "A=3");
	settings_finish(&s);
}

static void settings_come_back_as_they_were_packed(void)
{
	static const char *const start[] = {"sh", "-c", "", NULL}, *const ports[] = {
									   "80/tcp", NULL};
	struct settings s = {0}, again = {0};
	struct template_config c;
	autobuf packed = {0};
	settings_set_env(&s, "E=");
	settings_set_list(&s.start, start);
	settings_set_list(&s.ports, ports);
	settings_set_text(&s.user, "root");
	settings_set_text(&s.ready, "true");
	s.ready_timeout_ms = 1500;
	settings_pack(&s, &packed);
	settings_unpack(&again, packed.data, packed.len);
	settings_config(&again, &c);
	CHECK_INT((long long)c.start.len, 7);
	CHECK(memcmp(c.start.data, "sh\0-c\0\0", 7) == 0);
	CHECK_STR(c.env.data, "E=");
	CHECK_STR(c.ports.data, "80/tcp");
	CHECK_STR(c.user, "root");
	CHECK_STR(c.workdir, "");
	CHECK_STR(c.ready, "true");
	CHECK_INT(c.ready_timeout_ms, 1500);
	settings_finish(&s);
	settings_finish(&again);
}

static void passes_over_settings_that_make_no_sense(void)
{
	struct settings s = {0};
	settings_unpack(&s, "Zfuture\0\0Uuser", 15);
	CHECK_STR(s.user, "user");
	settings_unpack(&s, "Uuser", 5); /* no NUL at the end: not ours */
	CHECK(s.user == NULL);
	settings_finish(&s);
}

struct seen {
	unsigned templates, builds, tags, layers;
};

static void saw_template(void *arg, const void *stored)
{
	const struct template_row *row = stored;
	CHECK_STR(row->name, "python");
	((struct seen *)arg)->templates++;
}

static void saw_build(void *arg, const void *stored)
{
	const struct build_row *row = stored;
	CHECK_STR(row->status, "ready");
	CHECK_STR(row->root, "r");
	CHECK_INT((long long)row->tags.len, 4);
	CHECK(memcmp(row->config.data, "x\0y", 3) == 0);
	CHECK_INT(row->bytes, 7);
	((struct seen *)arg)->builds++;
}

static void saw_tag(void *arg, const void *stored)
{
	const struct tag_row *row = stored;
	CHECK_STR(row->build_id, "b2");
	((struct seen *)arg)->tags++;
}

static void saw_layer(void *arg, const void *stored)
{
	const struct layer_row *row = stored;
	CHECK_STR(row->key, "k");
	((struct seen *)arg)->layers++;
}

static void read_all(struct store *s, struct seen *seen)
{
	CHECK_INT(store_each_template(s, saw_template, seen), 0);
	CHECK_INT(store_each_build(s, saw_build, seen), 0);
	CHECK_INT(store_each_tag(s, saw_tag, seen), 0);
	CHECK_INT(store_each_layer(s, saw_layer, seen), 0);
}

static void with_store(void (*use)(struct store *s))
{
	uv_loop_t loop;
	struct store *store;
	struct error e;
	uv_loop_init(&loop);
	CHECK_INT(store_open(&store, &loop, database, &e), 0);
	use(store);
	store_close(store);
	uv_run(&loop, UV_RUN_DEFAULT);
	CHECK_INT(uv_loop_close(&loop), 0);
}

static void write_rows(struct store *s)
{
	const struct build_row build = {.id = "b1",
		.template_id = "t1",
		.status = "ready",
		.reason = "",
		.origin = "base",
		.digest = "",
		.root = "r",
		.layer = "l",
		.bytes = 7,
		.config = {(char[]){"x\0y"}, 3},
		.tags = {(char[]){"tag"}, 4}};
	store_put_template(s, &(struct template_row){"t1", "me", "python", "", 5}, NULL, NULL);
	store_put_build(s, &build, NULL, NULL);
	store_put_tag(s, &(struct tag_row){"t1", "latest", "b1", 6}, NULL, NULL);
	store_put_tag(s, &(struct tag_row){"t1", "latest", "b2", 7}, NULL, NULL);
	store_put_tag(s, &(struct tag_row){"t1", "old", "b1", 7}, NULL, NULL);
	store_delete_tag(s, "t1", "old", NULL, NULL);
	store_put_layer(s, &(struct layer_row){"l", "me", "k", "", 1, 2, 3}, NULL, NULL);
}

static void read_rows(struct store *s)
{
	struct seen seen = {0};
	read_all(s, &seen);
	CHECK_INT(seen.templates, 1);
	CHECK_INT(seen.builds, 1);
	CHECK_INT(seen.tags, 1);
	CHECK_INT(seen.layers, 1);
	store_delete_template(s, "t1", NULL, NULL);
	store_delete_layer(s, "l", NULL, NULL);
}

static void find_nothing(struct store *s)
{
	struct seen seen = {0};
	read_all(s, &seen);
	CHECK_INT(seen.templates + seen.builds + seen.tags + seen.layers, 0);
}

static void a_template_goes_with_its_builds_and_tags(void)
{
	with_store(write_rows);
	with_store(read_rows);
	with_store(find_nothing);
}

static const struct check_test tests[] = {
	TEST(takes_names_as_people_write_them),
	TEST(splits_a_reference_at_its_colon),
	TEST(a_variable_replaces_the_one_of_its_name),
	TEST(settings_come_back_as_they_were_packed),
	TEST(passes_over_settings_that_make_no_sense),
	TEST(a_template_goes_with_its_builds_and_tags),
};

int main(void)
{
	close(mkstemp(database));
	int r = RUN_TESTS(tests);
	unlink(database);
	return r;
}
