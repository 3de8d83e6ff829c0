#include "dialect/e2b/watch.h"

#include <stddef.h>

#define PATH_LEN_MAX 4095

static const struct json_field watch_fields[] = {
	{"path", FIELD_TEXT, offsetof(struct watch_message, path), 0, 0, PATH_LEN_MAX},
	{"recursive", FIELD_BOOL, offsetof(struct watch_message, recursive), 0, 0, 0},
	{"includeEntry", FIELD_BOOL, offsetof(struct watch_message, include_entry), 0, 0, 0},
	{"allowNetworkMounts", FIELD_BOOL, offsetof(struct watch_message, network_mounts), 0, 0, 0},
};

int watch_decode(struct http_request *req, const cJSON *message, struct watch_spec *ret,
	const char **given, struct error *e)
{
	struct watch_message fields = {.path = ""};
	if (json_decode_known(message, watch_fields, ARRAY_LEN(watch_fields), "", &fields, e) < 0 ||
		!(ret->path = envd_path(fields.path, e)) || envd_user(req, &ret->user, e) < 0)
		return -1;
	*given = http_copy(req, fields.path);
	ret->as_root = true;
	ret->recursive = fields.recursive;
	ret->entries = fields.include_entry;
	return 0;
}

/* ---- entries ---- */

void watch_keep_entry(struct watch_entry *kept, const struct op_event *event)
{
	if (event->kind == OP_ENTRY) {
		kept->json = (struct json_writer){.out = &kept->text};
		kept->writer = (struct entry_writer){.json = &kept->json};
		entry_begin(&kept->writer, event->entry);
	} else if (event->kind == OP_ATTRIBUTE) {
		entry_attribute(&kept->writer, event->attribute);
	}
}

void watch_drop_entry(struct watch_entry *kept)
{
	buf_finish(&kept->text);
}

/* ---- events ---- */

unsigned watch_translate(
	struct watch_entry *kept, const struct file_notice *notice, struct watch_event out[2])
{
	const struct buf *entry = NULL;
	if (kept->text.len > 0) {
		entry_end(&kept->writer);
		entry = kept->text.failed ? NULL : &kept->text;
	}
	if (notice->kind != FILE_EVENT_RENAME || !notice->destination[0]) {
		out[0] = (struct watch_event){notice->kind, notice->path, entry};
		return 1;
	}
	out[0] = (struct watch_event){notice->kind, notice->path, NULL};
	out[1] = (struct watch_event){FILE_EVENT_CREATE, notice->destination, entry};
	return 2;
}

void watch_put_event(struct json_writer *w, const struct watch_event *event)
{
	static const char *const names[FILE_EVENT_KINDS] = {
		[FILE_EVENT_CREATE] = "EVENT_TYPE_CREATE",
		[FILE_EVENT_WRITE] = "EVENT_TYPE_WRITE",
		[FILE_EVENT_REMOVE] = "EVENT_TYPE_REMOVE",
		[FILE_EVENT_RENAME] = "EVENT_TYPE_RENAME",
		[FILE_EVENT_CHMOD] = "EVENT_TYPE_CHMOD",
		[FILE_EVENT_OVERFLOW] = "EVENT_TYPE_UNSPECIFIED",
	};
	json_begin_object(w);
	json_put_string(w, "name", event->name);
	json_put_string(w, "type", names[event->kind]);
	if (event->entry) {
		json_key(w, "entry");
		json_raw_n(w, event->entry->data, event->entry->len);
	}
	json_end_object(w);
}
