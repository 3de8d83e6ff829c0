#include "image/bundle.h"

#include <string.h>

#include "base/cleanup.h"
#include "json/json.h"

#define MANIFEST_MAGIC 0x184D2A5Bu
#define END_MAGIC      0x184D2A5Eu
#define FORMAT         "bunker-snapshot"
#define VERSION        1

static const char end_mark[8] = "BNKEND1";

static void bundle_append_number(struct buf *out, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		buf_append_char(out, (char)(value >> (8 * i)));
}

static uint32_t read_number(const char *at)
{
	uint32_t value = 0;
	for (unsigned i = 0; i < 4; i++)
		value |= (uint32_t)(unsigned char)at[i] << (8 * i);
	return value;
}

/* ---- the manifest ---- */

void bundle_append_manifest(struct buf *out, const struct bundle_manifest *m)
{
	autobuf text = {0};
	struct json_writer w = {.out = &text};
	json_begin_object(&w);
	json_put_string(&w, "format", FORMAT);
	json_put_int(&w, "version", VERSION);
	json_put_string(&w, "id", m->id);
	json_put_string(&w, "name", m->name);
	json_put_string(&w, "tag", m->tag);
	json_put_string(&w, "description", m->description);
	json_put_string(&w, "template", m->template_name);
	json_put_time(&w, "createdAt", m->created_ms);
	if (m->files >= 0) {
		json_put_int(&w, "sizeBytes", m->bytes);
		json_put_int(&w, "fileCount", m->files);
	}
	if (m->env_len)
		json_put_env(&w, "env", m->env, m->env_len);
	if (m->metadata && m->metadata[0]) {
		json_key(&w, "metadata");
		json_raw(&w, m->metadata);
	}
	json_end_object(&w);
	bundle_append_number(out, MANIFEST_MAGIC, 4);
	bundle_append_number(out, text.len, 4);
	buf_append(out, text.data, text.len);
}

static int bundle_refuse(struct error *e, const char *why)
{
	return error_set(e, ERROR_INVALID_ARCHIVE, "this is no exported snapshot: %s", why);
}

int bundle_manifest_size(const char *head, size_t *ret, struct error *e)
{
	if (read_number(head) != MANIFEST_MAGIC)
		return bundle_refuse(e, "it does not begin like one");
	*ret = read_number(head + 4);
	return *ret > BUNDLE_MANIFEST_MAX ? bundle_refuse(e, "its manifest is too long") : 0;
}

struct fields {
	const char *format, *id, *name, *tag, *description, *template_name, *created;
	int64_t version;
	const cJSON *env, *metadata;
};

#define AT(member) offsetof(struct fields, member)

static const struct json_field manifest_fields[] = {
	{"format", FIELD_TEXT, AT(format), FIELD_REQUIRED, 0, 64},
	{"version", FIELD_INTEGER, AT(version), FIELD_REQUIRED, 1, 1 << 30},
	{"id", FIELD_TEXT, AT(id), 0, 0, 64},
	{"name", FIELD_TEXT, AT(name), 0, 0, 128},
	{"tag", FIELD_TEXT, AT(tag), 0, 0, 128},
	{"description", FIELD_TEXT, AT(description), 0, 0, 1024},
	{"template", FIELD_TEXT, AT(template_name), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, 257},
	{"env", FIELD_STRING_MAP, AT(env), 0, 0, 1000},
	{"metadata", FIELD_OBJECT, AT(metadata), 0, 0, 0},
};

static const char *bundle_keep(struct scratch *memory, const char *text)
{
	size_t len = strlen(text ? text : "");
	char *copy = scratch_alloc(memory, len + 1);
	memcpy(copy, text ? text : "", len);
	return copy;
}

int bundle_parse_manifest(const char *text, size_t len, struct scratch *memory,
	struct bundle_manifest *ret, struct error *e)
{
	struct fields f = {0};
	cJSON *tree = NULL;
	if (json_parse(text, len, &tree, e) < 0 || !cJSON_IsObject(tree) ||
		json_decode_known(tree, manifest_fields, ARRAY_LEN(manifest_fields), "", &f, e) <
			0 ||
		strcmp(f.format, FORMAT) != 0) {
		cJSON_Delete(tree);
		return bundle_refuse(e, "its manifest makes no sense");
	}
	if (f.version > VERSION) {
		cJSON_Delete(tree);
		return bundle_refuse(e, "it was made by a newer bunker");
	}
	*ret = (struct bundle_manifest){
		.id = bundle_keep(memory, f.id),
		.name = bundle_keep(memory, f.name),
		.tag = bundle_keep(memory, f.tag),
		.description = bundle_keep(memory, f.description),
		.template_name = bundle_keep(memory, f.template_name),
		.bytes = -1,
		.files = -1,
	};
	int r = json_environment(f.env, "env", memory, &ret->env_list, e);
	if (r == 0)
		r = json_text(
			f.metadata, "metadata", BUNDLE_MANIFEST_MAX, memory, &ret->metadata, e);
	cJSON_Delete(tree);
	return r;
}

/* ---- the end ---- */

void bundle_sum_begin(struct bundle_sum *s)
{
	crypto_hash_sha256_init(&s->state);
	s->bytes = 0;
}

void bundle_sum_add(struct bundle_sum *s, const void *data, size_t len)
{
	crypto_hash_sha256_update(&s->state, data, len);
	s->bytes += len;
}

void bundle_append_end(struct buf *out, struct bundle_sum *s)
{
	unsigned char digest[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_final(&s->state, digest);
	bundle_append_number(out, END_MAGIC, 4);
	bundle_append_number(out, BUNDLE_END_SIZE - BUNDLE_HEAD_SIZE, 4);
	buf_append(out, end_mark, sizeof end_mark);
	buf_append(out, digest, sizeof digest);
	bundle_append_number(out, s->bytes, 8);
}

int bundle_check_end(const char end[BUNDLE_END_SIZE], struct bundle_sum *s, struct error *e)
{
	autobuf wanted = {0};
	bundle_append_end(&wanted, s);
	if (wanted.failed || memcmp(end, wanted.data, BUNDLE_END_SIZE) != 0)
		return error_set(e, ERROR_INVALID_ARCHIVE,
			"the file is not complete, or was changed: its end does not fit");
	return 0;
}
