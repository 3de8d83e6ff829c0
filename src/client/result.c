/* Reads a command's result from the server's JSON, and writes it as JSON. */
#include "client/result.h"

#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/answer.h"
#include "client/failure.h"
#include "json/json.h"

static const struct answer_field result_fields[] = {
	{"executionId", ANSWER_STRING, offsetof(struct bunker_result, execution_id)},
	{"sandboxId", ANSWER_STRING, offsetof(struct bunker_result, sandbox_id)},
	{"status", ANSWER_STRING, offsetof(struct bunker_result, status)},
	{"timedOut", ANSWER_BOOL, offsetof(struct bunker_result, timed_out)},
	{"oomKilled", ANSWER_BOOL, offsetof(struct bunker_result, oom_killed)},
	{"outputTruncated", ANSWER_BOOL, offsetof(struct bunker_result, output_truncated)},
	{"durationMs", ANSWER_NUMBER, offsetof(struct bunker_result, duration_ms)},
};

int client_decode_base64(struct buf *out, const char *text, struct bunker_error *e)
{
	size_t len = strlen(text);
	out->len = 0;
	if (!buf_reserve(out, len / 4 * 3 + 3))
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	if (sodium_base642bin((unsigned char *)out->data, out->cap, text, len, NULL, &out->len,
		    NULL, sodium_base64_VARIANT_ORIGINAL) < 0)
		return client_fail(
			e, BUNKER_INVALID_RESPONSE, "the server sent output that is not base64");
	return 0;
}

int client_decode_signal(const cJSON *value)
{
	if (cJSON_IsNumber(value))
		return value->valueint;
	if (!cJSON_IsString(value))
		return 0;
	const char *name = value->valuestring;
	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (int number = 1; number < NSIG; number++) {
		const char *known = sigabbrev_np(number);
		if (known && strcmp(known, name) == 0)
			return number;
	}
	return 0;
}

void client_decode_result(cJSON *event, struct bunker_result *result)
{
	cJSON_DeleteItemFromObjectCaseSensitive(event, "type");
	cJSON_DeleteItemFromObjectCaseSensitive(event, "encoding");
	client_answer_decode(event, result_fields, ARRAY_LEN(result_fields), result);
	const cJSON *exit_code = cJSON_GetObjectItemCaseSensitive(event, "exitCode");
	result->exit_code = cJSON_IsNumber(exit_code) ? exit_code->valueint : -1;
	result->signal = client_decode_signal(cJSON_GetObjectItemCaseSensitive(event, "signal"));
	result->json = client_answer_to_json(event);
}

void bunker_result_finish(struct bunker_result *result)
{
	free(result->out);
	free(result->err);
	cJSON_Delete(client_answer_from_json(result->json));
	*result = (struct bunker_result){0};
}

char *bunker_result_json(const struct bunker_result *result)
{
	autobuf text = {0};
	struct json_writer w = {.out = &text};
	json_begin_object(&w);
	const cJSON *member = client_answer_from_json(result->json)->child;
	for (; member; member = member->next) {
		autofree char *value = cJSON_PrintUnformatted(member);
		if (!value)
			return NULL;
		json_key(&w, member->string);
		json_raw(&w, value);
	}
	json_key(&w, "stdout");
	json_string_n(&w, result->out, result->out_size);
	json_key(&w, "stderr");
	json_string_n(&w, result->err, result->err_size);
	json_end_object(&w);
	return buf_take_str(&text);
}
