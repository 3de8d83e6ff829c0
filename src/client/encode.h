/* The option structs of bunker.h as members of the JSON objects that the API takes. */
#pragma once

#include "bunker.h"
#include "json/json.h"

void client_encode_create(struct json_writer *w, const struct bunker_create_options *options);
void client_encode_exec(struct json_writer *w, const struct bunker_exec_options *options);
/* Both in one object. Where they meet (env, files, timeout, user) the execution's have the last
 * word. */
void client_encode_run(struct json_writer *w, const struct bunker_create_options *sandbox,
	const struct bunker_exec_options *options);
void client_encode_process(struct json_writer *w, const struct bunker_process_options *options);
