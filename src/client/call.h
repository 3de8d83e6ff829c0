/*
 * One call of the API: a request with a JSON body or none, an answer that is JSON, a stream of JSON
 * lines, or an error. The server's {"error":{...}} becomes a struct bunker_error here and nowhere
 * else.
 */
#pragma once

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "bunker.h"
#include "client/lines.h"

struct transport_url;

/* target: the path with its query. body: NULL for none. A 204 answers with an empty object. */
int client_call_json(struct bunker *b, const char *method, struct buf *target,
	const struct buf *body, cJSON **ret, struct bunker_error *e);
/* Makes a call whose answer has no content. */
int client_call_nothing(struct bunker *b, const char *method, struct buf *target,
	const struct buf *body, struct bunker_error *e);
/* Makes a call that is answered by lines, each fed to `lines` as it arrives. */
int client_call_lines(struct bunker *b, const char *method, struct buf *target,
	const struct buf *body, struct lines *lines, struct bunker_error *e);

/* The body is what `source` gives, of the content type `type`. */
int client_call_upload(struct bunker *b, const char *method, struct buf *target, const char *type,
	bunker_read_fn *source, void *arg, cJSON **ret, struct bunker_error *e);

/* Makes a call that is answered by bytes of the type `accept`. */
int client_call_bytes(struct bunker *b, struct buf *target, const char *accept,
	bunker_data_fn *data, void *arg, struct bunker_error *e);

/* Seconds; see again.h. */
unsigned client_call_patience(const struct bunker *b);
/* The parameters of an upgrade. */
const struct transport_url *client_call_url(const struct bunker *b);
const char *client_call_key(const struct bunker *b);
/* An answer that is not a success. */
int client_call_fail_refused(struct bunker_error *e, int status, const struct buf *text);

/* Text as one segment of a path, or as a name or value of a query. */
void client_call_append_escaped(struct buf *target, const char *text);
/* One parameter more of a query. A value of NULL adds nothing. */
void client_call_append_query(struct buf *target, const char *name, const char *value);

/* From an object with code, message and field; for errors that come inside a stream as well. */
int client_call_fail(struct bunker_error *e, int http_status, const cJSON *error);
