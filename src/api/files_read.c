/* The content of a file as an answer: whole, or the range that the query or the header wants. */
#include "api/files_read.h"

int files_parse_range(struct http_request *req, struct byte_range *ret, struct error *e)
{
	int64_t offset = -1, length = -1;
	if (query_number(req, "offset", 0, INT64_MAX, &offset, e) < 0 ||
		query_number(req, "length", 0, INT64_MAX, &length, e) < 0)
		return -1;
	if (offset < 0 && length < 0)
		*ret = content_range(
			http_header(req, "if-range") ? NULL : http_header(req, "range"));
	else
		*ret = (struct byte_range){true, false, offset > 0 ? (uint64_t)offset : 0,
			length >= 0 ? (uint64_t)length : RECORD_UNKNOWN};
	return 0;
}

static void files_read_add_headers(struct answer *a)
{
	http_add_header(a->req, "Accept-Ranges", "bytes");
	/* Keeps browsers from guessing the type. */
	http_add_header(a->req, "X-Content-Type-Options", "nosniff");
}

void files_read(struct http_request *req, const struct files_actor *place, const char *path,
	const struct byte_range *range)
{
	static const struct answer_form form = {.type = "application/octet-stream",
		.own_size = sizeof(struct content),
		.put = content_put,
		.head = files_read_add_headers};
	struct answer *a = api_answer(req, &form);
	((struct content *)a->own)->range = *range;
	content_run(a, place->user, path, place->cwd);
}
