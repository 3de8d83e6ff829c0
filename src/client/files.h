/* Shared by the files of libbunker about files. */
#pragma once

#include "bunker.h"
#include "client/answer.h"
#include "json/json.h"

/* "/v1/sandboxes/ID" and `what`, and the query that names the path and its place. */
void client_files_target(struct buf *target, const char *sandbox_id, const char *what,
	const char *path, const struct bunker_place *place);
/* Writes the place into a JSON body. */
void client_files_put_place(
	struct json_writer *w, const char *path, const struct bunker_place *place);

/* A name as its bytes: from "KEYBase64" when it is there, else from "KEY". Owned; NULL: no memory.
 */
char *client_files_name(const cJSON *object, const char *key);
