/*
 * POST …/fs/mkdir, move, copy, remove, chmod, chown, symlink, find, grep, replace, and PATCH
 * …/fs/metadata: a JSON object each, decoded by the operation's own table.
 */
#include <stddef.h>
#include <string.h>

#include "api/files.h"

/* The fields of all these requests. Absent booleans keep the operation's default. */
struct change_body {
	const char *user, *cwd;
	const char *path, *path64, *from, *from64, *to, *to64, *target, *target64;
	const char *mode, *owner, *pattern, *replacement, *include, *type, *cursor;
	const cJSON *set, *set64, *unset;
	bool parents, recursive, overwrite, exist_ok, follow, regex, ignore_case, dry_run;
	int64_t depth, limit;
};

#define AT(member)    offsetof(struct change_body, member)
#define PATH_MAX_TEXT 4095
#define TEXT_MAX      (16 << 10)

#define PLACE_FIELDS                                                                               \
	{"user", FIELD_TEXT, AT(user), FIELD_NOT_EMPTY, 0, 63},                                    \
		{"cwd", FIELD_TEXT, AT(cwd), FIELD_NOT_EMPTY, 0, PATH_MAX_TEXT},
#define NAME_FIELDS(name, member)                                                                  \
	{name, FIELD_TEXT, AT(member), 0, 0, PATH_MAX_TEXT},                                       \
		{name "Base64", FIELD_TEXT, AT(member##64), 0, 0, 2 * PATH_MAX_TEXT},
#define FLAG_FIELD(name, member) {name, FIELD_BOOL, AT(member), 0, 0, 0},
#define MODE_FIELD(flags)        {"mode", FIELD_TEXT, AT(mode), flags, 0, 5},
#define OWNER_FIELD(flags)       {"owner", FIELD_TEXT, AT(owner), (flags) | FIELD_NOT_EMPTY, 0, 127},
#define PATTERN_FIELDS                                                                             \
	{"pattern", FIELD_TEXT, AT(pattern), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, TEXT_MAX},       \
		FLAG_FIELD("ignoreCase", ignore_case){                                             \
			"limit", FIELD_INTEGER, AT(limit), 0, 1, FILES_LIMIT_MAX},

static const struct json_field mkdir_fields[] = {PLACE_FIELDS NAME_FIELDS("path", path) MODE_FIELD(
	0) OWNER_FIELD(0) FLAG_FIELD("parents", parents) FLAG_FIELD("existOk", exist_ok)};
static const struct json_field move_fields[] = {PLACE_FIELDS NAME_FIELDS("from", from) NAME_FIELDS(
	"to", to) FLAG_FIELD("parents", parents) FLAG_FIELD("overwrite", overwrite)};
static const struct json_field copy_fields[] = {
	PLACE_FIELDS NAME_FIELDS("from", from) NAME_FIELDS("to", to) FLAG_FIELD("parents", parents)
		FLAG_FIELD("overwrite", overwrite) FLAG_FIELD("recursive", recursive)};
static const struct json_field remove_fields[] = {PLACE_FIELDS NAME_FIELDS("path", path)
		FLAG_FIELD("recursive", recursive) FLAG_FIELD("missingOk", exist_ok)};
static const struct json_field chmod_fields[] = {PLACE_FIELDS NAME_FIELDS("path", path) MODE_FIELD(
	FIELD_REQUIRED) FLAG_FIELD("recursive", recursive) FLAG_FIELD("follow", follow)};
static const struct json_field chown_fields[] = {PLACE_FIELDS NAME_FIELDS("path", path) OWNER_FIELD(
	FIELD_REQUIRED) FLAG_FIELD("recursive", recursive) FLAG_FIELD("follow", follow)};
static const struct json_field symlink_fields[] = {
	PLACE_FIELDS NAME_FIELDS("path", path) NAME_FIELDS("target", target)
		FLAG_FIELD("parents", parents) FLAG_FIELD("overwrite", overwrite)};
static const struct json_field find_fields[] = {
	PLACE_FIELDS NAME_FIELDS("path", path)
		PATTERN_FIELDS{"type", FIELD_TEXT, AT(type), 0, 0, 16},
	{"depth", FIELD_INTEGER, AT(depth), 0, 1, 10000},
	{"cursor", FIELD_TEXT, AT(cursor), 0, 0, 24 << 10}};
static const struct json_field grep_fields[] = {
	PLACE_FIELDS NAME_FIELDS("path", path) PATTERN_FIELDS FLAG_FIELD("regex", regex){
		"include", FIELD_TEXT, AT(include), FIELD_NOT_EMPTY, 0, PATH_MAX_TEXT}};
static const struct json_field replace_fields[] = {
	PLACE_FIELDS NAME_FIELDS("path", path) PATTERN_FIELDS FLAG_FIELD("regex", regex)
		FLAG_FIELD("dryRun", dry_run){
			"replacement", FIELD_TEXT, AT(replacement), FIELD_REQUIRED, 0, TEXT_MAX},
	{"include", FIELD_TEXT, AT(include), FIELD_NOT_EMPTY, 0, PATH_MAX_TEXT}};
static const struct json_field metadata_fields[] = {
	PLACE_FIELDS NAME_FIELDS("path", path){"set", FIELD_STRING_MAP, AT(set), 0, 0, 100},
	{"setBase64", FIELD_STRING_MAP, AT(set64), 0, 0, 100},
	{"unset", FIELD_ARRAY, AT(unset), 0, 0, 100}};

enum change_paths {
	PATH_REQUIRED,
	PATH_OPTIONAL, /* the working directory */
	PATH_FROM_TO,
	PATH_AND_TARGET
};

struct change {
	enum file_op op;
	const struct json_field *fields;
	size_t field_count;
	enum change_paths paths;
	struct change_body defaults;
	enum files_answer answer;
};

#define FIELDS(table) table, ARRAY_LEN(table)

/* ---- decoding ---- */

static int decode_paths(const struct change *change, const struct change_body *b,
	struct scratch *memory, struct file_request *r, struct error *e)
{
	const char **path = &r->text[FILE_PATH], **other = &r->text[FILE_OTHER];
	switch (change->paths) {
	case PATH_FROM_TO:
		if (files_body_path(b->from, b->from64, "from", NULL, memory, path, e) < 0)
			return -1;
		return files_body_path(b->to, b->to64, "to", NULL, memory, other, e);
	case PATH_AND_TARGET:
		if (files_body_path(b->path, b->path64, "path", NULL, memory, path, e) < 0)
			return -1;
		/* The target of a link may be anything, ".." too: it is not followed here. */
		return files_body_name(b->target, b->target64, "target", NULL, memory, other, e);
	default:
		return files_body_path(b->path, b->path64, "path",
			change->paths == PATH_OPTIONAL ? "." : NULL, memory, path, e);
	}
}

static unsigned files_change_flags_of(const struct change_body *b)
{
	return FILE_WITH_NAMES | (b->parents ? FILE_PARENTS : 0) |
	       (b->recursive ? FILE_RECURSIVE : 0) | (b->overwrite ? FILE_OVERWRITE : 0) |
	       (b->exist_ok ? FILE_EXIST_OK : 0) | (b->follow ? FILE_FOLLOW : 0) |
	       (b->regex ? FILE_REGEX : 0) | (b->ignore_case ? FILE_IGNORE_CASE : 0) |
	       (b->dry_run ? FILE_DRY_RUN : 0);
}

static int decode_change_body(const struct change *change, const struct change_body *b,
	struct scratch *memory, struct file_request *r, struct error *e)
{
	bool has_mode;
	unsigned mode = 0;
	if (decode_place(b->user, b->cwd, e) < 0 || decode_paths(change, b, memory, r, e) < 0 ||
		decode_mode(b->mode, "mode", &has_mode, &mode, e) < 0)
		return -1;
	if (b->type && files_parse_type(b->type, &mode, e) < 0)
		return -1;
	r->fixed = (struct record_request){
		.op = change->op,
		.flags = files_change_flags_of(b) | (has_mode ? FILE_HAS_MODE : 0),
		.mode = mode,
		.depth = (uint32_t)b->depth,
		.limit = (uint64_t)b->limit,
	};
	r->text[FILE_OWNER] = b->owner;
	r->text[FILE_PATTERN] = b->pattern;
	if (b->include)
		r->text[FILE_OTHER] = b->include;
	r->text[FILE_EXTRA] = b->replacement;
	return 0;
}

/* ---- metadata ---- */

static int check_names(const cJSON *map, const char *field, struct error *e)
{
	const cJSON *item;
	cJSON_ArrayForEach(item, map)
	{
		const char *name = item->string ? item->string : item->valuestring;
		if (!name || name[0] == '\0' || strlen(name) > 250)
			return error_set_field(e, ERROR_INVALID_FIELD, field,
				"names in \"%s\" must have 1 to 250 bytes", field);
		if (item->valuestring && strlen(item->valuestring) > (48 << 10))
			return error_set_field(e, ERROR_INVALID_FIELD, field,
				"values in \"%s\" must have at most %d bytes", field, 48 << 10);
	}
	return 0;
}

static int check_metadata(const struct change_body *b, struct scratch *memory, struct error *e)
{
	const cJSON *item;
	const char *bytes;
	size_t len;
	if (check_names(b->set, "set", e) < 0 || check_names(b->set64, "setBase64", e) < 0 ||
		check_names(b->unset, "unset", e) < 0)
		return -1;
	cJSON_ArrayForEach(item, b->set64) if (json_bytes(item->valuestring, "setBase64", memory,
						       &bytes, &len, e) < 0) return -1;
	return 0;
}

static void files_change_put_attribute(
	struct op *op, const char *name, const char *value, size_t len)
{
	op_put(op, &(struct op_item){OP_ITEM_ATTRIBUTE, .attribute = {name, value, len}});
}

static void files_change_put_metadata(
	struct op *op, const struct change_body *b, struct scratch *memory)
{
	const cJSON *item;
	const char *bytes;
	size_t len;
	struct error e;
	cJSON_ArrayForEach(item, b->set) files_change_put_attribute(
		op, item->string, item->valuestring, strlen(item->valuestring));
	cJSON_ArrayForEach(item, b->set64) if (json_bytes(item->valuestring, "setBase64", memory,
						       &bytes, &len, &e) == 0)
		files_change_put_attribute(op, item->string, bytes, len);
	cJSON_ArrayForEach(item, b->unset)
		files_change_put_attribute(op, item->valuestring, NULL, 0);
	op_put(op, &(struct op_item){OP_ITEM_END});
}

/* ---- handling ---- */

static void files_change_run(
	struct http_request *req, const cJSON *tree, const struct change *change)
{
	struct error e;
	autoscratch memory = {0};
	struct change_body b = change->defaults;
	struct file_request request = {0};
	if (json_decode(tree, change->fields, change->field_count, "", &b, &e) < 0 ||
		decode_change_body(change, &b, &memory, &request, &e) < 0 ||
		(change->op == FILE_ATTRIBUTES && check_metadata(&b, &memory, &e) < 0)) {
		api_refuse(req, &e);
		return;
	}
	if (files_parse_cursor(req, b.cursor, b.cursor ? &request.text[FILE_EXTRA] : NULL, &e) <
		0) {
		api_refuse(req, &e);
		return;
	}
	struct files_actor place = {b.user, b.cwd};
	struct answer *a = files_begin(req, &place, &request, change->answer);
	if (change->op == FILE_ATTRIBUTES)
		files_change_put_metadata(a->op, &b, &memory);
	answer_run(a);
}

static void files_change_handle(struct http_request *req, const struct change *change)
{
	cJSON *tree = api_body(req);
	if (!tree)
		return;
	files_change_run(req, tree, change);
	cJSON_Delete(tree);
}

#define HANDLER(name, ...)                                                                         \
	static void handle_##name(struct http_request *req)                                        \
	{                                                                                          \
		static const struct change change = {__VA_ARGS__};                                 \
		files_change_handle(req, &change);                                                 \
	}

HANDLER(mkdir, FILE_MKDIR, FIELDS(mkdir_fields), PATH_REQUIRED, {.parents = true, .exist_ok = true},
	FILES_ANSWER_ENTRY)
HANDLER(move, FILE_MOVE, FIELDS(move_fields), PATH_FROM_TO, {.parents = true}, FILES_ANSWER_ENTRY)
HANDLER(copy, FILE_COPY, FIELDS(copy_fields), PATH_FROM_TO, {.parents = true, .recursive = true},
	FILES_ANSWER_ENTRY)
HANDLER(remove, FILE_REMOVE, FIELDS(remove_fields), PATH_REQUIRED, {0}, FILES_ANSWER_NOTHING)
HANDLER(chmod, FILE_CHMOD, FIELDS(chmod_fields), PATH_REQUIRED, {.follow = true},
	FILES_ANSWER_ENTRY)
HANDLER(chown, FILE_CHOWN, FIELDS(chown_fields), PATH_REQUIRED, {.follow = true},
	FILES_ANSWER_ENTRY)
HANDLER(symlink, FILE_SYMLINK, FIELDS(symlink_fields), PATH_AND_TARGET, {.parents = true},
	FILES_ANSWER_ENTRY)
HANDLER(find, FILE_FIND, FIELDS(find_fields), PATH_OPTIONAL, {.limit = FILES_LIMIT_DEFAULT},
	FILES_ANSWER_ENTRIES)
HANDLER(grep, FILE_GREP, FIELDS(grep_fields), PATH_OPTIONAL, {.limit = FILES_LIMIT_DEFAULT},
	FILES_ANSWER_MATCHES)
HANDLER(replace, FILE_REPLACE, FIELDS(replace_fields), PATH_REQUIRED,
	{.limit = FILES_LIMIT_DEFAULT}, FILES_ANSWER_CHANGES)
HANDLER(set_metadata, FILE_ATTRIBUTES, FIELDS(metadata_fields), PATH_REQUIRED, {0},
	FILES_ANSWER_METADATA)

static const struct http_route change_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/fs/mkdir", handle_mkdir, SMALL_BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/fs/move", handle_move, SMALL_BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/fs/copy", handle_copy, SMALL_BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/fs/remove", handle_remove, SMALL_BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/fs/chmod", handle_chmod, SMALL_BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/fs/chown", handle_chown, SMALL_BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/fs/symlink", handle_symlink, SMALL_BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/fs/find", handle_find, SMALL_BODY_LIMIT,
		.scope = HTTP_SCOPE_READ},
	{HTTP_POST, "/v1/sandboxes/{id}/fs/grep", handle_grep, SMALL_BODY_LIMIT,
		.scope = HTTP_SCOPE_READ},
	{HTTP_POST, "/v1/sandboxes/{id}/fs/replace", handle_replace, SMALL_BODY_LIMIT},
	{HTTP_PATCH, "/v1/sandboxes/{id}/fs/metadata", handle_set_metadata, SMALL_BODY_LIMIT},
};

const struct route_table files_change_table = ROUTE_TABLE(change_routes);
