/*
 * The smallest HTTP client that measures the server and not itself: one blocking socket, one write
 * per request, answers with Content-Length only.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define ANSWER_MAX (2u << 20)

static const char exec_body[] = "{\"command\":[\"/bin/true\"]}";

int http_open(struct http *h, const struct server *server)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(server->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int on = 1;
	*h = (struct http){.server = server};
	h->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (h->fd < 0 || connect(h->fd, (struct sockaddr *)&address, sizeof address) < 0)
		return bench_fail("cannot connect to the server: %s", strerror(errno));
	setsockopt(h->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return 0;
}

void http_close(struct http *h)
{
	if (h->server)
		close(h->fd);
	buf_finish(&h->out);
	buf_finish(&h->in);
	*h = (struct http){0};
}

int http_send(struct http *h, const char *method, const char *path, const char *body)
{
	if (bench_interrupted)
		return bench_fail("interrupted");
	h->out.len = 0;
	buf_printf(&h->out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n",
		method, path, h->server->key);
	if (body)
		buf_printf(&h->out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
			strlen(body));
	buf_append_str(&h->out, "\r\n");
	if (body)
		buf_append_str(&h->out, body);
	int r = h->out.failed ? -ENOMEM : fd_write_all(h->fd, h->out.data, h->out.len);
	return r < 0 ? bench_fail("cannot send a request: %s", strerror(-r)) : 0;
}

int http_send_bytes(
	struct http *h, const char *method, const char *path, const void *bytes, size_t len)
{
	if (bench_interrupted)
		return bench_fail("interrupted");
	h->out.len = 0;
	buf_printf(&h->out,
		"%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
		"Content-Type: application/octet-stream\r\nContent-Length: %zu\r\n\r\n",
		method, path, h->server->key, len);
	if (bytes)
		buf_append(&h->out, bytes, len);
	int r = h->out.failed ? -ENOMEM : fd_write_all(h->fd, h->out.data, h->out.len);
	return r < 0 ? bench_fail("cannot send a request: %s", strerror(-r)) : 0;
}

/* ---- answers ---- */

static int receive_more(struct http *h)
{
	if (h->in.len > ANSWER_MAX || !buf_reserve(&h->in, 4096))
		return bench_fail("the server's answer is too long");
	ssize_t n = recv(h->fd, h->in.data + h->in.len, h->in.cap - h->in.len - 1, 0);
	if (n <= 0)
		return bench_fail(
			"the server does not answer: %s", bench_interrupted ? "interrupted"
							  : n < 0           ? strerror(errno)
								  : "it closed the connection");
	h->in.len += (size_t)n;
	h->in.data[h->in.len] = '\0';
	return 0;
}

/* The length of the body, from a head that ends with an empty line; 0 when it names none. */
static size_t content_length(const char *head)
{
	static const char name[] = "content-length:";
	for (const char *line = head; line && line[0] != '\r'; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncasecmp(line, name, strlen(name)) == 0)
			return strtoul(line + strlen(name), NULL, 10);
		if (line[0] == '\r')
			break;
	}
	return 0;
}

int http_receive(struct http *h, int expected_status)
{
	const char *end = NULL;
	h->in.len = 0;
	while (!end) {
		if (receive_more(h) < 0)
			return -1;
		end = strstr(h->in.data, "\r\n\r\n");
	}
	h->body_at = (size_t)(end - h->in.data) + 4;
	size_t total = h->body_at + content_length(h->in.data);
	while (h->in.len < total)
		if (receive_more(h) < 0)
			return -1;
	long status = h->in.len > 12 ? strtol(h->in.data + 9, NULL, 10) : 0;
	if (status != expected_status)
		return bench_fail("the server answered %ld, not %d: %s", status, expected_status,
			h->in.data + h->body_at);
	return 0;
}

int http_drain(struct http *h, int expected_status, uint64_t *length)
{
	static char scratch[1 << 20];
	const char *end = NULL;
	h->in.len = 0;
	while (!end) {
		if (receive_more(h) < 0)
			return -1;
		end = strstr(h->in.data, "\r\n\r\n");
	}
	h->body_at = (size_t)(end - h->in.data) + 4;
	long status = strtol(h->in.data + 9, NULL, 10);
	uint64_t total = content_length(h->in.data), got = h->in.len - h->body_at;
	while (got < total) {
		ssize_t n = recv(h->fd, scratch, sizeof scratch, 0);
		if (n <= 0)
			return bench_fail("the answer ends after %llu of %llu bytes",
				(unsigned long long)got, (unsigned long long)total);
		got += (uint64_t)n;
	}
	*length = total;
	return status == expected_status
		       ? 0
		       : bench_fail("the server answered %ld, not %d", status, expected_status);
}

ssize_t http_read_some(struct http *h)
{
	if (!buf_reserve(&h->in, 64 * 1024))
		return -1;
	ssize_t n = recv(h->fd, h->in.data + h->in.len, h->in.cap - h->in.len - 1, 0);
	if (n > 0) {
		h->in.len += (size_t)n;
		h->in.data[h->in.len] = '\0';
	}
	return n;
}

int http_read_id(const struct http *h, char id[ID_SIZE])
{
	cJSON *json = cJSON_Parse(h->in.data + h->body_at);
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(json, "id"));
	bool valid = text && id_is_valid(text);
	if (valid)
		memcpy(id, text, ID_SIZE);
	cJSON_Delete(json);
	return valid ? 0 : bench_fail("the server answered without a valid id");
}

/* ---- the calls ---- */

static void sandbox_path(struct buf *out, const char *id, const char *rest)
{
	buf_append_str(out, "/v1/sandboxes/");
	buf_append_str(out, id);
	buf_append_str(out, rest);
	buf_append_char(out, '\0');
}

int http_send_create(struct http *h)
{
	return http_send(h, "POST", "/v1/sandboxes", "{}");
}

int http_send_exec(struct http *h, const char *id)
{
	autobuf path = {0};
	sandbox_path(&path, id, "/exec");
	return http_send(h, "POST", path.data, exec_body);
}

int http_send_destroy(struct http *h, const char *id)
{
	autobuf path = {0};
	sandbox_path(&path, id, "");
	return http_send(h, "DELETE", path.data, NULL);
}

int http_create(struct http *h, char id[ID_SIZE])
{
	return http_send_create(h) < 0 || http_receive(h, 201) < 0 ? -1 : http_read_id(h, id);
}

int http_exec(struct http *h, const char *id)
{
	return http_send_exec(h, id) < 0 ? -1 : http_receive(h, 200);
}

int http_destroy(struct http *h, const char *id)
{
	return http_send_destroy(h, id) < 0 ? -1 : http_receive(h, 204);
}

int http_run(struct http *h)
{
	return http_send(h, "POST", "/v1/run", exec_body) < 0 ? -1 : http_receive(h, 200);
}
