#include "api/encode.h"

#include <stdio.h>

void encode_milliseconds(struct json_writer *w, const char *key, int64_t us)
{
	char text[32];
	snprintf(text, sizeof text, "%lld.%03d", (long long)(us / 1000), (int)(us % 1000));
	json_key(w, key);
	json_raw(w, text);
}

/* The record is a view's. */
void encode_sandbox_own(struct json_writer *w, const struct field *f, const void *record)
{
	const struct warden_volume *volumes = ((const struct sandbox_view *)record)->volumes;
	(void)f;
	if (!volumes || !volumes[0].id[0])
		return;
	json_key(w, "volumes");
	json_begin_array(w);
	for (size_t i = 0; i < WARDEN_VOLUMES_MAX && volumes[i].id[0]; i++) {
		json_begin_object(w);
		json_put_string(w, "volume", volumes[i].id);
		json_put_string(w, "path", volumes[i].path);
		json_put_bool(w, "readOnly", volumes[i].read_only);
		json_end_object(w);
	}
	json_end_array(w);
}

void encode_output(struct json_writer *w, const char *key, const struct buf *bytes, bool base64)
{
	json_key(w, key);
	if (base64)
		json_base64(w, bytes->data, bytes->len);
	else
		json_string_n(w, bytes->data ? bytes->data : "", bytes->len);
}
