/* Commands of a sandbox, or its jobs, those that run first. */
#pragma once

#include "dialect/agentuity/aliases.h"

/*
 * Answers with {KEY: […]} of the sandbox that {id} names, as many as ?limit= says, each of them by
 * the table. gone: also of a sandbox that is gone.
 */
void execution_list_run(struct http_request *req, const char *key, enum execution_kind kind,
	bool gone, const struct json_alias_table *table);
