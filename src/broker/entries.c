#include "broker/entries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "stream/request.h"
#include "wire/broker.h"

/* Fields that say where a request goes and where it ends. */
static const char *const refused_names[] = {
	"host", "content-length", "transfer-encoding", "connection", "upgrade"};

/* An entry as it lies in the data. */
struct packed {
	enum broker_entry_kind kind;
	bool tls_only;
	const uint8_t *body;
	size_t size;
};

/* ---- checks ---- */

static bool is_header_name(const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < ARRAY_LEN(refused_names); i++)
		if (strcasecmp(name, refused_names[i]) == 0)
			return false;
	return len <= ENTRIES_NAME_MAX && request_is_token(name, len);
}

/* What can stand in the value of a field, whatever stands around it. */
static bool is_value(const char *text)
{
	size_t len = strlen(text);
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7f)
			return false;
	return len <= ENTRIES_VALUE_MAX;
}

static bool is_host(const char *name)
{
	char settled[REQUEST_HOST_SIZE];
	const char *rest = strncmp(name, "*.", 2) == 0 ? name + 2 : name;
	return request_settle_name((const uint8_t *)rest, strlen(rest), settled) &&
	       strcmp(rest, settled) == 0;
}

/* ---- unpacking ---- */

/* Reads the entry at *at and moves *at behind it. 1, 0 at the end, -EINVAL. */
static int packed_next(const struct entries *e, size_t *at, struct packed *ret)
{
	struct broker_entry head;
	if (*at == e->len)
		return 0;
	if (e->len - *at < sizeof head)
		return -EINVAL;
	memcpy(&head, e->data + *at, sizeof head);
	*at += sizeof head;
	if (head.kind >= BROKER_ENTRY_KIND_COUNT || head.size > e->len - *at ||
		(head.flags & ~BROKER_TLS_ONLY) != 0)
		return -EINVAL;
	*ret = (struct packed){(enum broker_entry_kind)head.kind,
		(head.flags & BROKER_TLS_ONLY) != 0, e->data + *at, head.size};
	*at += head.size;
	return 1;
}

/* Splits into `count` texts that fill the entry. */
static bool packed_texts(const struct packed *p, const char **texts, size_t count)
{
	const uint8_t *at = p->body, *end = p->body + p->size;
	for (size_t i = 0; i < count; i++) {
		const uint8_t *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
		if (!nul)
			return false;
		texts[i] = (const char *)at;
		at = nul + 1;
	}
	return at == end;
}

static int take_binary(struct entries_binary *to, const struct packed *p)
{
	if (to->data || p->size == 0 || p->size > ENTRIES_BINARY_MAX)
		return -EINVAL;
	*to = (struct entries_binary){p->body, p->size};
	return 0;
}

static int take_host_entry(struct entries *e, const struct packed *p)
{
	const char *name;
	if (e->host_count == ENTRIES_HOSTS_MAX || !packed_texts(p, &name, 1) || !is_host(name))
		return -EINVAL;
	for (unsigned i = 0; i < e->host_count; i++)
		if (strcmp(e->hosts[i].name, name) == 0)
			return -EINVAL;
	e->hosts = mem_resize(e->hosts, e->host_count + 1, sizeof *e->hosts);
	e->hosts[e->host_count++] = (struct entries_host){.name = name, .packed = p->body};
	return 0;
}

static int take_pair(struct entries_pair **pairs, unsigned *count, const struct packed *p,
	bool (*name_is_fine)(const char *name))
{
	const char *texts[2];
	if (*count == ENTRIES_OF_HOST || !packed_texts(p, texts, 2) || !texts[0][0] ||
		!name_is_fine(texts[0]) || !is_value(texts[1]))
		return -EINVAL;
	*pairs = mem_resize(*pairs, *count + 1, sizeof **pairs);
	(*pairs)[(*count)++] = (struct entries_pair){texts[0], texts[1], p->tls_only};
	return 0;
}

static int entries_take(struct entries *e, const struct packed *p)
{
	struct entries_host *host = e->host_count > 0 ? &e->hosts[e->host_count - 1] : NULL;
	switch (p->kind) {
	case BROKER_CA_KEY:
		return take_binary(&e->key, p);
	case BROKER_CA:
		return take_binary(&e->certificate, p);
	case BROKER_HOST:
		return take_host_entry(e, p);
	case BROKER_HEADER:
		return host ? take_pair(&host->headers, &host->header_count, p, is_header_name)
			    : -EINVAL;
	case BROKER_PLACEHOLDER:
		return host ? take_pair(&host->placeholders, &host->placeholder_count, p, is_value)
			    : -EINVAL;
	default:
		return -EINVAL;
	}
}

int entries_init(struct entries *e, uint8_t *data, size_t len)
{
	struct packed p;
	size_t at = 0;
	int r;
	*e = (struct entries){.data = data, .len = len};
	while ((r = packed_next(e, &at, &p)) > 0) {
		r = entries_take(e, &p);
		if (r < 0)
			break;
		if (e->host_count > 0 && p.kind >= BROKER_HOST) {
			struct entries_host *host = &e->hosts[e->host_count - 1];
			host->packed_len = (size_t)(e->data + at - host->packed);
		}
	}
	if (r == 0 && (e->key.len > 0) == (e->certificate.len > 0))
		return 0;
	entries_finish(e);
	return -EINVAL;
}

void entries_finish(struct entries *e)
{
	for (unsigned i = 0; i < e->host_count; i++) {
		free(e->hosts[i].headers);
		free(e->hosts[i].placeholders);
	}
	free(e->hosts);
	if (e->data)
		explicit_bzero(e->data, e->len);
	free(e->data);
	*e = (struct entries){0};
}

/* ---- finding ---- */

static bool host_is_above(const char *wildcard, const char *name)
{
	size_t len = strlen(name), end = strlen(wildcard) - 1;
	return len > end && strcmp(name + len - end, wildcard + 1) == 0;
}

const struct entries_host *entries_find(const struct entries *e, const char *name)
{
	const struct entries_host *found = NULL;
	for (unsigned i = 0; i < e->host_count; i++) {
		const struct entries_host *h = &e->hosts[i];
		if (strcmp(h->name, name) == 0)
			return h;
		if (h->name[0] == '*' && host_is_above(h->name, name) &&
			(!found || strlen(h->name) > strlen(found->name)))
			found = h;
	}
	return found;
}

bool entries_agree(const struct entries *a, const struct entries *b, const char *name)
{
	const struct entries_host *x = entries_find(a, name), *y = entries_find(b, name);
	return x && y && x->packed_len == y->packed_len &&
	       memcmp(x->packed, y->packed, x->packed_len) == 0;
}

static bool binary_is_equal(const struct entries_binary *a, const struct entries_binary *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

bool entries_have_same_authority(const struct entries *a, const struct entries *b)
{
	return binary_is_equal(&a->key, &b->key) &&
	       binary_is_equal(&a->certificate, &b->certificate);
}
