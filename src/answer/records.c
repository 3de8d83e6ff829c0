#include "answer/records.h"

#include <string.h>

static void records_put_members(
	struct json_writer *w, const struct answer_records *r, const void *record)
{
	if (r->aliases)
		json_encode_alias(w, r->aliases, record);
	else
		json_encode(w, r->table, record, r->own);
}

int answer_put_record(struct answer *a, const struct op_event *event, struct error *e)
{
	const struct answer_records *r = a->form->records;
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (r->open)
		r->open(&w);
	json_begin_object(&w);
	records_put_members(&w, r, event->record);
	if (r->rest)
		r->rest(a, &w, event);
	json_end_object(&w);
	if (r->open)
		json_end_object(&w);
	return 0;
}

static void record_list_begin(
	struct answer *a, struct answer_list *list, const struct op_event *event)
{
	const struct answer_records *r = a->form->records;
	if (list->begun)
		return;
	list->begun = true;
	if (r->begin)
		r->begin(a, event);
	list->w.out = &a->out;
	if (r->open)
		r->open(&list->w);
	if (r->list) {
		json_begin_object(&list->w);
		json_key(&list->w, r->list);
	}
	json_begin_array(&list->w);
}

static void record_list_end(
	struct answer *a, struct answer_list *list, const struct op_event *event)
{
	const struct answer_records *r = a->form->records;
	json_end_array(&list->w);
	if (r->rest)
		r->rest(a, &list->w, event);
	if (r->list)
		json_end_object(&list->w);
	if (r->open)
		json_end_object(&list->w);
}

static void record_list_note_place(
	struct answer_list *list, const struct answer_records *r, const void *record)
{
	const char *id = NULL;
	int64_t ms = r->place ? r->place(record, &id) : 0;
	if (!id)
		return;
	list->last_ms = ms;
	memcpy(list->last_id, id, ID_SIZE);
}

int answer_put_list(struct answer *a, const struct op_event *event, struct error *e)
{
	const struct answer_records *r = a->form->records;
	struct answer_list *list = a->own;
	(void)e;
	record_list_begin(a, list, event);
	if (event->kind == OP_DONE) {
		record_list_end(a, list, event);
	} else if (event->record) {
		json_begin_object(&list->w);
		records_put_members(&list->w, r, event->record);
		json_end_object(&list->w);
		record_list_note_place(list, r, event->record);
	}
	return 0;
}
