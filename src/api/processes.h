/* Shared by the files about processes, jobs and executions. */
#pragma once

#include "answer/records.h"
#include "api/lookup.h"
#include "api/routes.h"
#include "op/process.h"

/*
 * An answer about the execution that the path names: {id} alone by its id; of a sandbox {id} the
 * {process} by its id, pid or name, or the {job} by its id or name; also of a sandbox that is gone.
 */
struct answer *process_answer(struct http_request *req, const struct answer_form *form);
struct execution_ref process_named(const struct http_request *req);
/* For answer_form.fail: there is no such process, job or execution. */
enum answer_failure process_fail(struct answer *a, struct error *e, const struct op_event *event);
/* One process with what it uses; 201 if it was started. */
extern const struct answer_form process_form;
/* A 204 when it was done. */
extern const struct answer_form process_done_form;

/* Starts what the body describes; answers once it runs, or has ended without having run. */
void processes_start(struct http_request *req, enum execution_kind kind);

/* Lists of processes of a sandbox, or of all if its id is NULL: {KEY: [processes], nextCursor}. */
#define PROCESS_LIST(key)                                                                          \
	{                                                                                          \
		.table = &process_model, .list = (key), .rest = api_put_next,                      \
		.place = process_place                                                             \
	}
int64_t process_place(const void *record, const char **id);
struct answer *process_list_answer(
	struct http_request *req, const struct answer_form *form, const char *sandbox);
