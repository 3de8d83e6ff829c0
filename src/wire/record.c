#include "wire/record.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/processor.h"

static_assert(sizeof(struct record_header) == RECORD_HEADER_SIZE, "the header has no padding");
static_assert(sizeof(struct record_request) == 48, "no padding");
static_assert(sizeof(struct record_file) == 24, "no padding");
static_assert(sizeof(struct record_entry) == 72, "no padding");
static_assert(sizeof(struct record_match) == 24, "no padding");
static_assert(sizeof(struct record_change) == 16, "no padding");
static_assert(sizeof(struct record_event) == 16, "no padding");
static_assert(sizeof(struct record_end) == 24, "no padding");

void record_append_header(struct buf *out, enum record_type type, uint64_t size)
{
	struct record_header h = {.type = type, .size = size};
	buf_append(out, &h, sizeof h);
}

void record_append(struct buf *out, enum record_type type, const void *fixed, size_t size,
	const struct record_text *texts, size_t count)
{
	uint64_t total = size;
	for (size_t i = 0; i < count; i++)
		total += texts[i].len;
	record_append_header(out, type, total);
	buf_append(out, fixed, size);
	for (size_t i = 0; i < count; i++)
		buf_append(out, texts[i].data, texts[i].len);
}

int record_append_request(struct buf *out, const struct file_request *request)
{
	struct record_text texts[FILE_TEXTS];
	size_t total = sizeof request->fixed;
	for (int i = 0; i < FILE_TEXTS; i++) {
		const char *text = request->text[i] ? request->text[i] : "";
		texts[i] = (struct record_text){text, strlen(text) + 1};
		total += texts[i].len;
	}
	if (total > RECORD_MAX)
		return -E2BIG;
	record_append(
		out, RECORD_REQUEST, &request->fixed, sizeof request->fixed, texts, FILE_TEXTS);
	return out->failed ? -ENOMEM : 0;
}

static bool record_is_known(uint32_t type)
{
	return (type >= RECORD_DATA && type <= RECORD_SYNC) ||
	       (type >= RECORD_ENTRY && type <= RECORD_SYNCED);
}

int record_decode_header(const char *data, struct record_header *ret)
{
	memcpy(ret, data, sizeof *ret);
	if (!record_is_known(ret->type) || ret->zero != 0)
		return -EPROTO;
	if (ret->type == RECORD_DATA)
		return ret->size > INT64_MAX ? -EPROTO : 0;
	return ret->size > RECORD_MAX ? -EPROTO : 0;
}

/* Splits the bytes behind the fixed part into texts of the lengths in `lens`. */
static int record_split(const char *payload, size_t size, size_t fixed_size, const uint32_t *lens,
	struct record_text *texts, size_t count)
{
	const char *at = payload + fixed_size;
	size_t left = size - fixed_size;
	for (size_t i = 0; i < count; i++) {
		if (lens[i] > left)
			return -EPROTO;
		texts[i] = (struct record_text){at, lens[i]};
		at += lens[i];
		left -= lens[i];
	}
	return left == 0 ? 0 : -EPROTO;
}

static bool record_is_name(const struct record_text *text)
{
	return text->len == 0 || !memchr(text->data, '\0', text->len);
}

#define TAKE_FIXED(ret)                                                                            \
	do {                                                                                       \
		if (size < sizeof *(ret))                                                          \
			return -EPROTO;                                                            \
		memcpy(ret, payload, sizeof *(ret));                                               \
	} while (0)

int record_decode_request(const char *payload, size_t size, struct file_request *ret)
{
	TAKE_FIXED(&ret->fixed);
	const char *at = payload + sizeof ret->fixed, *end = payload + size;
	for (int i = 0; i < FILE_TEXTS; i++) {
		const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
		if (!nul)
			return -EPROTO;
		ret->text[i] = at;
		at = nul + 1;
	}
	const struct record_request *f = &ret->fixed;
	if (at != end || f->op == 0 || f->op >= FILE_OP_END || (f->flags & ~(uint32_t)FILE_FLAGS) ||
		f->near > PROCESSOR_MAX)
		return -EPROTO;
	return 0;
}

int record_decode_file(
	const char *payload, size_t size, struct record_file *ret, struct record_text texts[2])
{
	TAKE_FIXED(ret);
	const uint32_t lens[] = {ret->path_len, ret->owner_len};
	if ((ret->flags & ~(uint32_t)FILE_FLAGS) ||
		record_split(payload, size, sizeof *ret, lens, texts, 2) < 0)
		return -EPROTO;
	return record_is_name(&texts[0]) && record_is_name(&texts[1]) ? 0 : -EPROTO;
}

int record_decode_attribute(
	const char *payload, size_t size, struct record_attribute *ret, struct record_text texts[2])
{
	TAKE_FIXED(ret);
	const uint32_t lens[] = {
		ret->name_len, ret->value_len == RECORD_REMOVED ? 0 : ret->value_len};
	if (record_split(payload, size, sizeof *ret, lens, texts, 2) < 0 || texts[0].len == 0)
		return -EPROTO;
	return record_is_name(&texts[0]) ? 0 : -EPROTO;
}

int record_decode_entry(
	const char *payload, size_t size, struct record_entry *ret, struct record_text texts[4])
{
	TAKE_FIXED(ret);
	const uint32_t lens[] = {ret->path_len, ret->target_len, ret->owner_len, ret->group_len};
	if (ret->size > INT64_MAX || record_split(payload, size, sizeof *ret, lens, texts, 4) < 0)
		return -EPROTO;
	for (int i = 0; i < 4; i++)
		if (!record_is_name(&texts[i]))
			return -EPROTO;
	return texts[0].len > 0 ? 0 : -EPROTO;
}

int record_decode_content(const char *payload, size_t size, struct record_content *ret)
{
	if (size != sizeof *ret)
		return -EPROTO;
	memcpy(ret, payload, sizeof *ret);
	bool is_number = ret->length <= INT64_MAX || ret->length == RECORD_UNKNOWN;
	return is_number && ret->offset <= INT64_MAX ? 0 : -EPROTO;
}

int record_decode_match(
	const char *payload, size_t size, struct record_match *ret, struct record_text texts[2])
{
	TAKE_FIXED(ret);
	const uint32_t lens[] = {ret->path_len, ret->text_len};
	if (ret->line > INT64_MAX || record_split(payload, size, sizeof *ret, lens, texts, 2) < 0)
		return -EPROTO;
	return record_is_name(&texts[0]) ? 0 : -EPROTO;
}

int record_decode_change(
	const char *payload, size_t size, struct record_change *ret, struct record_text texts[1])
{
	TAKE_FIXED(ret);
	if (ret->count > INT64_MAX ||
		record_split(payload, size, sizeof *ret, &ret->path_len, texts, 1) < 0)
		return -EPROTO;
	return record_is_name(&texts[0]) ? 0 : -EPROTO;
}

int record_decode_event(
	const char *payload, size_t size, struct record_event *ret, struct record_text texts[2])
{
	TAKE_FIXED(ret);
	const uint32_t lens[] = {ret->path_len, ret->destination_len};
	if (ret->kind >= FILE_EVENT_KINDS || ret->directory > 1 ||
		record_split(payload, size, sizeof *ret, lens, texts, 2) < 0)
		return -EPROTO;
	return record_is_name(&texts[0]) && record_is_name(&texts[1]) ? 0 : -EPROTO;
}

int record_decode_end(
	const char *payload, size_t size, struct record_end *ret, struct record_text texts[1])
{
	TAKE_FIXED(ret);
	if (ret->error < 0 || ret->error > 4095 || ret->truncated > 1 || ret->count > INT64_MAX ||
		record_split(payload, size, sizeof *ret, &ret->path_len, texts, 1) < 0)
		return -EPROTO;
	return record_is_name(&texts[0]) ? 0 : -EPROTO;
}
