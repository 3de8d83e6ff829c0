/* The comparison of lines: what stays must be the same on both sides, and as much as possible. */
#include "keeper/diff.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

#define MAX 40

struct case_ {
	const char *text;
	size_t count;
	struct line lines[MAX];
	bool stays[MAX];
};

static void split(struct case_ *c, const char *text)
{
	*c = (struct case_){.text = text};
	for (; *text; text++)
		c->lines[c->count++] = (struct line){text, 1};
}

static size_t common(const struct case_ *a, const struct case_ *b)
{
	size_t best[MAX + 1][MAX + 1] = {0};
	for (size_t i = 1; i <= a->count; i++)
		for (size_t k = 1; k <= b->count; k++)
			best[i][k] = a->text[i - 1] == b->text[k - 1]  ? best[i - 1][k - 1] + 1
				     : best[i - 1][k] > best[i][k - 1] ? best[i - 1][k]
								       : best[i][k - 1];
	return best[a->count][b->count];
}

static void compare(const char *old_text, const char *new_text)
{
	struct case_ a, b;
	char left[MAX + 1] = "", right[MAX + 1] = "";
	size_t n = 0, m = 0;
	split(&a, old_text);
	split(&b, new_text);
	CHECK(lines_compare(a.lines, a.count, a.stays, b.lines, b.count, b.stays));
	for (size_t i = 0; i < a.count; i++)
		if (a.stays[i])
			left[n++] = old_text[i];
	for (size_t i = 0; i < b.count; i++)
		if (b.stays[i])
			right[m++] = new_text[i];
	CHECK(strcmp(left, right) == 0);
	CHECK(n == common(&a, &b));
}

static void what_stays_is_the_same_on_both_sides_and_as_much_as_possible(void)
{
	compare("", "");
	compare("a", "");
	compare("", "a");
	compare("abc", "abc");
	compare("abcabba", "cbabac");
	compare("xabcdefy", "xfedcbay");
	compare("aaaa", "aa");
	srand(7);
	for (int i = 0; i < 3000; i++) {
		char one[MAX + 1] = "", two[MAX + 1] = "";
		int n = rand() % 30, m = rand() % 30, letters = 1 + rand() % 6;
		for (int k = 0; k < n; k++)
			one[k] = (char)('a' + rand() % letters);
		for (int k = 0; k < m; k++)
			two[k] = (char)('a' + rand() % letters);
		compare(one, two);
	}
}

static void gives_up_on_what_has_nothing_in_common(void)
{
	static struct line a[5000], b[5000];
	static bool a_stays[5000], b_stays[5000];
	static char texts[10000][8];
	for (int i = 0; i < 5000; i++) {
		snprintf(texts[i], sizeof texts[i], "a%d", i);
		snprintf(texts[5000 + i], sizeof texts[i], "b%d", i);
		a[i] = (struct line){texts[i], strlen(texts[i])};
		b[i] = (struct line){texts[5000 + i], strlen(texts[5000 + i])};
	}
	CHECK(!lines_compare(a, 5000, a_stays, b, 5000, b_stays));
	for (int i = 0; i < 5000; i++)
		CHECK(!a_stays[i] && !b_stays[i]);
}

static const struct check_test tests[] = {
	TEST(what_stays_is_the_same_on_both_sides_and_as_much_as_possible),
	TEST(gives_up_on_what_has_nothing_in_common),
};

int main(void)
{
	return RUN_TESTS(tests);
}
