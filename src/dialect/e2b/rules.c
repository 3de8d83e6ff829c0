#include "dialect/e2b/rules.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "dialect/e2b/decode.h"
#include "model/rules.h"
#include "model/secret.h"

#define DOMAINS_MAX    10
#define THEIR_SECRET   "${e2b.secrets."
#define THEIR_IDENTITY "${e2b.identity."

/* ---- theirs to ours ---- */

static int rules_refuse(const char *domain, const char *why, struct error *e)
{
	return error_set_field(
		e, ERROR_INVALID_FIELD, "rules", "\"network.rules\": '%.80s': %s", domain, why);
}

/* Their names of secrets become ours; whether there is such a secret is not for us to say. */
static int rules_append_value(
	struct buf *out, const char *domain, const char *value, struct error *e)
{
	if (strstr(value, THEIR_IDENTITY))
		return error_set_field(e, ERROR_NOT_IMPLEMENTED, "rules",
			"\"network.rules\": '%.80s': this server has no identity tokens", domain);
	for (const char *at; (at = strstr(value, THEIR_SECRET)); value = at) {
		buf_append(out, value, (size_t)(at - value));
		buf_append_str(out, SECRET_REFERENCE);
		at += strlen(THEIR_SECRET);
	}
	buf_append(out, value, strlen(value) + 1);
	return 0;
}

static int rules_append_header(
	struct buf *out, const char *domain, const cJSON *header, struct error *e)
{
	if (!cJSON_IsString(header))
		return rules_refuse(domain, "headers must be texts", e);
	if (!header->string[0] || strpbrk(header->string, " \t:") || strpbrk(domain, " \t"))
		return rules_refuse(domain, "no domain or header has such a name", e);
	buf_append_str(out, domain);
	buf_append_char(out, ' ');
	buf_append_str(out, header->string);
	buf_append_str(out, ": ");
	return rules_append_value(out, domain, header->valuestring, e);
}

/* Whether an object has this member, or none; what else E2B may put there one day is not ignored.
 */
static bool rules_has_only(const cJSON *object, const char *name)
{
	const cJSON *first = object ? object->child : NULL;
	return !first || (!first->next && strcmp(first->string, name) == 0);
}

static int rules_append_domain(struct buf *out, const cJSON *domain, struct error *e)
{
	const cJSON *header, *only = domain->child;
	const cJSON *transform = cJSON_GetObjectItemCaseSensitive(only, "transform");
	const cJSON *headers = cJSON_GetObjectItemCaseSensitive(transform, "headers");
	if (!cJSON_IsArray(domain) || (only && (!cJSON_IsObject(only) || only->next)) ||
		(headers && !cJSON_IsObject(headers)))
		return rules_refuse(domain->string, "a domain has one rule with one transform", e);
	if (!rules_has_only(only, "transform") || !rules_has_only(transform, "headers"))
		return error_set_field(e, ERROR_NOT_IMPLEMENTED, "rules",
			"\"network.rules\": '%.80s': a transform of headers is all that this server does",
			domain->string);
	if (cJSON_GetArraySize(headers) > RULES_HEADERS_MAX)
		return rules_refuse(domain->string, "a domain may have 20 headers", e);
	cJSON_ArrayForEach(header, headers)
	{
		if (rules_append_header(out, domain->string, header, e) < 0)
			return -1;
	}
	return 0;
}

int e2b_decode_rules(
	const cJSON *rules, struct scratch *memory, struct strings *ret, struct error *e)
{
	autobuf out = {0};
	const cJSON *domain;
	if (!e2b_is_asked_for(rules))
		return 0;
	if (!cJSON_IsObject(rules) || cJSON_GetArraySize(rules) > DOMAINS_MAX)
		return error_set_field(e, ERROR_INVALID_FIELD, "rules",
			"\"network.rules\" must be an object of at most %d domains", DOMAINS_MAX);
	cJSON_ArrayForEach(domain, rules)
	{
		if (rules_append_domain(&out, domain, e) < 0)
			return -1;
	}
	buf_require(&out);
	*ret = (struct strings){scratch_alloc(memory, out.len + 1), out.len};
	if (out.len > 0)
		memcpy(ret->data, out.data, out.len);
	return 0;
}

/* ---- ours to theirs ---- */

static void rules_put_value(struct json_writer *w, const char *value)
{
	autobuf out = {0};
	for (const char *at; (at = strstr(value, SECRET_REFERENCE)); value = at) {
		buf_append(&out, value, (size_t)(at - value));
		buf_append_str(&out, THEIR_SECRET);
		at += strlen(SECRET_REFERENCE);
	}
	buf_append(&out, value, strlen(value) + 1);
	buf_require(&out);
	json_string(w, out.data);
}

static void rules_open_domain(struct json_writer *w, const char *host)
{
	json_key(w, host);
	json_begin_array(w);
	json_begin_object(w);
	json_key(w, "transform");
	json_begin_object(w);
	json_key(w, "headers");
	json_begin_object(w);
}

static void rules_close_domain(struct json_writer *w)
{
	json_end_object(w);
	json_end_object(w);
	json_end_object(w);
	json_end_array(w);
}

void e2b_put_rules(struct json_writer *w, const struct field *f, const void *record)
{
	const struct strings *rules = (const void *)((const char *)record + f->offset);
	struct header_rule r = {0}, last = {0};
	json_begin_object(w);
	for (size_t at = 0; at < rules->len; at += strlen(rules->data + at) + 1) {
		if (header_rule_parse(rules->data + at, &r) < 0)
			continue;
		if (strcmp(last.host, r.host) != 0) {
			if (last.host[0])
				rules_close_domain(w);
			rules_open_domain(w, r.host);
		}
		json_key(w, r.name);
		rules_put_value(w, r.value);
		last = r;
	}
	if (last.host[0])
		rules_close_domain(w);
	json_end_object(w);
}
