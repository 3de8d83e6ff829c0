/* The object, token by token: what is beside the files is kept, the entries go into a tar. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "json/json.h"
#include "json/push.h"
#include "image/portable.h"
#include "image/portable_entry.h"

/* In the object, in its lists, in their entries. */
enum {
	LEVEL_TOP = 1,
	LEVEL_LIST,
	LEVEL_ENTRY
};

enum section {
	SECTION_FORMAT,
	SECTION_VERSION,
	SECTION_TAKEN,
	SECTION_TEMPLATE,
	SECTION_ROOT,
	SECTION_ENV,
	SECTION_LISTS, /* from here on in the order of enum entry_kind */
	SECTION_COUNT = SECTION_LISTS + ENTRY_KIND_COUNT
};

static const struct {
	const char *name;
	size_t max; /* of a text; 0: it is none */
} sections[SECTION_COUNT] = {
	[SECTION_FORMAT] = {"format", 64},
	[SECTION_VERSION] = {"version", 0},
	[SECTION_TAKEN] = {"takenAt", 0},
	[SECTION_TEMPLATE] = {"template", 257},
	[SECTION_ROOT] = {"root", PORTABLE_PATH_MAX},
	[SECTION_ENV] = {"env", 0},
	[SECTION_LISTS + ENTRY_FILE] = {"files", 0},
	[SECTION_LISTS + ENTRY_DIRECTORY] = {"directories", 0},
	[SECTION_LISTS + ENTRY_LINK] = {"links", 0},
	[SECTION_LISTS + ENTRY_HARD_LINK] = {"hardLinks", 0},
	[SECTION_LISTS + ENTRY_DELETED] = {"deleted", 0},
};

struct portable_reader {
	struct json_push json;
	unsigned level, seen;
	enum section section;
	struct buf text; /* of the value that is coming */
	struct buf env_text;
	struct json_writer env_json;
	struct scratch memory;
	const char *template_name, *root;
	const char *const *env;
	bool head_told, done;
	size_t index;
	int field; /* enum entry_field */
	struct portable_entry entry;
	struct portable_paths used;
};

struct portable_reader *portable_reader_new(void)
{
	struct portable_reader *r = mem_new(sizeof *r);
	r->env_json.out = &r->env_text;
	return r;
}

void portable_reader_free(struct portable_reader *r)
{
	if (!r)
		return;
	json_push_finish(&r->json);
	buf_finish(&r->text);
	buf_finish(&r->env_text);
	scratch_finish(&r->memory);
	portable_entry_finish(&r->entry);
	portable_paths_finish(&r->used);
	free(r);
}

void portable_reader_add(struct portable_reader *r, const char *bytes, size_t len)
{
	json_push_add(&r->json, bytes, len);
}

void portable_reader_end(struct portable_reader *r)
{
	json_push_end(&r->json);
}

size_t portable_reader_waiting(const struct portable_reader *r)
{
	return json_push_waiting(&r->json);
}

const char *portable_template(const struct portable_reader *r)
{
	return r->template_name;
}

const char *portable_root(const struct portable_reader *r)
{
	return r->root;
}

const char *const *portable_env(const struct portable_reader *r)
{
	return r->env;
}

static int portable_read_refuse(const struct portable_reader *r, struct error *e, const char *why)
{
	const char *name = sections[r->section].name;
	return error_set_field(e, ERROR_INVALID_FIELD, name, "\"%s\" %s", name, why);
}

/* ---- what is beside the files ---- */

static int begin_section(struct portable_reader *r, const char *key, struct error *e)
{
	for (int i = 0; i < SECTION_COUNT; i++) {
		if (strcmp(sections[i].name, key) != 0)
			continue;
		r->section = (enum section)i;
		if (r->seen & (1u << i))
			return portable_read_refuse(r, e, "is there twice");
		r->seen |= 1u << i;
		r->text.len = r->index = 0;
		return 0;
	}
	return error_set_field(e, ERROR_UNKNOWN_FIELD, key, "\"%.64s\" is not a known field", key);
}

static const char *keep_text(struct portable_reader *r)
{
	char *copy = scratch_alloc(&r->memory, r->text.len + 1);
	if (r->text.len > 0)
		memcpy(copy, r->text.data, r->text.len);
	return copy;
}

static int portable_read_check_root(struct portable_reader *r, struct error *e)
{
	const char *root = keep_text(r);
	autofree char *rest = strdup(root[0] == '/' ? root + 1 : "..");
	if (!rest)
		return error_set(e, ERROR_UNAVAILABLE, "out of memory");
	if (!tar_clean_path(rest) || strlen(root) != r->text.len)
		return portable_read_refuse(r, e, "must be an absolute path, without \"..\"");
	r->root = root;
	return 0;
}

static int end_text(struct portable_reader *r, struct error *e)
{
	if (r->section == SECTION_FORMAT)
		return strcmp(keep_text(r), "bunker-sandbox") == 0
			       ? 0
			       : portable_read_refuse(r, e, "must be \"bunker-sandbox\"");
	if (r->text.len == 0 || r->text.len > sections[r->section].max)
		return portable_read_refuse(r, e, "is empty or too long");
	if (r->head_told)
		return portable_read_refuse(r, e, "must come before the files");
	if (r->section == SECTION_ROOT)
		return portable_read_check_root(r, e);
	r->template_name = keep_text(r);
	return 0;
}

static int portable_take_number(const struct buf *text, int64_t *ret)
{
	char *end;
	double number = strtod(text->data, &end);
	if (text->data[0] > '9' || *end || number < -9007199254740992.0 ||
		number > 9007199254740992.0 || number != (double)(int64_t)number)
		return -1;
	*ret = (int64_t)number;
	return 0;
}

static int take_literal(struct portable_reader *r, struct error *e)
{
	int64_t number;
	if ((r->section != SECTION_VERSION && r->section != SECTION_TAKEN) ||
		portable_take_number(&r->json.text, &number) < 0)
		return portable_read_refuse(r, e, "is not of the kind that it must be");
	if (r->section == SECTION_VERSION && number != 1)
		return portable_read_refuse(r, e, "must be 1; another was made by a newer bunker");
	return 0;
}

/* Into a text of its own, which is then looked at as any environment is. */
static int portable_read_take_env(struct portable_reader *r, int token, struct error *e)
{
	const struct buf *text = &r->json.text;
	if (r->env_text.len + r->text.len > PORTABLE_ENV_MAX)
		return portable_read_refuse(r, e, "is too long");
	switch (token) {
	case JSON_BEGIN_OBJECT:
		json_begin_object(&r->env_json);
		return r->json.scan.depth == LEVEL_TOP + 1
			       ? 0
			       : portable_read_refuse(r, e, "must hold texts");
	case JSON_KEY:
		json_key_n(&r->env_json, text->data, text->len);
		r->text.len = 0;
		return 0;
	case JSON_PIECE:
		buf_append(&r->text, text->data, text->len);
		return 0;
	case JSON_TEXT_END:
		json_string_n(&r->env_json, r->text.len ? r->text.data : "", r->text.len);
		return 0;
	case JSON_END_OBJECT:
		json_end_object(&r->env_json);
		return 0;
	default:
		return portable_read_refuse(r, e, "must be an object of texts");
	}
}

static int end_env(struct portable_reader *r, struct error *e)
{
	cJSON *tree = NULL;
	if (json_parse(r->env_text.data, r->env_text.len, &tree, e) < 0)
		return -1;
	int result = cJSON_IsObject(tree)
			     ? json_environment(tree, "env", &r->memory, &r->env, e)
			     : portable_read_refuse(r, e, "must be an object of texts");
	cJSON_Delete(tree);
	return result;
}

/* ---- tokens ---- */

static int take_top(struct portable_reader *r, int token, struct error *e)
{
	switch (token) {
	case JSON_KEY:
		return begin_section(r, r->json.text.data, e);
	case JSON_PIECE:
		buf_append(&r->text, r->json.text.data, r->json.text.len);
		return r->text.len <= sections[r->section].max
			       ? 0
			       : portable_read_refuse(r, e, "is too long");
	case JSON_TEXT_END:
		return sections[r->section].max ? end_text(r, e)
						: portable_read_refuse(r, e, "must not be a text");
	case JSON_BEGIN_ARRAY:
		r->level = LEVEL_LIST;
		return r->section >= SECTION_LISTS
			       ? 0
			       : portable_read_refuse(r, e, "must not be a list");
	case JSON_LITERAL:
		return take_literal(r, e);
	default:
		return portable_read_refuse(r, e, "must be a list");
	}
}

static int take_list(struct portable_reader *r, int token, struct error *e)
{
	if (token == JSON_END_ARRAY) {
		r->level = LEVEL_TOP;
		return 0;
	}
	if (token != JSON_BEGIN_OBJECT)
		return portable_read_refuse(r, e, "must hold objects");
	portable_entry_begin(&r->entry, (enum entry_kind)(r->section - SECTION_LISTS), r->index++);
	r->level = LEVEL_ENTRY;
	return 0;
}

static int take_entry_number(struct portable_reader *r, struct error *e)
{
	int64_t number;
	if (!portable_entry_field_is_number((enum entry_field)r->field) ||
		portable_take_number(&r->json.text, &number) < 0)
		return portable_read_refuse(r, e, "has an entry with a value of the wrong kind");
	return portable_entry_put_number(&r->entry, (enum entry_field)r->field, number, e);
}

static int take_entry_piece(struct portable_reader *r, struct buf *out, struct error *e)
{
	const struct buf *text = &r->json.text;
	if (r->field == FIELD_CONTENTS)
		return portable_entry_put_contents(
			&r->entry, &r->used, text->data, text->len, out, e);
	buf_append(&r->text, text->data, text->len);
	return r->text.len <= 2 * PORTABLE_PATH_MAX
		       ? 0
		       : portable_read_refuse(r, e, "has an entry with too long a text");
}

static int end_entry_text(struct portable_reader *r, struct buf *out, struct error *e)
{
	if (r->field == FIELD_CONTENTS) /* an empty file has no piece */
		return portable_entry_put_contents(&r->entry, &r->used, "", 0, out, e);
	if (portable_entry_field_is_number((enum entry_field)r->field))
		return portable_read_refuse(
			r, e, "has an entry with a text where a number must be");
	buf_append_char(&r->text, '\0');
	if (r->text.failed)
		return error_set(e, ERROR_UNAVAILABLE, "out of memory");
	r->text.len--;
	return portable_entry_put_text(&r->entry, (enum entry_field)r->field, &r->text, e);
}

static int portable_read_take_entry(
	struct portable_reader *r, int token, struct buf *out, struct error *e)
{
	switch (token) {
	case JSON_KEY:
		r->text.len = 0;
		r->field = portable_entry_field_of(&r->entry, r->json.text.data, e);
		return r->field < 0 ? -1 : 0;
	case JSON_PIECE:
		return take_entry_piece(r, out, e);
	case JSON_TEXT_END:
		return end_entry_text(r, out, e);
	case JSON_LITERAL:
		return take_entry_number(r, e);
	case JSON_END_OBJECT:
		r->level = LEVEL_LIST;
		return portable_entry_end(&r->entry, &r->used, out, e);
	default:
		return portable_read_refuse(r, e, "has an entry with a value of the wrong kind");
	}
}

static bool is_in_env(const struct portable_reader *r)
{
	return r->level == LEVEL_TOP && r->section == SECTION_ENV &&
	       (r->seen & (1u << SECTION_ENV)) && !r->env;
}

static int portable_read_take(
	struct portable_reader *r, int token, struct buf *out, struct error *e)
{
	if (r->level == 0) {
		r->level = LEVEL_TOP;
		return token == JSON_BEGIN_OBJECT
			       ? 0
			       : error_set(e, ERROR_INVALID_REQUEST, "the body must be an object");
	}
	if (is_in_env(r)) {
		if (portable_read_take_env(r, token, e) < 0)
			return -1;
		return token == JSON_END_OBJECT ? end_env(r, e) : 0;
	}
	if (r->level == LEVEL_LIST)
		return take_list(r, token, e);
	if (r->level == LEVEL_ENTRY)
		return portable_read_take_entry(r, token, out, e);
	return token == JSON_END_OBJECT ? 0 : take_top(r, token, e);
}

/* ---- steps ---- */

static int portable_read_finish(struct portable_reader *r, struct buf *out)
{
	static const char zeros[2 * TAR_BLOCK];
	if (!r->done)
		buf_append(out, zeros, sizeof zeros);
	r->done = true;
	return PORTABLE_DONE;
}

/* Trailing text is found only when the body has ended. */
int portable_read(struct portable_reader *r, struct buf *out, size_t window, struct error *e)
{
	while (out->len < window) {
		if (!r->head_told && r->level == LEVEL_ENTRY) {
			r->head_told = true;
			return PORTABLE_HEAD;
		}
		int token = json_push_step(&r->json, e);
		if (token < 0)
			return -1;
		if (token == JSON_MORE || (token == JSON_DONE && !r->json.scan.last))
			return PORTABLE_MORE;
		if (token == JSON_DONE && r->head_told)
			return portable_read_finish(r, out);
		if (token == JSON_DONE) {
			r->head_told = true;
			return PORTABLE_HEAD;
		}
		if (portable_read_take(r, token, out, e) < 0)
			return -1;
		if (out->failed || r->text.failed || r->env_text.failed)
			return error_set(e, ERROR_UNAVAILABLE, "out of memory");
	}
	return PORTABLE_FULL;
}
