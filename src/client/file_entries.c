/* File entries, listings in pages, and search results. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/call.h"
#include "client/failure.h"
#include "client/files.h"

#define PAGE "500" /* as many as fit into what a client takes as one answer */

static const struct answer_field entry_fields[] = {
	{"type", ANSWER_STRING, offsetof(struct bunker_entry, type)},
	{"mode", ANSWER_STRING, offsetof(struct bunker_entry, mode)},
	{"owner", ANSWER_STRING, offsetof(struct bunker_entry, owner)},
	{"group", ANSWER_STRING, offsetof(struct bunker_entry, group)},
	{"modifiedAt", ANSWER_STRING, offsetof(struct bunker_entry, modified_at)},
	{"size", ANSWER_INTEGER, offsetof(struct bunker_entry, size)},
	{"uid", ANSWER_INTEGER, offsetof(struct bunker_entry, uid)},
	{"gid", ANSWER_INTEGER, offsetof(struct bunker_entry, gid)},
	{"links", ANSWER_INTEGER, offsetof(struct bunker_entry, links)},
};

static char *decode_base64(const char *text)
{
	size_t len = strlen(text), got = 0;
	unsigned char *bytes = calloc(1, len + 1);
	if (bytes && sodium_base642bin(bytes, len, text, len, NULL, &got, NULL,
			     sodium_base64_VARIANT_ORIGINAL) != 0)
		bytes[0] = '\0';
	return (char *)bytes;
}

char *client_files_name(const cJSON *object, const char *key)
{
	char twin[32];
	snprintf(twin, sizeof twin, "%sBase64", key);
	const char *base64 = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, twin));
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
	return base64 ? decode_base64(base64) : strdup(text ? text : "");
}

static int decode_entry(const cJSON *object, struct bunker_entry *ret, struct bunker_error *e)
{
	client_answer_decode(object, entry_fields, ARRAY_LEN(entry_fields), ret);
	ret->path = client_files_name(object, "path");
	ret->target = client_files_name(object, "target");
	if (!ret->path || !ret->target)
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	const char *slash = strrchr(ret->path, '/');
	ret->name = slash && slash[1] ? slash + 1 : ret->path;
	return 0;
}

void bunker_entry_finish(struct bunker_entry *entry)
{
	free(entry->path);
	free(entry->target);
	cJSON_Delete(client_answer_from_json(entry->json));
	*entry = (struct bunker_entry){0};
}

int bunker_file_stat(struct bunker *b, const char *sandbox_id, const char *path, bool follow,
	const struct bunker_place *place, struct bunker_entry *ret, struct bunker_error *e)
{
	autobuf target = {0};
	autojson *tree = NULL;
	struct bunker_entry entry = {0};
	client_files_target(&target, sandbox_id, "/fs/stat", path, place);
	client_call_append_query(&target, "follow", follow ? "true" : NULL);
	int r = client_call_json(b, "GET", &target, NULL, &tree, e);
	if (r == 0)
		r = decode_entry(tree, &entry, e);
	if (r < 0) {
		bunker_entry_finish(&entry);
		return r;
	}
	entry.json = client_answer_to_json(take_ptr(tree));
	*ret = entry;
	return 0;
}

/* ---- many ---- */

struct page {
	bunker_entry_fn *each;
	void *arg;
	char *cursor; /* of the next one; NULL: there is none */
};

static int tell_entry(const struct page *p, const cJSON *object, struct bunker_error *e)
{
	struct bunker_entry entry = {0};
	int r = decode_entry(object, &entry, e);
	if (r == 0 && p->each(p->arg, &entry) != 0)
		r = client_fail(e, BUNKER_STOPPED, "stopped");
	bunker_entry_finish(&entry);
	return r;
}

static int tell_page(struct page *p, const cJSON *tree, struct bunker_error *e)
{
	const cJSON *item, *list = cJSON_GetObjectItemCaseSensitive(tree, "entries");
	const char *next =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "nextCursor"));
	free(p->cursor);
	p->cursor = next ? strdup(next) : NULL;
	if (next && !p->cursor)
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	cJSON_ArrayForEach(item, list)
	{
		int r = tell_entry(p, item, e);
		if (r < 0)
			return r;
	}
	return 0;
}

int bunker_file_list(struct bunker *b, const char *sandbox_id, const char *path, unsigned depth,
	const struct bunker_place *place, bunker_entry_fn *each, void *arg, struct bunker_error *e)
{
	struct page p = {.each = each, .arg = arg};
	char text[16];
	int r;
	snprintf(text, sizeof text, "%u", depth);
	do {
		autobuf target = {0};
		autojson *tree = NULL;
		client_files_target(&target, sandbox_id, "/fs/list", path, place);
		client_call_append_query(&target, "depth", text);
		client_call_append_query(&target, "limit", PAGE);
		client_call_append_query(&target, "cursor", p.cursor);
		r = client_call_json(b, "GET", &target, NULL, &tree, e);
		if (r == 0)
			r = tell_page(&p, tree, e);
	} while (r == 0 && p.cursor);
	free(p.cursor);
	return r;
}

static void file_entries_begin_body(struct buf *target, struct json_writer *w,
	const char *sandbox_id, const char *what, const char *path,
	const struct bunker_place *place)
{
	buf_append_str(target, "/v1/sandboxes/");
	client_call_append_escaped(target, sandbox_id);
	buf_append_str(target, what);
	json_begin_object(w);
	client_files_put_place(w, path, place);
}

int bunker_file_find(struct bunker *b, const char *sandbox_id, const char *path,
	const char *pattern, const struct bunker_place *place, bunker_entry_fn *each, void *arg,
	struct bunker_error *e)
{
	struct page p = {.each = each, .arg = arg};
	int r;
	do {
		autobuf target = {0}, body = {0};
		autojson *tree = NULL;
		struct json_writer w = {.out = &body};
		file_entries_begin_body(&target, &w, sandbox_id, "/fs/find", path, place);
		json_put_string(&w, "pattern", pattern);
		json_put_int(&w, "limit", atoi(PAGE));
		if (p.cursor)
			json_put_string(&w, "cursor", p.cursor);
		json_end_object(&w);
		r = client_call_json(b, "POST", &target, &body, &tree, e);
		if (r == 0)
			r = tell_page(&p, tree, e);
	} while (r == 0 && p.cursor);
	free(p.cursor);
	return r;
}

/* ---- lines ---- */

static const struct answer_field match_fields[] = {
	{"text", ANSWER_STRING, offsetof(struct bunker_match, text)},
	{"line", ANSWER_INTEGER, offsetof(struct bunker_match, line)},
	{"column", ANSWER_INTEGER, offsetof(struct bunker_match, column)},
};

static int tell_match(const cJSON *object, bunker_match_fn *each, void *arg, struct bunker_error *e)
{
	struct bunker_match match;
	autofree char *path = client_files_name(object, "path");
	if (!path)
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	client_answer_decode(object, match_fields, ARRAY_LEN(match_fields), &match);
	match.path = path;
	return each(arg, &match) == 0 ? 0 : client_fail(e, BUNKER_STOPPED, "stopped");
}

int bunker_file_grep(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_grep_options *o, bunker_match_fn *each, void *arg, bool *truncated,
	struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	autojson *tree = NULL;
	const cJSON *item;
	struct json_writer w = {.out = &body};
	file_entries_begin_body(&target, &w, sandbox_id, "/fs/grep", path, &o->place);
	json_put_string(&w, "pattern", o->pattern);
	json_put_bool(&w, "regex", o->regex);
	json_put_bool(&w, "ignoreCase", o->ignore_case);
	if (o->include)
		json_put_string(&w, "include", o->include);
	json_end_object(&w);
	int r = client_call_json(b, "POST", &target, &body, &tree, e);
	if (r < 0)
		return r;
	*truncated = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(tree, "truncated"));
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(tree, "matches"))
	{
		r = tell_match(item, each, arg, e);
		if (r < 0)
			return r;
	}
	return 0;
}
