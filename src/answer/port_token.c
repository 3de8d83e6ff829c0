#include "answer/port_token.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "answer/dialect.h"
#include "answer/own_url.h"
#include "base/cleanup.h"

void port_token_make(const struct auth *auth, const char *sandbox, unsigned port, const char *id,
	char out[PORT_TOKEN_SIZE])
{
	char text[2 * ID_SIZE + 16];
	snprintf(text, sizeof text, "%s %u %s", sandbox, port, id);
	memcpy(out, id, ID_LEN);
	auth_sign(auth, "port", text, out + ID_LEN);
}

bool port_token_open(const struct auth *auth, const char *sandbox, unsigned port, const char *token,
	char id[ID_SIZE])
{
	char real[PORT_TOKEN_SIZE];
	if (strnlen(token, PORT_TOKEN_SIZE) != PORT_TOKEN_SIZE - 1)
		return false;
	memcpy(id, token, ID_LEN);
	id[ID_LEN] = '\0';
	if (!id_is_valid(id))
		return false;
	port_token_make(auth, sandbox, port, id, real);
	return sodium_memcmp(real, token, PORT_TOKEN_SIZE) == 0;
}

void port_put_url(struct json_writer *w, const struct http_request *req, const char *sandbox,
	int64_t port, const char *query)
{
	autobuf url = {0};
	own_url_append_scheme(&url, req);
	buf_printf(&url, "%lld-%s.", (long long)port, sandbox);
	own_url_append_sandbox_domain(&url, req);
	buf_printf(&url, "/%s", query);
	buf_append_char(&url, '\0');
	buf_require(&url);
	json_put_string(w, "url", url.data);
}
