/* What a sandbox reached, and what was refused. */
#include <string.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/failure.h"
#include "client/lines.h"
#include "client/sandbox.h"
#include "json/json.h"

#define FIELD(json_name, kind, member)                                                             \
	{                                                                                          \
		json_name, ANSWER_##kind, offsetof(struct bunker_destination, member)              \
	}

static const struct answer_field destination_fields[] = {
	FIELD("host", STRING, host),
	FIELD("port", INTEGER, port),
	FIELD("address", STRING, address),
	FIELD("other", BOOL, is_other),
	FIELD("connections", INTEGER, connections),
	FIELD("failed", INTEGER, failed),
	FIELD("refused", INTEGER, refused),
	FIELD("bytesIn", INTEGER, bytes_in),
	FIELD("bytesOut", INTEGER, bytes_out),
	FIELD("lastUsedAt", STRING, used_at),
};

struct destination_reader {
	bunker_destination_fn *each;
	void *arg;
};

/* The strings live in the tree, which stays the caller's. */
static int destination_give(const struct destination_reader *r, cJSON *tree, struct bunker_error *e)
{
	struct bunker_destination destination = {.json = client_answer_to_json(tree)};
	client_answer_decode(tree, destination_fields, ARRAY_LEN(destination_fields), &destination);
	return r->each(r->arg, &destination)
		       ? client_fail(e, BUNKER_STOPPED, "stopped by the caller")
		       : 0;
}

/* A line without a host is no destination: it keeps the connection alive. */
static int destination_take_line(void *arg, const char *line, size_t len, struct bunker_error *e)
{
	struct error bad;
	autojson *tree = NULL;
	if (len == 0)
		return 0;
	if (json_parse(line, len, &tree, &bad) < 0)
		return client_fail(e, BUNKER_INVALID_RESPONSE, "a line of the server's is no JSON");
	return cJSON_HasObjectItem(tree, "host") ? destination_give(arg, tree, e) : 0;
}

static int destination_follow(
	struct bunker *b, struct buf *target, struct destination_reader *r, struct bunker_error *e)
{
	struct lines lines = {.take = destination_take_line, .arg = r};
	int result = client_call_lines(b, "GET", target, NULL, &lines, e);
	client_lines_finish(&lines);
	return result;
}

int bunker_destinations(struct bunker *b, const char *id, bool go_on, bunker_destination_fn *each,
	void *arg, struct bunker_error *e)
{
	struct destination_reader reader = {each, arg};
	autobuf target = {0};
	autojson *answer = NULL;
	client_append_sandbox_path(&target, id, "/network/destinations");
	if (go_on)
		return destination_follow(b, &target, &reader, e);
	if (client_call_json(b, "GET", &target, NULL, &answer, e) < 0)
		return -1;
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(answer, "destinations");
	for (cJSON *item = list ? list->child : NULL; item; item = item->next)
		if (destination_give(&reader, item, e) < 0)
			return -1;
	return 0;
}
