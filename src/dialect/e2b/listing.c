/* A directory's entries as the answer to a request. */
#include <string.h>

#include "dialect/e2b/files.h"
#include "op/files.h"

struct listing {
	const char *given;
	struct json_writer json;
	struct entry_writer entry;
	const struct listing_form *form;
};

static int listing_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct listing *l = a->own;
	(void)e;
	if (event->kind == OP_ENTRY) {
		l->form->entry(&l->entry, event->entry);
	} else if (event->kind == OP_ATTRIBUTE) {
		entry_attribute(&l->entry, event->attribute);
	} else if (event->kind == OP_DONE) {
		entry_end(&l->entry);
		l->form->end(&l->json);
	}
	return 0;
}

static enum answer_failure listing_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	const struct listing *l = a->own;
	const struct error why = *e;
	if (!event || event->reason != OP_NO_VOLUME)
		l->form->explain(l->given, &why, e);
	return ANSWER_ERROR;
}

const struct answer_form listing_answer = {.type = "application/json",
	.own_size = sizeof(struct listing),
	.put = listing_put,
	.fail = listing_fail};

void listing_run(struct answer *a, const char *given, const struct op_files *request,
	const struct listing_form *form)
{
	struct listing *l = a->own;
	l->given = http_copy(a->req, given);
	l->form = form;
	l->json.out = &a->out;
	l->entry.json = &l->json;
	form->begin(&l->json);
	a->op = op_files(&a->call, request);
	answer_run(a);
}
