#include "dialect/agentuity/execution_list.h"

#include "answer/query.h"
#include "op/process.h"

#define LIST_DEFAULT 50
#define LIST_MAX     100

struct execution_list {
	struct json_writer writer;
	const struct json_alias_table *table;
	int64_t left;
};

static int execution_list_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct execution_list *list = a->own;
	(void)e;
	if (event->kind == OP_EXECUTION && list->left-- > 0)
		agentuity_put_execution(&list->writer, list->table, a->req, event->execution, NULL);
	if (event->kind != OP_DONE)
		return 0;
	json_end_array(&list->writer);
	json_end_object(&list->writer);
	json_end_object(&list->writer);
	return 0;
}

static void execution_list_begin(struct answer *a, const char *key)
{
	struct execution_list *list = a->own;
	list->writer.out = &a->out;
	agentuity_begin_data(&list->writer);
	json_begin_object(&list->writer);
	json_key(&list->writer, key);
	json_begin_array(&list->writer);
}

void execution_list_run(struct http_request *req, const char *key, enum execution_kind kind,
	bool gone, const struct json_alias_table *table)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct execution_list),
		.put = execution_list_put,
		.fail = agentuity_fail};
	struct error e;
	struct answer *a = agentuity_answer(req, &form);
	struct execution_list *list = a->own;
	list->table = table;
	list->left = LIST_DEFAULT;
	if (query_optional_number(req, "limit", 1, LIST_MAX, &list->left, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	execution_list_begin(a, key);
	a->call.finds_gone = gone && agentuity_bare_id(http_param(req, "id"), "sbx_");
	a->op = op_process_list(&a->call, &(struct op_process_list){.running = true,
						  .ended = true,
						  .kinds = 1u << kind,
						  .limit = (unsigned)list->left});
	answer_run(a);
}
