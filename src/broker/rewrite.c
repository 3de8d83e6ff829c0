#include "broker/rewrite.h"

#include <errno.h>
#include <string.h>

#include "stream/request.h"

static bool pair_counts(const struct entries_pair *p, bool is_tls)
{
	return is_tls || !p->tls_only;
}

static bool field_is_replaced(
	const struct entries_host *host, const struct request_field *f, bool is_tls)
{
	for (unsigned i = 0; i < host->header_count; i++)
		if (pair_counts(&host->headers[i], is_tls) &&
			request_field_is(f, host->headers[i].name))
			return true;
	return false;
}

/* The longest placeholder that begins here; one may be the beginning of another. */
static const struct entries_pair *placeholder_at(
	const struct entries_host *host, const char *at, size_t len, bool is_tls)
{
	const struct entries_pair *found = NULL;
	for (unsigned i = 0; i < host->placeholder_count; i++) {
		const struct entries_pair *p = &host->placeholders[i];
		size_t size = strlen(p->name);
		if (pair_counts(p, is_tls) && size <= len && memcmp(at, p->name, size) == 0 &&
			(!found || size > strlen(found->name)))
			found = p;
	}
	return found;
}

/* What takes a placeholder's place is not looked at again. */
static void append_value(struct buf *out, const struct entries_host *host,
	const struct request_field *f, bool is_tls)
{
	for (size_t at = 0; at < f->value_len && out->len <= REWRITE_MAX;) {
		const struct entries_pair *p =
			placeholder_at(host, f->value + at, f->value_len - at, is_tls);
		if (p)
			buf_append_str(out, p->value);
		else
			buf_append_char(out, f->value[at]);
		at += p ? strlen(p->name) : 1;
	}
}

/* Only fields that have a placeholder are written anew. */
static void append_field(struct buf *out, const struct entries_host *host,
	const struct request_field *f, const char *end, bool is_tls)
{
	bool has_any = false;
	for (size_t at = 0; at < f->value_len && !has_any; at++)
		has_any = placeholder_at(host, f->value + at, f->value_len - at, is_tls) != NULL;
	if (!has_any) {
		buf_append(out, f->name, (size_t)(end - f->name));
		return;
	}
	buf_append(out, f->name, f->name_len);
	buf_append_str(out, ": ");
	append_value(out, host, f, is_tls);
	buf_append_str(out, "\r\n");
}

static void append_headers(struct buf *out, const struct entries_host *host, bool is_tls)
{
	for (unsigned i = 0; i < host->header_count; i++) {
		const struct entries_pair *h = &host->headers[i];
		if (!pair_counts(h, is_tls))
			continue;
		buf_append_str(out, h->name);
		buf_append_str(out, ": ");
		buf_append_str(out, h->value);
		buf_append_str(out, "\r\n");
	}
}

/* Where a secret may stand nothing is looked at: it decides where the request goes, or ends. */
static bool field_is_framing(const struct request_field *f)
{
	return request_field_is(f, "Host") || request_field_is(f, "Content-Length") ||
	       request_field_is(f, "Transfer-Encoding") || request_field_is(f, "Upgrade");
}

int rewrite_head(struct buf *out, const uint8_t *head, size_t len, const struct entries_host *host,
	bool is_tls)
{
	struct request_field f;
	size_t at = 0;
	const char *line_end = memchr(head, '\n', len);
	buf_append(out, head, (size_t)(line_end + 1 - (const char *)head));
	while (request_next_field(head, len, &at, &f) && out->len <= REWRITE_MAX) {
		const char *end = (const char *)head + at;
		if (field_is_framing(&f))
			buf_append(out, f.name, (size_t)(end - f.name));
		else if (!field_is_replaced(host, &f, is_tls))
			append_field(out, host, &f, end, is_tls);
	}
	append_headers(out, host, is_tls);
	buf_append_str(out, "\r\n");
	buf_require(out);
	if (out->len <= REWRITE_MAX)
		return 0;
	explicit_bzero(out->data, out->len);
	out->len = 0;
	return -E2BIG;
}
