#include "dialect/e2b/decode.h"

#include <stdlib.h>
#include <string.h>

#include "model/check.h"

#define ALL_TRAFFIC   "0.0.0.0/0"
#define METADATA_MAX  (64 * 1024)
#define TIMEOUT_MAX_S (INT64_C(365) * 24 * 3600)

int e2b_check_timeout(int64_t seconds, struct error *e)
{
	if (seconds <= 0)
		return error_set_field(
			e, ERROR_INVALID_FIELD, "timeout", "Timeout must be greater than 0");
	if (seconds > TIMEOUT_MAX_S)
		return error_set_field(e, ERROR_INVALID_FIELD, "timeout",
			"Timeout cannot be greater than %d hours", (int)(TIMEOUT_MAX_S / 3600));
	return 0;
}

int e2b_metadata(const cJSON *metadata, struct scratch *memory, const char **ret, struct error *e)
{
	return json_text(metadata, "metadata", METADATA_MAX, memory, ret, e);
}

bool e2b_is_asked_for(const cJSON *value)
{
	return value && !cJSON_IsNull(value) && !cJSON_IsFalse(value) &&
	       !((cJSON_IsObject(value) || cJSON_IsArray(value)) && !value->child);
}

static int refuse_unsupported_network(const cJSON *network, struct error *e)
{
	static const char *const names[] = {"egressProxy", "httpsPorts"};
	for (size_t i = 0; network && i < ARRAY_LEN(names); i++)
		if (e2b_is_asked_for(cJSON_GetObjectItemCaseSensitive(network, names[i])))
			return error_set_field(e, ERROR_NOT_IMPLEMENTED, names[i],
				"\"network.%s\": this server does not have that yet", names[i]);
	return 0;
}

/* A list of the network, and whether it has names or all addresses in it. */
struct e2b_list {
	struct strings entries;
	bool has_names, has_all;
};

static int decode_list(const cJSON *network, const char *name, struct scratch *memory,
	struct e2b_list *ret, struct error *e)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(network, name), *item;
	size_t size = 0;
	*ret = (struct e2b_list){0};
	if (!e2b_is_asked_for(list))
		return 0;
	cJSON_ArrayForEach(item, list)
	{
		if (!cJSON_IsArray(list) || !cJSON_IsString(item))
			break;
		size += strlen(item->valuestring) + 1;
	}
	if (!cJSON_IsArray(list) || item)
		return error_set_field(e, ERROR_INVALID_FIELD, name,
			"\"network.%s\" must be a list of texts", name);
	ret->entries.data = scratch_alloc(memory, size + 1);
	cJSON_ArrayForEach(item, list)
	{
		size_t len = strlen(item->valuestring) + 1;
		memcpy(ret->entries.data + ret->entries.len, item->valuestring, len);
		ret->entries.len += len;
		ret->has_names |= network_entry_is_name(item->valuestring);
		ret->has_all |= strcmp(item->valuestring, ALL_TRAFFIC) == 0;
	}
	return 0;
}

static int check_out_lists(
	const struct e2b_list *allow, const struct e2b_list *deny, struct error *e)
{
	if (deny->has_names)
		return error_set_field(e, ERROR_INVALID_FIELD, "denyOut",
			"\"network.denyOut\" takes addresses and ranges, and no names");
	if (allow->has_names && !deny->has_all)
		return error_set_field(e, ERROR_INVALID_FIELD, "allowOut",
			"When specifying allowed domains in allow out, you must include "
			"'ALL_TRAFFIC' in deny out to block all other traffic.");
	return 0;
}

int e2b_decode_network(const cJSON *network, const cJSON *internet, struct scratch *memory,
	struct network_settings *ret, struct error *e)
{
	struct e2b_list allow, deny;
	bool closed = cJSON_IsFalse(internet);
	*ret = (struct network_settings){.mode = closed ? NETWORK_NONE : NETWORK_OPEN};
	if (refuse_unsupported_network(network, e) < 0 ||
		e2b_decode_rules(cJSON_GetObjectItemCaseSensitive(network, "rules"), memory,
			&ret->rules, e) < 0 ||
		decode_list(network, "allowOut", memory, &allow, e) < 0 ||
		decode_list(network, "denyOut", memory, &deny, e) < 0 ||
		check_out_lists(&allow, &deny, e) < 0)
		return -1;
	if (allow.entries.len == 0 && deny.entries.len == 0)
		return 0;
	ret->allow = allow.entries;
	ret->mode = closed || deny.has_all ? NETWORK_ALLOW : NETWORK_DENY;
	if (ret->mode == NETWORK_DENY)
		ret->deny = deny.entries;
	return 0;
}

int e2b_decode_previews(const cJSON *network, struct sandbox_settings *out, struct error *e)
{
	const cJSON *open = cJSON_GetObjectItemCaseSensitive(network, "allowPublicTraffic");
	const cJSON *host = cJSON_GetObjectItemCaseSensitive(network, "maskRequestHost");
	if (open && !cJSON_IsBool(open) && !cJSON_IsNull(open))
		return error_set_field(e, ERROR_INVALID_FIELD, "network.allowPublicTraffic",
			"\"network.allowPublicTraffic\" must be true or false");
	if (host && !cJSON_IsString(host) && !cJSON_IsNull(host))
		return error_set_field(e, ERROR_INVALID_FIELD, "network.maskRequestHost",
			"\"network.maskRequestHost\" must be a text");
	out->previews = cJSON_IsFalse(open) ? PREVIEWS_TOKEN : PREVIEWS_PUBLIC;
	out->preview_host = host && cJSON_IsString(host) ? host->valuestring : "";
	if (strlen(out->preview_host) > PREVIEW_HOST_MAX)
		return error_set_field(e, ERROR_INVALID_FIELD, "network.maskRequestHost",
			"\"network.maskRequestHost\" may have at most %d bytes", PREVIEW_HOST_MAX);
	return check_preview_host(out->preview_host, "network.maskRequestHost", e);
}
