/* Patterns of paths. */
#include <errno.h>
#include <time.h>

#include "check.h"
#include "init/files/files.h"

static bool matches(const char *pattern, const char *path)
{
	struct glob *g;
	CHECK_INT(glob_compile(pattern, false, &g), 0);
	bool result = glob_match(g, path);
	glob_free(g);
	return result;
}

static bool may_match_below(const char *pattern, const char *path)
{
	struct glob *g;
	CHECK_INT(glob_compile(pattern, false, &g), 0);
	bool result = glob_may_match_below(g, path);
	glob_free(g);
	return result;
}

static void matches_within_a_name(void)
{
	CHECK(matches("*.c", "a.c") && matches("*.c", "x/y/a.c") && !matches("*.c", "a.h"));
	CHECK(matches("/*.c", "a.c") && !matches("/*.c", "x/a.c"));
	CHECK(matches("a?c", "abc") && !matches("a?c", "ac") && !matches("/a?c", "a/c"));
	CHECK(matches("a*b*c", "aXbYbZc") && !matches("a*b*c", "aXbYbZ"));
	CHECK(matches("\\*", "*") && !matches("\\*", "x"));
	CHECK(matches("*", ".hidden") && matches("a*", "a"));
}

static void matches_sets(void)
{
	CHECK(matches("[abc]", "b") && !matches("[abc]", "d"));
	CHECK(matches("[!abc]", "d") && !matches("[!abc]", "a") && matches("[^a]", "b"));
	CHECK(matches("[a-c]x", "bx") && !matches("[a-c]x", "dx"));
	CHECK(matches("[]]", "]") && matches("[a", "[a") && matches("[\x80-\xff]", "\xe4"));
}

static void matches_directories(void)
{
	CHECK(matches("src/**/a", "src/a") && matches("src/**/a", "src/x/y/a"));
	CHECK(!matches("src/**/a", "lib/a") && !matches("src/**/a", "src/x/b"));
	CHECK(matches("**/a", "a") && matches("**/a", "x/a") && matches("**", "x/y"));
	CHECK(matches("src/**", "src/x") && matches("src/**", "src/x/y") &&
		!matches("src/**", "src"));
	CHECK(matches("a/**/b/**/c", "a/x/b/y/z/c") && !matches("a/**/b/**/c", "a/x/c"));
	CHECK(matches("./a//b/", "a/b"));
}

static void matches_alternatives(void)
{
	CHECK(matches("*.{c,h}", "a.c") && matches("*.{c,h}", "a.h") && !matches("*.{c,h}", "a.o"));
	CHECK(matches("{a,b/{c,d}}/x", "b/d/x") && matches("{a,b/{c,d}}/x", "a/x"));
	CHECK(matches("x{,y}", "x") && matches("x{,y}", "xy") && matches("{", "{"));
}

static void knows_where_it_need_not_look(void)
{
	CHECK(may_match_below("src/*.c", "src") && !may_match_below("src/*.c", "lib"));
	CHECK(!may_match_below("src/*.c", "src/x") && may_match_below("**/x", "any/where"));
	CHECK(!may_match_below("/a", "a"));
}

static void refuses_what_is_too_much(void)
{
	struct glob *g;
	char text[8192];
	CHECK_INT(glob_compile("", false, &g), -EINVAL);
	CHECK_INT(glob_compile("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", false, &g), -EINVAL);
	memset(text, 'a', sizeof text);
	text[sizeof text - 1] = '\0';
	CHECK_INT(glob_compile(text, false, &g), -EINVAL);
	for (int i = 0; i < 200; i += 2)
		memcpy(text + i, "a/", 3);
	CHECK_INT(glob_compile(text, false, &g), -EINVAL);
}

static void takes_no_longer_for_evil_patterns(void)
{
	char name[256];
	clock_t before = clock();
	memset(name, 'a', 255);
	name[255] = '\0';
	for (int i = 0; i < 100; i++)
		CHECK(!matches("a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", name));
	char path[4096];
	for (int i = 0; i < 2000; i++)
		memcpy(path + (size_t)i * 2, "a/", 3);
	for (int i = 0; i < 10; i++)
		CHECK(!matches("**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/b", path));
	CHECK((clock() - before) / CLOCKS_PER_SEC < 5);
}

static const struct check_test tests[] = {
	TEST(matches_within_a_name),
	TEST(matches_sets),
	TEST(matches_directories),
	TEST(matches_alternatives),
	TEST(knows_where_it_need_not_look),
	TEST(refuses_what_is_too_much),
	TEST(takes_no_longer_for_evil_patterns),
};

int main(void)
{
	return RUN_TESTS(tests);
}
