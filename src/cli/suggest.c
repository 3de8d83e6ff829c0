#include "cli/suggest.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* Longer words are not compared: names of ours are not longer. */
#define WORD_MAX 64

static size_t suggest_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * How many letters must be added, left out, changed or swapped with their neighbour. Row i of the
 * usual table needs the two above it.
 */
static size_t suggest_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][WORD_MAX + 1];
	for (size_t j = 0; j <= b_len; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i + 2) % 3], *higher = rows[(i + 1) % 3];
		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			row[j] = suggest_min(suggest_min(above[j], row[j - 1]) + 1,
				above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = suggest_min(row[j], higher[j - 2] + 1);
		}
	}
	return rows[a_len % 3][b_len];
}

void cli_suggest_begin(struct suggestion *s, const char *typed, size_t len)
{
	*s = (struct suggestion){.typed = typed, .typed_len = len, .distance = len < 5 ? 2 : 3};
}

void cli_suggest_offer(struct suggestion *s, const char *word)
{
	size_t len = strlen(word);
	if (s->typed_len < 2 || s->typed_len > WORD_MAX || len > WORD_MAX || len < 2)
		return;
	size_t distance = suggest_distance(s->typed, s->typed_len, word, len);
	if (distance >= s->distance)
		return;
	s->best = word;
	s->distance = distance;
}

static const char *suggest_template_asked(const struct arguments *args)
{
	for (size_t i = 0; i < args->settings.count; i++)
		if (strcmp(args->settings.items[i].name, "template") == 0)
			return args->settings.items[i].value;
	return NULL;
}

void cli_suggest_template(struct bunker *b, const struct arguments *args, struct bunker_error *e)
{
	const char *asked = suggest_template_asked(args);
	struct bunker_template_list list;
	struct suggestion s;
	if (!asked || strcmp(e->code, "template_not_found") != 0 ||
		bunker_templates(b, &list, NULL) < 0)
		return;
	cli_suggest_begin(&s, asked, strcspn(asked, ":"));
	for (size_t i = 0; i < list.count; i++)
		cli_suggest_offer(&s, list.items[i].name);
	size_t len = strlen(e->message);
	snprintf(e->message + len, sizeof e->message - len,
		s.best ? "; did you mean '%s'?" : "; see: bunker templates", s.best);
	bunker_template_list_finish(&list);
}
