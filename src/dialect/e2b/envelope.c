#include "dialect/e2b/envelope.h"

#include "base/cleanup.h"

#define ENVELOPE_SIZE   5
#define FLAG_COMPRESSED 0x01
#define FLAG_END        0x02

static const struct {
	const char *name;
	int http;
} codes[] = {
	[RPC_INVALID_ARGUMENT] = {"invalid_argument", 400},
	[RPC_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504},
	[RPC_NOT_FOUND] = {"not_found", 404},
	[RPC_ALREADY_EXISTS] = {"already_exists", 409},
	[RPC_PERMISSION_DENIED] = {"permission_denied", 403},
	[RPC_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429},
	[RPC_UNIMPLEMENTED] = {"unimplemented", 501},
	[RPC_INTERNAL] = {"internal", 500},
	[RPC_UNAVAILABLE] = {"unavailable", 503},
	[RPC_UNAUTHENTICATED] = {"unauthenticated", 401},
};

const char *rpc_code_name(enum rpc_code code)
{
	return codes[code].name;
}

int rpc_http_status(enum rpc_code code)
{
	return codes[code].http;
}

enum rpc_code rpc_code_of(enum error_code code)
{
	switch (code) {
	case ERROR_NOT_FOUND:
		return RPC_NOT_FOUND;
	case ERROR_UNAUTHORIZED:
		return RPC_UNAUTHENTICATED;
	case ERROR_NAME_TAKEN:
	case ERROR_ALREADY_EXISTS:
		return RPC_ALREADY_EXISTS;
	case ERROR_SCOPE_MISSING:
	case ERROR_PERMISSION_DENIED:
	case ERROR_READ_ONLY:
		return RPC_PERMISSION_DENIED;
	case ERROR_QUOTA_EXCEEDED:
	case ERROR_RESOURCE_EXHAUSTED:
	case ERROR_NO_SPACE:
		return RPC_RESOURCE_EXHAUSTED;
	case ERROR_NOT_RUNNING:
	case ERROR_PAUSED:
	case ERROR_UNAVAILABLE:
		return RPC_UNAVAILABLE;
	case ERROR_NOT_IMPLEMENTED:
	case ERROR_NOT_SUPPORTED:
		return RPC_UNIMPLEMENTED;
	case ERROR_REQUEST_TIMEOUT:
		return RPC_DEADLINE_EXCEEDED;
	case ERROR_INTERNAL:
	case ERROR_BOOT_FAILED:
		return RPC_INTERNAL;
	default:
		return RPC_INVALID_ARGUMENT;
	}
}

void envelope_put_error(struct json_writer *w, const struct error *e)
{
	json_begin_object(w);
	json_put_string(w, "code", rpc_code_name(rpc_code_of(e->code)));
	json_put_string(w, "message", e->message);
	json_end_object(w);
}

int envelope_parse(const char *text, size_t len, cJSON **ret, struct error *e)
{
	/* A message without fields may be sent as nothing at all. */
	int r = len ? json_parse(text, len, ret, e) : json_parse("{}", 2, ret, e);
	if (r < 0 || cJSON_IsObject(*ret))
		return r;
	cJSON_Delete(take_ptr(*ret));
	return error_set(e, ERROR_INVALID_JSON, "the message must be a JSON object");
}

static void put_length(char *at, size_t len)
{
	for (int i = 0; i < 4; i++)
		at[i] = (char)(len >> (24 - 8 * i) & 0xff);
}

size_t envelope_begin(struct buf *out)
{
	static const char envelope[ENVELOPE_SIZE];
	size_t begin = out->len;
	buf_append(out, envelope, sizeof envelope);
	return begin;
}

void envelope_end(struct buf *out, size_t begin)
{
	if (!out->failed)
		put_length(out->data + begin + 1, out->len - begin - ENVELOPE_SIZE);
}

void envelope_put_end(struct buf *out, const struct error *e)
{
	size_t begin = envelope_begin(out);
	struct json_writer w = {.out = out};
	json_begin_object(&w);
	if (e) {
		json_key(&w, "error");
		envelope_put_error(&w, e);
	}
	json_end_object(&w);
	envelope_end(out, begin);
	if (!out->failed)
		out->data[begin] = FLAG_END;
}

int envelope_take(struct buf *in, cJSON **ret, struct error *e)
{
	const unsigned char *bytes = (const unsigned char *)in->data;
	if (in->failed)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
	if (in->len < ENVELOPE_SIZE)
		return 0;
	size_t size =
		(size_t)bytes[1] << 24 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 8 | bytes[4];
	if (bytes[0] & FLAG_COMPRESSED)
		return error_set(e, ERROR_INVALID_REQUEST, "compressed messages are not supported");
	if (bytes[0] != 0)
		return error_set(e, ERROR_INVALID_REQUEST, "the envelope has unknown flags");
	if (size > ENVELOPE_MAX)
		return error_set(
			e, ERROR_BODY_TOO_LARGE, "a message is larger than %u bytes", ENVELOPE_MAX);
	if (in->len - ENVELOPE_SIZE < size)
		return 0;
	int r = envelope_parse(in->data + ENVELOPE_SIZE, size, ret, e);
	buf_consume(in, ENVELOPE_SIZE + size);
	return r < 0 ? r : 1;
}
