/* A watch: server-sent events, of which the lines that begin with "data: " are all that counts. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/again.h"
#include "client/call.h"
#include "client/failure.h"
#include "client/files.h"

struct watching {
	struct lines lines;
	bunker_file_event_fn *each;
	void *arg;
	struct bunker_error *e;
	struct again again;
	bool failed; /* *e says why */
	bool ready;  /* it was told */
};

/* The server watches anew since its restart: nobody saw what happened before that. */
static const struct bunker_file_event missed = {
	.type = "overflow", .path = "", .to = "", .json = "{\"type\":\"overflow\"}"};

static int file_events_tell(struct watching *w, const cJSON *object, const char *json)
{
	autofree char *path = client_files_name(object, "path");
	autofree char *to = client_files_name(object, "to");
	const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "type"));
	if (!path || !to || !type)
		return client_fail(w->e, BUNKER_INVALID_RESPONSE, "the server's event has no type");
	if (strcmp(type, "error") == 0)
		return client_call_fail(w->e, 200, object);
	client_again_progress(&w->again);
	bool anew = strcmp(type, "ready") == 0 && w->ready;
	w->ready = true;
	struct bunker_file_event event = {.type = type,
		.path = path,
		.to = to,
		.directory = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, "directory")),
		.json = json};
	return w->each(w->arg, anew ? &missed : &event) == 0
		       ? 0
		       : client_fail(w->e, BUNKER_STOPPED, "stopped");
}

static int file_events_take_line(void *arg, const char *line, size_t len, struct bunker_error *e)
{
	static const char mark[] = "data: ";
	struct watching *w = arg;
	autojson *object = NULL;
	if (len < strlen(mark) || memcmp(line, mark, strlen(mark)) != 0)
		return 0;
	autofree char *json = strndup(line + strlen(mark), len - strlen(mark));
	if (!json)
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	object = cJSON_Parse(json);
	return file_events_tell(w, object, json);
}

static int file_events_take_data(void *arg, const void *data, size_t size)
{
	struct watching *w = arg;
	w->failed = client_lines_feed(&w->lines, data, size, w->e) < 0;
	return w->failed;
}

static int file_events_follow(
	struct bunker *b, const struct buf *target, struct watching *w, struct bunker_error *e)
{
	struct bunker_error ended;
	autobuf copy = {0};
	buf_append(&copy, target->data, target->len);
	w->lines = (struct lines){.take = file_events_take_line, .arg = w};
	int r = client_call_bytes(b, &copy, "text/event-stream", file_events_take_data, w, &ended);
	client_lines_finish(&w->lines);
	if (r < 0)
		*e = w->failed ? *w->e : ended;
	return r;
}

int bunker_file_watch(struct bunker *b, const char *sandbox_id, const char *path, bool recursive,
	const struct bunker_place *place, bunker_file_event_fn *each, void *arg,
	struct bunker_error *e)
{
	autobuf target = {0};
	struct bunker_error why = {0}, ended;
	struct watching w = {.each = each, .arg = arg, .e = &why, .again.bunker = b};
	client_files_target(&target, sandbox_id, "/fs/watch", path, place);
	client_call_append_query(&target, "recursive", recursive ? "true" : NULL);
	int r;
	do
		r = file_events_follow(b, &target, &w, &ended);
	while (r < 0 && client_again(&w.again, &ended));
	if (r < 0 && e)
		*e = ended;
	return r;
}
