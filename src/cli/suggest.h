/* "Did you mean": of the words that are offered, the one that differs least from what was typed. */
#pragma once

#include "cli/arguments.h"

struct suggestion {
	const char *typed;
	size_t typed_len;
	const char *best; /* borrowed from its offerer; NULL: none is close */
	size_t distance;  /* of the best */
};

/* Letters that are missing, too many, wrong or swapped: one or two of them, by the length. */
void cli_suggest_begin(struct suggestion *s, const char *typed, size_t len);
void cli_suggest_offer(struct suggestion *s, const char *word);

/* To an error about a template that is not there: the name that may have been meant. */
void cli_suggest_template(struct bunker *b, const struct arguments *args, struct bunker_error *e);
