/* A file's bytes as the answer to a request, as the client takes them. */
#include <stdio.h>
#include <string.h>

#include "dialect/e2b/files.h"

struct download {
	struct content content;
	struct download_target target;
};

/* The name behind filename=, where it needs no quoting that clients disagree about. */
static void download_add_headers(struct answer *a)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	const char *name = entry_name(((struct download *)a->own)->target.given);
	char text[300];
	bool is_plain = strspn(name, plain) == strlen(name) && strlen(name) <= 255 && name[0];
	snprintf(text, sizeof text, "inline%s%s", is_plain ? "; filename=" : "",
		is_plain ? name : "");
	http_add_header(a->req, "Content-Disposition", text);
	http_add_header(a->req, "Vary", "Accept-Encoding");
	http_add_header(a->req, "Accept-Ranges", "bytes");
}

static enum answer_failure download_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	const struct download_target *target = &((struct download *)a->own)->target;
	const struct error why = *e;
	if (!event || event->reason != OP_NO_VOLUME)
		files_explain(target->given, target->user, &why, e);
	return ANSWER_ERROR;
}

const struct answer_form download_form = {.type = "application/octet-stream",
	.own_size = sizeof(struct download),
	.put = content_put,
	.fail = download_fail,
	.head = download_add_headers};

void download_refuse(struct answer *a, const struct download_target *target, const struct error *e)
{
	((struct download *)a->own)->target = *target;
	answer_refuse(a, e);
}

void download_run(struct answer *a, const struct download_target *target)
{
	struct download *d = a->own;
	d->target = *target;
	d->content.range = content_range(http_header(a->req, "range"));
	d->content.as_root = true;
	content_run(a, target->user, target->path, target->cwd);
}
