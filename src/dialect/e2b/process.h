/* process.Process: what its files share. */
#pragma once

#include "dialect/e2b/rpc.h"
#include "dialect/e2b/envd.h"
#include "op/process.h"

#define TERMINAL_SIDE_MAX 1000

struct terminal_size {
	int64_t cols, rows;
};

/* The "process" of a message: {"pid":1} or {"tag":"x"}. */
struct process_selector {
	int64_t pid;
	const char *tag; /* NULL: by pid */
};

/* From the message's field `process`. */
int process_decode_selector(const cJSON *selector, struct process_selector *ret, struct error *e);
struct execution_ref process_ref(const struct process_selector *selector);
/* "process with pid 1 not found" */
int process_not_found(const struct process_selector *selector, struct error *e);

/* An answer about the process that the message selects; `own` begins with the selector. */
struct process_call {
	struct process_selector selector;
};
/* For answer_form.fail: says which process there is not. */
enum answer_failure process_call_fail(
	struct answer *a, struct error *e, const struct op_event *event);

/* A message's "pty": {"size":{"cols","rows"}}; 80 and 24 where it does not say. */
int process_decode_size(const cJSON *pty, struct terminal_size *ret, struct error *e);

extern const struct route_table process_table, process_control_table, process_input_table,
	process_stream_input_table;
