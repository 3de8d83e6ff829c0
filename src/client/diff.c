/* Diffs of disks, and the space that disks take: both told line by line. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/failure.h"
#include "client/files.h"
#include "client/sandbox.h"
#include "json/json.h"

/* ---- what was changed ---- */

#define FIELD(json_name, kind, member)                                                             \
	{                                                                                          \
		json_name, kind, offsetof(struct bunker_change, member)                            \
	}

static const struct answer_field change_fields[] = {
	FIELD("change", ANSWER_STRING, change),
	FIELD("type", ANSWER_STRING, type),
	FIELD("oldType", ANSWER_STRING, old_type),
	FIELD("mode", ANSWER_STRING, mode),
	FIELD("oldMode", ANSWER_STRING, old_mode),
	FIELD("size", ANSWER_INTEGER, size),
	FIELD("oldSize", ANSWER_INTEGER, old_size),
};

struct diff_reader {
	bunker_change_fn *each;
	void *arg;
	bool truncated, ended;
};

static int give_change(struct diff_reader *r, cJSON *tree, struct bunker_error *e)
{
	struct bunker_change change = {
		.size = -1, .old_size = -1, .json = client_answer_to_json(tree)};
	client_answer_decode(tree, change_fields, ARRAY_LEN(change_fields), &change);
	change.path = client_files_name(tree, "path");
	if (!change.path)
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	int stop = r->each(r->arg, &change);
	free(change.path);
	return stop ? client_fail(e, BUNKER_STOPPED, "stopped by the caller") : 0;
}

static int client_diff_parse_line(const char *line, size_t len, cJSON **ret, struct bunker_error *e)
{
	struct error bad;
	if (json_parse(line, len, ret, &bad) < 0)
		return client_fail(e, BUNKER_INVALID_RESPONSE, "a line of the server's is no JSON");
	return 0;
}

/* The last line has the totals instead of a path. */
static int client_diff_take_change(void *arg, const char *line, size_t len, struct bunker_error *e)
{
	struct diff_reader *r = arg;
	autojson *tree = NULL;
	if (client_diff_parse_line(line, len, &tree, e) < 0)
		return -1;
	if (cJSON_GetObjectItemCaseSensitive(tree, "path"))
		return give_change(r, tree, e);
	r->truncated = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(tree, "truncated"));
	r->ended = true;
	return 0;
}

static void append_target(struct buf *target, const char *sandbox_id,
	const struct bunker_diff_options *options, const char *format)
{
	client_append_sandbox_path(target, sandbox_id, "/diff?format=");
	buf_append_str(target, format);
	client_call_append_query(target, "checkpoint", options ? options->checkpoint : NULL);
	client_call_append_query(target, "snapshot", options ? options->snapshot : NULL);
}

int bunker_diff(struct bunker *b, const char *sandbox_id, const struct bunker_diff_options *options,
	bunker_change_fn *each, void *arg, bool *truncated, struct bunker_error *e)
{
	autobuf target = {0};
	struct diff_reader reader = {.each = each, .arg = arg};
	struct lines lines = {.take = client_diff_take_change, .arg = &reader};
	append_target(&target, sandbox_id, options, "lines");
	int r = client_call_lines(b, "GET", &target, NULL, &lines, e);
	client_lines_finish(&lines);
	if (r == 0 && !reader.ended)
		return client_fail(e, BUNKER_INVALID_RESPONSE, "the server's answer has no end");
	if (r == 0)
		*truncated = reader.truncated;
	return r;
}

int bunker_diff_bytes(struct bunker *b, const char *sandbox_id,
	const struct bunker_diff_options *options, enum bunker_diff_format format,
	bunker_data_fn *data, void *arg, struct bunker_error *e)
{
	static const struct {
		const char *name, *type;
	} formats[] = {
		[BUNKER_DIFF_JSON] = {"json", "application/json"},
		[BUNKER_DIFF_TEXT] = {"text", "text/x-diff"},
		[BUNKER_DIFF_TAR] = {"tar", "application/x-tar"},
	};
	autobuf target = {0};
	append_target(&target, sandbox_id, options, formats[format].name);
	return client_call_bytes(b, &target, formats[format].type, data, arg, e);
}

/* ---- what disks take ---- */

static const struct answer_field disk_fields[] = {
	{"kind", ANSWER_STRING, offsetof(struct bunker_disk, kind)},
	{"id", ANSWER_STRING, offsetof(struct bunker_disk, id)},
	{"name", ANSWER_STRING, offsetof(struct bunker_disk, name)},
	{"sandboxId", ANSWER_STRING, offsetof(struct bunker_disk, sandbox_id)},
	{"bytes", ANSWER_INTEGER, offsetof(struct bunker_disk, bytes)},
	{"files", ANSWER_INTEGER, offsetof(struct bunker_disk, files)},
	{"limitBytes", ANSWER_INTEGER, offsetof(struct bunker_disk, limit)},
};

struct disk_reader {
	bunker_disk_fn *each;
	void *arg;
};

static int client_diff_take_disk(void *arg, const char *line, size_t len, struct bunker_error *e)
{
	const struct disk_reader *r = arg;
	autojson *tree = NULL;
	if (client_diff_parse_line(line, len, &tree, e) < 0)
		return -1;
	struct bunker_disk disk = {.json = client_answer_to_json(tree)};
	client_answer_decode(tree, disk_fields, ARRAY_LEN(disk_fields), &disk);
	return r->each(r->arg, &disk) ? client_fail(e, BUNKER_STOPPED, "stopped by the caller") : 0;
}

int bunker_disks(struct bunker *b, const char *sandbox_id, bunker_disk_fn *each, void *arg,
	struct bunker_error *e)
{
	autobuf target = {0};
	struct disk_reader reader = {each, arg};
	struct lines lines = {.take = client_diff_take_disk, .arg = &reader};
	buf_append_str(&target, "/v1/disks?format=lines");
	client_call_append_query(&target, "sandbox", sandbox_id);
	int r = client_call_lines(b, "GET", &target, NULL, &lines, e);
	client_lines_finish(&lines);
	return r;
}
