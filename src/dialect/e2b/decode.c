#include "dialect/e2b/decode.h"

#include <stdlib.h>
#include <string.h>

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

int e2b_check_network(const cJSON *network, struct error *e)
{
	static const char *const rules[] = {
		"allowOut", "denyOut", "rules", "egressProxy", "maskRequestHost", "httpsPorts"};
	for (size_t i = 0; network && i < ARRAY_LEN(rules); i++)
		if (e2b_is_asked_for(cJSON_GetObjectItemCaseSensitive(network, rules[i])))
			return error_set_field(e, ERROR_NOT_IMPLEMENTED, rules[i],
				"\"network.%s\": this server has no rules for the network of sandboxes yet",
				rules[i]);
	if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(network, "allowPublicTraffic")))
		return error_set_field(e, ERROR_NOT_IMPLEMENTED, "allowPublicTraffic",
			"\"network.allowPublicTraffic\": this server does not serve the ports of sandboxes yet");
	return 0;
}
