/*
 * Forms from arbitrary bytes. The first byte says how long the pieces are in which the rest is
 * pushed, the second where callbacks pause; the outcome must be the same as in one piece without
 * pauses.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "http/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

struct outcome {
	enum error_code code;
	unsigned pauses; /* as bits, one for each event in turn */
	unsigned events;
	bool inside;
	struct buf log;
};

static int next(struct outcome *o)
{
	return o->pauses >> o->events++ % 8 & 1 ? MULTIPART_PAUSE : MULTIPART_GO_ON;
}

static int log_begin(void *arg, const struct multipart_part *part, struct error *e)
{
	struct outcome *o = arg;
	(void)e;
	if (o->inside)
		abort();
	o->inside = true;
	buf_append_str(&o->log, part->name);
	buf_append_char(&o->log, '|');
	buf_append_str(&o->log, part->filename ? part->filename : "");
	buf_append_char(&o->log, '|');
	buf_append_str(&o->log, part->type ? part->type : "");
	return next(o);
}

static int log_data(void *arg, const char *data, size_t len, struct error *e)
{
	struct outcome *o = arg;
	(void)e;
	if (!o->inside || len == 0)
		abort();
	buf_append(&o->log, data, len);
	return next(o);
}

static int log_end(void *arg, struct error *e)
{
	struct outcome *o = arg;
	(void)e;
	if (!o->inside)
		abort();
	o->inside = false;
	buf_append_char(&o->log, '.');
	return next(o);
}

static void run(struct outcome *o, const char *data, size_t len, size_t piece)
{
	static const struct multipart_events events = {log_begin, log_data, log_end};
	struct multipart *m;
	struct error e = {0};
	if (multipart_create(&m, "multipart/form-data; boundary=XX", 8, &events, o, &e) < 0)
		abort();
	int r = 0;
	for (size_t used = 0, idle = 0; used < len && r == 0;) {
		size_t n = len - used < piece ? len - used : piece;
		ptrdiff_t taken = multipart_push(m, data + used, n, &e);
		if (taken > (ptrdiff_t)n)
			abort();
		r = taken < 0 ? -1 : 0;
		used += taken > 0 ? (size_t)taken : 0;
		idle = taken == 0 ? idle + 1 : 0;
		if (idle > 8)
			abort();
	}
	if (r == 0)
		r = multipart_end(m, &e);
	if (r == 0 && o->inside)
		abort();
	o->code = r < 0 ? e.code : ERROR_NONE;
	multipart_destroy(m);
}

/* The first line is a Content-Type. */
static void try_type(const char *data, size_t len)
{
	static const struct multipart_events events = {log_begin, log_data, log_end};
	struct multipart *m;
	struct error e;
	char *type = strndup(data, len);
	if (multipart_create(&m, type, 8, &events, NULL, &e) == 0)
		multipart_destroy(m);
	free(type);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	if (size < 3)
		return 0;
	const char *data = (const char *)input + 2;
	size_t len = size - 2;
	struct outcome whole = {0}, split = {.pauses = input[1]};
	run(&whole, data, len, len);
	run(&split, data, len, 1 + input[0] % 64);
	if (whole.code != split.code || whole.log.len != split.log.len ||
		(whole.log.len > 0 && memcmp(whole.log.data, split.log.data, whole.log.len) != 0))
		abort();
	buf_finish(&whole.log);
	buf_finish(&split.log);
	try_type(data, len < 200 ? len : 200);
	return 0;
}
