#include "wire/frame.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(struct frame_header) == FRAME_HEADER_SIZE, "the header has no padding");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are little-endian");

void frame_append(struct buf *out, enum frame_type type, unsigned stream, uint64_t tag,
	uint64_t offset, const void *payload, size_t size)
{
	struct frame_header h = {
		.size = (uint32_t)size,
		.type = (uint16_t)type,
		.stream = (uint16_t)stream,
		.tag = tag,
		.offset = offset,
	};
	buf_append(out, &h, sizeof h);
	buf_append(out, payload, size);
}

static bool frame_type_is_known(unsigned type)
{
	return (type >= FRAME_START && type <= FRAME_LAST_OF_FRONT) ||
	       (type >= FRAME_HELLO && type <= FRAME_LAST_OF_INIT);
}

int64_t frame_decode(const char *data, size_t len, struct frame_header *header)
{
	if (len < FRAME_HEADER_SIZE)
		return 0;
	memcpy(header, data, sizeof *header);
	if (!frame_type_is_known(header->type) || header->stream >= FRAME_STREAMS)
		return -EPROTO;
	bool is_data = header->type == FRAME_OUTPUT || header->type == FRAME_STDIN;
	if (header->size > (is_data ? FRAME_MAX_DATA : FRAME_MAX_PAYLOAD))
		return -EPROTO;
	size_t total = FRAME_HEADER_SIZE + header->size;
	return len < total ? 0 : (int64_t)total;
}

int frame_payload(const struct frame_header *h, const char *payload, void *out, size_t size)
{
	if (h->size != size)
		return -EPROTO;
	memcpy(out, payload, size);
	return 0;
}

void frame_append_worker(struct buf *out, const struct frame_worker *worker, const char *user)
{
	struct frame_header h = {
		.size = (uint32_t)(sizeof *worker + strlen(user) + 1), .type = FRAME_WORKER};
	buf_append(out, &h, sizeof h);
	buf_append(out, worker, sizeof *worker);
	buf_append(out, user, strlen(user) + 1);
}

int frame_decode_worker(
	const char *payload, size_t size, struct frame_worker *ret, const char **user)
{
	if (size <= sizeof *ret || size > sizeof *ret + FRAME_MAX_USER)
		return -EPROTO;
	memcpy(ret, payload, sizeof *ret);
	*user = payload + sizeof *ret;
	return memchr(*user, '\0', size - sizeof *ret) == payload + size - 1 ? 0 : -EPROTO;
}

static void append_strings(struct buf *out, const char *const *strings, uint32_t *count)
{
	for (*count = 0; strings[*count]; (*count)++)
		buf_append(out, strings[*count], strlen(strings[*count]) + 1);
}

int frame_encode_start(struct buf *out, uint64_t tag, const struct start_request *request)
{
	struct frame_start fixed = request->fixed;
	autobuf strings = {0};
	buf_append(&strings, request->user, strlen(request->user) + 1);
	buf_append(&strings, request->cwd, strlen(request->cwd) + 1);
	buf_append(&strings, request->name, strlen(request->name) + 1);
	append_strings(&strings, request->argv, &fixed.argc);
	append_strings(&strings, request->envp, &fixed.envc);
	size_t size = sizeof fixed + strings.len;
	if (strings.failed)
		return -ENOMEM;
	if (size > FRAME_MAX_PAYLOAD || fixed.argc + fixed.envc > FRAME_MAX_STRINGS ||
		strlen(request->user) >= FRAME_MAX_TEXT || strlen(request->cwd) >= FRAME_MAX_TEXT ||
		strlen(request->name) >= FRAME_MAX_TEXT)
		return -E2BIG;
	struct frame_header h = {.size = (uint32_t)size, .type = FRAME_START, .tag = tag};
	buf_append(out, &h, sizeof h);
	buf_append(out, &fixed, sizeof fixed);
	buf_append(out, strings.data, strings.len);
	return out->failed ? -ENOMEM : 0;
}

/* The string at *p, which must end before end; advances *p behind its NUL. */
static const char *next_string(const char **p, const char *end)
{
	const char *s = *p;
	const char *nul = s < end ? memchr(s, '\0', (size_t)(end - s)) : NULL;
	if (!nul)
		return NULL;
	*p = nul + 1;
	return s;
}

/* Returns the next string if it is short enough for init to remember, else NULL. */
static const char *next_text(const char **p, const char *end)
{
	const char *s = next_string(p, end);
	return s && *p - s <= (ptrdiff_t)FRAME_MAX_TEXT ? s : NULL;
}

static const char **frame_decode_strings(const char **p, const char *end, uint32_t count)
{
	const char **strings = calloc((size_t)count + 1, sizeof *strings);
	if (!strings)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		strings[i] = next_string(p, end);
		if (!strings[i]) {
			free(strings);
			return NULL;
		}
	}
	return strings;
}

int frame_decode_start(const char *payload, size_t size, struct start_request *ret)
{
	struct start_request r = {0};
	if (size < sizeof r.fixed)
		return -EPROTO;
	memcpy(&r.fixed, payload, sizeof r.fixed);
	const struct frame_start *f = &r.fixed;
	if (f->argc == 0 || f->argc > FRAME_MAX_STRINGS || f->envc > FRAME_MAX_STRINGS ||
		(f->flags & ~(uint32_t)FRAME_START_FLAGS) || f->rows > FRAME_MAX_SIDE ||
		f->columns > FRAME_MAX_SIDE ||
		memchr(f->execution, '\0', sizeof f->execution) == NULL)
		return -EPROTO;
	const char *p = payload + sizeof r.fixed, *end = payload + size;
	r.user = next_text(&p, end);
	r.cwd = r.user ? next_text(&p, end) : NULL;
	r.name = r.cwd ? next_text(&p, end) : NULL;
	if (!r.name)
		return -EPROTO;
	r.argv = frame_decode_strings(&p, end, f->argc);
	r.envp = r.argv ? frame_decode_strings(&p, end, f->envc) : NULL;
	if (!r.envp || p != end) {
		start_request_finish(&r);
		return -EPROTO;
	}
	*ret = r;
	return 0;
}

void start_request_finish(struct start_request *request)
{
	free(request->argv);
	free(request->envp);
	*request = (struct start_request){0};
}

int frame_decode_process(const char *payload, size_t size, struct process_frame *ret)
{
	struct process_frame r = {0};
	if (size < sizeof r.fixed)
		return -EPROTO;
	memcpy(&r.fixed, payload, sizeof r.fixed);
	const char *p = payload + sizeof r.fixed, *end = payload + size;
	r.user = next_text(&p, end);
	r.cwd = r.user ? next_text(&p, end) : NULL;
	r.name = r.cwd ? next_text(&p, end) : NULL;
	if (!r.name || end - p > (ptrdiff_t)FRAME_MAX_COMMAND || (p < end && end[-1] != '\0') ||
		memchr(r.fixed.execution, '\0', sizeof r.fixed.execution) == NULL)
		return -EPROTO;
	r.command = p;
	r.command_len = (size_t)(end - p);
	*ret = r;
	return 0;
}

int frame_decode_status(
	const char *payload, size_t size, struct frame_status *ret, const char **cwd)
{
	if (size < sizeof *ret)
		return -EPROTO;
	const char *p = payload + sizeof *ret, *end = payload + size;
	const char *text = next_text(&p, end);
	if (!text || p != end)
		return -EPROTO;
	memcpy(ret, payload, sizeof *ret);
	*cwd = text;
	return 0;
}
