/*
 * Answers that are made of a table (base/field.h): one object, or a list of them. Such a form is
 * data: it names the table and, of a list, the key, and has no code of its own but for members that
 * no table has.
 */
#pragma once

#include "answer/answer.h"
#include "base/id.h"
#include "json/alias.h"

struct answer_records {
	const struct field_table *table;
	json_own_fn *own; /* of rows of kind FIELD_OWN; NULL: there are none */
	const struct json_alias_table *aliases; /* instead of a table: of a foreign API's objects */
	/* Puts what is around the answer, up to its value; one brace closes it. NULL: nothing. */
	void (*open)(struct json_writer *w);
	const char *list; /* the key of the array; NULL: the array is all there is */
	/* Headers of a list, which its first event tells; NULL: none. */
	void (*begin)(struct answer *a, const struct op_event *event);
	/* Members behind the object's own, or behind the array; NULL: none. */
	void (*rest)(struct answer *a, struct json_writer *w, const struct op_event *event);
	/*
	 * For lists with pages: returns the time and *id of a record, the cursor of a page that
	 * ends with it. NULL: the list has no pages.
	 */
	int64_t (*place)(const void *record, const char **id);
};

/* The `own` of a list. */
struct answer_list {
	struct json_writer w;
	bool begun;
	int64_t last_ms; /* where the page ends, as `place` says */
	char last_id[ID_SIZE];
};

/* For answer_form.put: the record of OP_DONE as an object. */
int answer_put_record(struct answer *a, const struct op_event *event, struct error *e);
/*
 * {LIST: [each OP_ROW or OP_EXECUTION], rest}, or the array alone. A row without a record is left
 * out.
 */
int answer_put_list(struct answer *a, const struct op_event *event, struct error *e);

/* The initializers of a form. */
#define ANSWER_RECORD(described)                                                                   \
	.type = "application/json", .pace = ANSWER_WHOLE, .put = answer_put_record,                \
	.records = (described)
#define ANSWER_LIST(described)                                                                     \
	.type = "application/json", .pace = ANSWER_WHOLE, .put = answer_put_list,                  \
	.own_size = sizeof(struct answer_list), .records = (described)
/* A list in pieces, at the client's pace: for operations that tell their rows by `resume`. */
#define ANSWER_PACED_LIST(described)                                                               \
	.type = "application/json", .pace = ANSWER_BULK, .put = answer_put_list,                   \
	.own_size = sizeof(struct answer_list), .records = (described)
