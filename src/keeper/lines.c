/*
 * Myers' algorithm: the fewest lines that have to be taken away and added. The work grows with the
 * number of differences, and so does the memory: after DIFFERENCES_MAX it is given up.
 */
#include <stdlib.h>
#include <string.h>

#include "keeper/diff.h"

#define DIFFERENCES_MAX 1500

static bool keeper_lines_is_same(const struct line *a, const struct line *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* How far along the old lines one gets on each diagonal (old - new), for one number of differences:
 * entries -d … d. */
struct front {
	int *reach; /* [d + k] */
};

static int reach_of(const struct front *f, int d, int k)
{
	return f->reach[d + k];
}

/* The diagonal that one came from: with a new line, or without an old one. */
static int came_from(const struct front *before, int d, int k)
{
	bool new_line = k == -d ||
			(k != d && reach_of(before, d - 1, k - 1) < reach_of(before, d - 1, k + 1));
	return new_line ? k + 1 : k - 1;
}

/* Walks back from the end and marks the lines that stay. */
static void keeper_lines_mark(
	const struct front *fronts, int d, int x, int y, bool *old_stays, bool *new_stays)
{
	for (; d >= 0; d--) {
		int from = d > 0 ? came_from(&fronts[d - 1], d, x - y) : 0;
		int from_x = d > 0 ? reach_of(&fronts[d - 1], d - 1, from) : 0;
		int from_y = from_x - from;
		while (x > from_x && y > from_y) {
			x--;
			y--;
			old_stays[x] = new_stays[y] = true;
		}
		x = from_x;
		y = from_y;
	}
}

static int keeper_lines_furthest(const struct front *before, int d, int k)
{
	if (d == 0)
		return 0;
	int from = came_from(before, d, k);
	return reach_of(before, d - 1, from) + (from < k);
}

static bool keeper_lines_search(struct front *fronts, const struct line *old, int n,
	const struct line *new, int m, bool *old_stays, bool *new_stays)
{
	int most = n + m < DIFFERENCES_MAX ? n + m : DIFFERENCES_MAX;
	for (int d = 0; d <= most; d++) {
		fronts[d].reach = calloc(2 * (size_t)d + 1, sizeof(int));
		if (!fronts[d].reach)
			return false;
		for (int k = -d; k <= d; k += 2) {
			int x = keeper_lines_furthest(d ? &fronts[d - 1] : NULL, d, k), y = x - k;
			while (x < n && y >= 0 && y < m && keeper_lines_is_same(&old[x], &new[y])) {
				x++;
				y++;
			}
			fronts[d].reach[d + k] = x;
			if (x >= n && y >= m) {
				keeper_lines_mark(fronts, d, n, m, old_stays, new_stays);
				return true;
			}
		}
	}
	return false;
}

bool lines_compare(const struct line *old, size_t old_count, bool *old_stays,
	const struct line *new, size_t new_count, bool *new_stays)
{
	while (old_count > 0 && new_count > 0 && keeper_lines_is_same(old, new)) {
		*old_stays++ = *new_stays++ = true;
		old++, new ++;
		old_count--, new_count--;
	}
	while (old_count > 0 && new_count > 0 &&
		keeper_lines_is_same(&old[old_count - 1], &new[new_count - 1]))
		old_stays[--old_count] = new_stays[--new_count] = true;
	if (old_count == 0 || new_count == 0)
		return true;
	struct front *fronts = calloc(DIFFERENCES_MAX + 1, sizeof *fronts);
	if (!fronts)
		return false;
	bool found = keeper_lines_search(
		fronts, old, (int)old_count, new, (int)new_count, old_stays, new_stays);
	for (size_t i = 0; i <= DIFFERENCES_MAX; i++)
		free(fronts[i].reach);
	free(fronts);
	return found;
}
