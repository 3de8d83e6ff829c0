/*
 * An execution's end as an answer. Long output is not collected for it: it is read from the spool
 * while the client takes it, so that many answers at once cost little memory.
 */
#pragma once

#include "api/routes.h"

#define RESULT_PIECE (48u * 1024) /* a multiple of 3: pieces of base64 fit together */

/* The `own` of the form's answers. */
struct result {
	bool base64;
	bool open;        /* the current output's string is */
	unsigned current; /* output */
	struct buf carry; /* of text: the beginning of a character */
};

extern const struct answer_form result_form;
