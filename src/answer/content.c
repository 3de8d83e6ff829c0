#include "answer/content.h"
#include "op/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>

/* "bytes=5-9", "bytes=5-", "bytes=-5" */
struct byte_range content_range(const char *header)
{
	const struct byte_range none = {.length = RECORD_UNKNOWN};
	char *end;
	if (!header || strncasecmp(header, "bytes=", 6) != 0)
		return none;
	const char *text = header + 6;
	bool from_end = text[0] == '-';
	const char *first = text + from_end;
	if (*first < '0' || *first > '9')
		return none;
	unsigned long long a = strtoull(first, &end, 10), b = UINT64_MAX;
	if (!from_end && *end != '-')
		return none;
	if (!from_end && *++end) {
		const char *second = end;
		b = strtoull(second, &end, 10);
		if (*second < '0' || *second > '9' || b < a)
			return none;
	}
	if (*end || a > INT64_MAX)
		return none;
	return (struct byte_range){true, from_end, a, b == UINT64_MAX ? RECORD_UNKNOWN : b - a + 1};
}

static int refuse_range(struct answer *a, uint64_t size, struct error *e)
{
	char text[48];
	snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)size);
	http_add_header(a->req, "Content-Range", text);
	return error_set(e, ERROR_RANGE_NOT_SATISFIABLE, "the file has %llu bytes",
		(unsigned long long)size);
}

static int begin_content(struct answer *a, uint64_t length, uint64_t offset, struct error *e)
{
	const struct content *c = a->own;
	char text[96];
	a->length = length;
	/* A file of size 0 may have content of unknown length (/proc). */
	if (!c->range.given || length == RECORD_UNKNOWN || c->size == 0)
		return 0;
	if (length == 0 && c->range.length > 0)
		return refuse_range(a, c->size, e);
	a->status = 206;
	if (length == 0)
		snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)c->size);
	else
		snprintf(text, sizeof text, "bytes %llu-%llu/%llu", (unsigned long long)offset,
			(unsigned long long)(offset + length - 1), (unsigned long long)c->size);
	http_add_header(a->req, "Content-Range", text);
	return 0;
}

static int look_at(struct answer *a, const struct file_entry *entry, struct error *e)
{
	struct content *c = a->own;
	c->size = entry->size;
	if (http_method(a->req) != HTTP_HEAD)
		return 0;
	if (!S_ISREG(entry->mode))
		return error_set(e,
			S_ISDIR(entry->mode) ? ERROR_IS_A_DIRECTORY : ERROR_NOT_A_REGULAR_FILE,
			"it is not a regular file");
	a->length = entry->size ? entry->size : ANSWER_UNKNOWN;
	return 0;
}

int content_put(struct answer *a, const struct op_event *event, struct error *e)
{
	if (event->kind == OP_ENTRY)
		return look_at(a, event->entry, e);
	if (event->kind == OP_CONTENT)
		return begin_content(a, event->content.length, event->content.offset, e);
	if (event->kind == OP_DATA)
		answer_put_bytes(a, event->data);
	return 0;
}

int content_put_bytes(struct answer *a, const struct op_event *event, struct error *e)
{
	(void)e;
	if (event->kind == OP_DATA)
		answer_put_bytes(a, event->data);
	return 0;
}

void content_run(struct answer *a, const char *user, const char *path, const char *cwd)
{
	const struct byte_range *range = &((struct content *)a->own)->range;
	bool head = http_method(a->req) == HTTP_HEAD;
	const struct op_files read = {.user = user,
		.as_root = ((struct content *)a->own)->as_root,
		.request = {.fixed = {.op = head ? FILE_STAT : FILE_READ,
				    .flags = head              ? FILE_FOLLOW
					     : range->from_end ? FILE_FROM_END
							       : 0,
				    .offset = range->offset,
				    .length = range->length},
			.text = {[FILE_PATH] = path, [FILE_CWD] = cwd}}};
	a->op = op_files(&a->call, &read);
	answer_run(a);
}
