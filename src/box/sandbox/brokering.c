#include "box/sandbox/brokering.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"
#include "box/sandbox/placeholder.h"
#include "box/sandbox/sandbox_row.h"
#include "box/vault/vault.h"
#include "wire/broker.h"

#define FIELD "network.rules"
/* More than an authority, and what a header or a placeholder has around its texts. */
#define AUTHORITY_ROOM 8192
#define ENTRY_ROOM     (sizeof(struct broker_entry) + PLACEHOLDER_SIZE + 2)

/* ---- checks ---- */

/* What is known of the secrets while rules are measured. */
struct brokering_measure {
	struct box *box;
	const char *tenant;
	const char *changed; /* the secret that gets a value of this length; NULL: none */
	size_t changed_len;
};

static int brokering_measure_secret(
	const struct brokering_measure *m, const char *name, size_t *len, struct error *e)
{
	struct secret_record record;
	const struct secret *secret = vault_find(m->box->vault, m->tenant, name);
	if (m->changed && strcmp(m->changed, name) == 0) {
		*len = m->changed_len;
		return 0;
	}
	if (!secret)
		return error_set_field(e, ERROR_INVALID_FIELD, FIELD,
			"\"" FIELD "\": there is no secret '%s'", name);
	secret_view(secret, &record);
	if (!record.readable)
		return error_set_field(e, ERROR_UNAVAILABLE, FIELD,
			"the secret '%s' cannot be opened with the server's key", name);
	*len = record.sealed.len - SEAL_OVERHEAD;
	return 0;
}

/* A secret counts twice: where it is named, and for a placeholder that stands for it. */
static int brokering_measure_rule(
	const struct brokering_measure *m, const char *rule, size_t *size, struct error *e)
{
	char name[SECRET_NAME_MAX + 1];
	struct header_rule r;
	const char *at, *begin;
	if (header_rule_parse(rule, &r) < 0)
		return 0; /* it was refused, or is not in force */
	size_t len = 0, filled = strlen(r.value);
	*size += strlen(rule) + 2 * ENTRY_ROOM;
	for (at = r.value; secret_find_reference(&at, &begin, name) > 0;) {
		if (brokering_measure_secret(m, name, &len, e) < 0)
			return -1;
		*size += 2 * len + ENTRY_ROOM;
		filled = filled - (size_t)(at - begin) + len;
	}
	if (filled <= RULES_FILLED_MAX)
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, FIELD,
		"\"" FIELD
		"\": '%.80s', '%.40s': with its secrets the value is longer than %d bytes",
		r.host, r.name, RULES_FILLED_MAX);
}

static int brokering_measure(
	const struct brokering_measure *m, const struct strings *rules, struct error *e)
{
	size_t size = AUTHORITY_ROOM;
	for (size_t at = 0; at < rules->len; at += strlen(rules->data + at) + 1)
		if (brokering_measure_rule(m, rules->data + at, &size, e) < 0)
			return -1;
	if (size <= BROKER_RULES_SIZE)
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, FIELD,
		"\"" FIELD "\": with the values of its secrets it is too large: %zu bytes of %d",
		size, BROKER_RULES_SIZE);
}

int brokering_check(struct box *b, const char *tenant, const struct strings *rules, struct error *e)
{
	return brokering_measure(&(struct brokering_measure){.box = b, .tenant = tenant}, rules, e);
}

int brokering_check_value(struct box *b, const char *tenant, const struct strings *rules,
	const char *secret, size_t len, struct error *e)
{
	return brokering_measure(&(struct brokering_measure){b, tenant, secret, len}, rules, e);
}

/* ---- the authority ---- */

static bool sandbox_has_rules(const struct sandbox *s)
{
	return s->network.mode != NETWORK_NONE && s->network.rules.len > 0;
}

static int brokering_make_authority(struct sandbox *s, struct error *e)
{
	struct authority authority = {0};
	struct strings sealed = {0};
	int r = authority_make(s->id, &authority);
	if (r == 0)
		r = vault_seal_authority(s->box->vault, s->id, &authority, &sealed);
	authority_finish(&authority);
	if (r == -ENOKEY)
		return error_set_field(e, ERROR_UNAVAILABLE, FIELD,
			"the server was started without its key for secrets; see its log");
	if (r < 0)
		return error_set(e, ERROR_INTERNAL, "the sandbox's authority could not be made");
	free(s->authority.data);
	s->authority = sealed;
	return 0;
}

int brokering_prepare(struct sandbox *s, struct error *e)
{
	return sandbox_has_rules(s) && s->authority.len == 0 ? brokering_make_authority(s, e) : 0;
}

/* One that was sealed under a key that is gone is replaced: it vouches for nothing but the broker.
 */
static int brokering_open_authority(struct sandbox *s, struct authority *ret, struct error *e)
{
	struct vault *v = s->box->vault;
	if (brokering_prepare(s, e) < 0)
		return -1;
	if (vault_open_authority(v, s->id, &s->authority, ret) == 0)
		return 0;
	log_warn("a sandbox gets a new authority: the old one cannot be opened", "sandbox", s->id);
	if (brokering_make_authority(s, e) < 0)
		return -1;
	if (s->known)
		sandbox_store(s, s->intent, NULL, NULL);
	if (vault_open_authority(v, s->id, &s->authority, ret) == 0)
		return 0;
	return error_set(e, ERROR_INTERNAL, "the sandbox's authority cannot be opened");
}

char *brokering_pem(struct sandbox *s)
{
	struct authority authority = {0};
	struct error e;
	if (!sandbox_has_rules(s) || brokering_open_authority(s, &authority, &e) < 0)
		return NULL;
	char *pem = authority_pem(&authority);
	authority_finish(&authority);
	return pem;
}

/* ---- entries ---- */

static void brokering_put_entry(
	struct buf *out, enum broker_entry_kind kind, bool tls_only, const void *data, size_t len)
{
	const struct broker_entry entry = {.kind = (uint16_t)kind,
		.flags = tls_only ? BROKER_TLS_ONLY : 0,
		.size = (uint32_t)len};
	buf_append(out, &entry, sizeof entry);
	buf_append(out, data, len);
}

static int brokering_put_secret(
	const struct sandbox *s, const char *name, struct buf *out, struct error *e)
{
	const struct secret *secret = vault_find(s->box->vault, s->tenant, name);
	if (!secret || secret_read(secret, out) < 0)
		return error_set_field(e, ERROR_UNAVAILABLE, FIELD,
			secret ? "the secret '%s' cannot be opened with the server's key"
			       : "there is no secret '%s' any more",
			name);
	return 0;
}

/* The value of a header, with its secrets. */
static int brokering_expand(
	const struct sandbox *s, const char *value, struct buf *out, struct error *e)
{
	char name[SECRET_NAME_MAX + 1];
	const char *at = value, *from = value, *begin;
	while (secret_find_reference(&at, &begin, name) > 0) {
		buf_append(out, from, (size_t)(begin - from));
		if (brokering_put_secret(s, name, out, e) < 0)
			return -1;
		from = at;
	}
	buf_append(out, from, strlen(from) + 1);
	return 0;
}

static int brokering_put_header(
	const struct sandbox *s, const struct header_rule *r, struct buf *out, struct error *e)
{
	size_t at = out->len;
	bool secret = strstr(r->value, SECRET_REFERENCE) != NULL;
	brokering_put_entry(out, BROKER_HEADER, secret, r->name, strlen(r->name) + 1);
	if (brokering_expand(s, r->value, out, e) < 0)
		return -1;
	uint32_t size = (uint32_t)(out->len - at - sizeof(struct broker_entry));
	memcpy(out->data + at + offsetof(struct broker_entry, size), &size, sizeof size);
	return 0;
}

/* For a host, whose rules are these, those of the sandbox's placeholders whose secrets they name.
 */
static int brokering_put_placeholders(
	const struct sandbox *s, const struct strings *rules, struct buf *out, struct error *e)
{
	const struct strings *all = &s->placeholders;
	char name[SECRET_NAME_MAX + 1];
	for (size_t i = 0; i < all->len; i += strlen(all->data + i) + 1) {
		const char *text = placeholder_split(all->data + i, name);
		if (!text || !rules_name_secret(rules, name))
			continue;
		size_t at = out->len;
		brokering_put_entry(out, BROKER_PLACEHOLDER, true, text, strlen(text) + 1);
		if (brokering_put_secret(s, name, out, e) < 0)
			return -1;
		buf_append_char(out, '\0');
		uint32_t size = (uint32_t)(out->len - at - sizeof(struct broker_entry));
		memcpy(out->data + at + offsetof(struct broker_entry, size), &size, sizeof size);
	}
	return 0;
}

/* The rules of one host begin at *at; moves it behind them. */
static int brokering_put_host(const struct sandbox *s, size_t *at, struct buf *out, struct error *e)
{
	const struct strings *all = &s->network.rules;
	struct header_rule r = {0};
	struct strings own = {all->data + *at, 0};
	char host[sizeof r.host];
	while (*at < all->len) {
		if (header_rule_parse(all->data + *at, &r) < 0)
			return error_set(e, ERROR_INTERNAL, "a stored rule is malformed");
		if (own.len == 0) {
			memcpy(host, r.host, sizeof host);
			brokering_put_entry(out, BROKER_HOST, false, host, strlen(host) + 1);
		} else if (strcmp(host, r.host) != 0) {
			break;
		}
		if (brokering_put_header(s, &r, out, e) < 0)
			return -1;
		size_t len = strlen(all->data + *at) + 1;
		own.len += len;
		*at += len;
	}
	return brokering_put_placeholders(s, &own, out, e);
}

static int brokering_pack(struct sandbox *s, struct buf *out, struct error *e)
{
	struct authority authority = {0};
	/* All of it at once: what grows would leave copies behind. */
	if (!buf_reserve(out, BROKER_RULES_SIZE))
		return error_set(e, ERROR_RESOURCE_EXHAUSTED, "there is no memory");
	if (brokering_check(s->box, s->tenant, &s->network.rules, e) < 0 ||
		brokering_open_authority(s, &authority, e) < 0)
		return -1;
	brokering_put_entry(out, BROKER_CA_KEY, false, authority.key.data, authority.key.len);
	brokering_put_entry(
		out, BROKER_CA, false, authority.certificate.data, authority.certificate.len);
	authority_finish(&authority);
	size_t at = 0;
	while (at < s->network.rules.len)
		if (brokering_put_host(s, &at, out, e) < 0)
			return -1;
	buf_require(out);
	return 0;
}

/* ---- telling the broker ---- */

struct brokering {
	struct box *box;
	sandbox_done_fn *done;
	void *arg;
};

/* A name that only this server's wire, egress and brokers know. */
static void brokering_name(const struct sandbox *s, char id[ID_SIZE])
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	uint8_t hash[ID_LEN + 12];
	crypto_generichash(hash, sizeof hash, (const uint8_t *)s->tenant, strlen(s->tenant),
		s->box->broker_key, sizeof s->box->broker_key);
	for (size_t i = 0; i < ID_LEN; i++)
		id[i] = digits[hash[i] % (sizeof digits - 1)];
	id[ID_LEN] = '\0';
}

const char *brokering_broker(const struct sandbox *s, char id[ID_SIZE])
{
	id[0] = '\0';
	if (sandbox_has_rules(s))
		brokering_name(s, id);
	return id;
}

static void brokering_told(void *arg, int error)
{
	struct brokering *b = arg;
	struct error e;
	if (error)
		error_set(&e, ERROR_UNAVAILABLE,
			"the sandbox's network: telling bunker-broker its rules failed: %s",
			strerror(error));
	b->done(b->arg, error ? &e : NULL);
	box_check_closed(b->box);
	free(b);
}

void brokering_apply(struct sandbox *s, sandbox_done_fn *done, void *arg)
{
	struct driver *d = s->box->driver;
	struct error e = {0};
	wipedbuf entries = {0};
	char broker[ID_SIZE];
	bool has_rules = sandbox_has_rules(s);
	if (!has_rules && !s->brokered) {
		done(arg, NULL);
		return;
	}
	if (has_rules && brokering_pack(s, &entries, &e) < 0) {
		box_answer_later(s->box, done, arg, &e);
		return;
	}
	struct brokering *b = mem_new(sizeof *b);
	*b = (struct brokering){s->box, done, arg};
	brokering_name(s, broker);
	s->brokered = has_rules;
	if (has_rules)
		d->broker_set(d, broker, s->id, &entries, brokering_told, b);
	else
		d->broker_forget(d, broker, s->id, brokering_told, b);
}

void brokering_end(struct sandbox *s)
{
	char broker[ID_SIZE];
	if (!s->brokered)
		return;
	s->brokered = false;
	brokering_name(s, broker);
	s->box->driver->broker_forget(s->box->driver, broker, s->id, NULL, NULL);
}
