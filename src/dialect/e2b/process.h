/* process.Process: what its files share. */
#pragma once

#include "box/process/execution.h"
#include "dialect/e2b/connect.h"
#include "dialect/e2b/envd.h"

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
/* One that runs; NULL and *e otherwise. */
struct execution *process_find(
	const struct sandbox *s, const struct process_selector *selector, struct error *e);
/* The same, also one that has ended and is not in the store yet. */
struct execution *process_find_any(
	const struct sandbox *s, const struct process_selector *selector);
/* Connect to one that has ended, if there is one. */
void process_connect_past(
	struct http_request *req, const struct sandbox *s, const struct process_selector *selector);
/* "process with pid 1 not found" */
int process_not_found(const struct process_selector *selector, struct error *e);

/* A message's "pty": {"size":{"cols","rows"}}; 80 and 24 where it does not say. */
int process_decode_size(const cJSON *pty, struct terminal_size *ret, struct error *e);

extern const struct route_table process_table, process_control_table, process_input_table,
	process_stream_input_table;
