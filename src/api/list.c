/* Lists of executions. */
#include <string.h>

#include "api/encode.h"
#include "api/lookup.h"
#include "api/processes.h"

static void api_list_process_list_row(struct process_list *list, const struct execution_view *view)
{
	json_begin_object(&list->writer);
	encode_process(&list->writer, view);
	json_end_object(&list->writer);
	if (view->status <= EXECUTION_RUNNING)
		return;
	list->last_ms = view->started_ms;
	memcpy(list->last_id, view->id, ID_SIZE);
}

static int api_list_process_list_put(
	struct answer *a, const struct op_event *event, struct error *e)
{
	struct process_list *list = a->own;
	(void)e;
	if (event->kind == OP_EXECUTION)
		api_list_process_list_row(list, event->execution);
	if (event->kind != OP_DONE)
		return 0;
	json_end_array(&list->writer);
	if (event->more)
		api_put_cursor(&list->writer, list->last_ms, list->last_id);
	json_end_object(&list->writer);
	return 0;
}

struct answer *process_list_answer(
	struct http_request *req, const char *key, const char *sandbox_id)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct process_list),
		.put = api_list_process_list_put};
	struct answer *a = api_answer(req, &form);
	struct process_list *list = a->own;
	a->call.sandbox = sandbox_id;
	a->call.finds_gone = true;
	list->writer.out = &a->out;
	json_begin_object(&list->writer);
	json_key(&list->writer, key);
	json_begin_array(&list->writer);
	return a;
}
