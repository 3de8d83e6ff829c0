/*
 * The unit tests' harness. A test is a function named by the behaviour it shows; the first check
 * that does not hold ends it. A program lists its tests in a table and ends with RUN_TESTS.
 */
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct check_test {
	const char *name;
	void (*run)(void);
};

#define TEST(function)                                                                             \
	{                                                                                          \
#function, function                                                                \
	}

static jmp_buf check_failed;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			check_fail(__FILE__, __LINE__, #condition, NULL, NULL);                    \
	} while (0)

#define CHECK_STR(actual, wanted) check_str(__FILE__, __LINE__, #actual, actual, wanted)
#define CHECK_INT(actual, wanted) check_int(__FILE__, __LINE__, #actual, actual, wanted)

static const char *check_name;

_Noreturn static inline void check_fail(
	const char *file, int line, const char *what, const char *actual, const char *wanted)
{
	printf("not ok %s: %s:%d: %s", check_name, file, line, what);
	if (actual || wanted)
		printf(" is \"%s\", not \"%s\"", actual ? actual : "(null)",
			wanted ? wanted : "(null)");
	printf("\n");
	longjmp(check_failed, 1);
}

static inline void check_str(
	const char *file, int line, const char *what, const char *actual, const char *wanted)
{
	if (!actual || strcmp(actual, wanted) != 0)
		check_fail(file, line, what, actual, wanted);
}

static inline void check_int(
	const char *file, int line, const char *what, long long actual, long long wanted)
{
	char a[24], w[24];
	snprintf(a, sizeof a, "%lld", actual);
	snprintf(w, sizeof w, "%lld", wanted);
	if (actual != wanted)
		check_fail(file, line, what, a, w);
}

static inline int check_run(const struct check_test *tests, size_t count)
{
	volatile size_t failed = 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (volatile size_t i = 0; i < count; i++) {
		check_name = tests[i].name;
		if (setjmp(check_failed) != 0) {
			failed++;
			continue;
		}
		tests[i].run();
		printf("ok %s\n", tests[i].name);
	}
	printf("%zu passed, %zu failed\n", count - failed, failed);
	return failed > 0;
}

#define RUN_TESTS(table) check_run(table, sizeof(table) / sizeof((table)[0]))
