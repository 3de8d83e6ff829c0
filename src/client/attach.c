/*
 * Attached to a process by WebSocket; wslay takes frames apart and puts them together. Bytes are
 * binary messages, the rest is JSON: the table below says what each type means; others pass.
 */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <wslay/wslay.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/failure.h"
#include "client/result.h"
#include "client/transport.h"
#include "json/json.h"

#define MESSAGE_MAX (1u << 20)

struct bunker_attachment {
	int fd;
	wslay_event_context_ptr wslay;
	bunker_output_fn *output;
	void *output_arg;
	int64_t offset[2];
	enum bunker_stream current;
	cJSON *exit;
	bool stopped, lost;
};

/* ---- what comes ---- */

static enum bunker_stream stream_of(const cJSON *message)
{
	const char *name =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(message, "stream"));
	return name && strcmp(name, "stderr") == 0 ? BUNKER_STDERR : BUNKER_STDOUT;
}

static void move_to(struct bunker_attachment *a, const cJSON *message, const char *key)
{
	const cJSON *number = cJSON_GetObjectItemCaseSensitive(message, key);
	a->current = stream_of(message);
	if (cJSON_IsNumber(number))
		a->offset[a->current] = (int64_t)number->valuedouble;
}

static void attach_take_data(struct bunker_attachment *a, cJSON **message)
{
	move_to(a, *message, "offset");
}

static void take_truncated(struct bunker_attachment *a, cJSON **message)
{
	move_to(a, *message, "to");
}

static void attach_take_exit(struct bunker_attachment *a, cJSON **message)
{
	cJSON_Delete(a->exit);
	a->exit = take_ptr(*message);
}

/*
 * An "error" concerns a message that the client sent, usually input for a process that has stopped
 * reading.
 */
static const struct {
	const char *type;
	void (*take)(struct bunker_attachment *a, cJSON **message);
} types[] = {
	{"data", attach_take_data},
	{"truncated", take_truncated},
	{"exit", attach_take_exit},
};

static void take_text(struct bunker_attachment *a, const char *text, size_t len)
{
	autojson *message = NULL;
	if (json_parse(text, len, &message, NULL) < 0)
		return;
	const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(message, "type"));
	for (size_t i = 0; type && i < ARRAY_LEN(types); i++)
		if (strcmp(types[i].type, type) == 0) {
			types[i].take(a, &message);
			return;
		}
}

static void attach_take_message(
	wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *message, void *arg)
{
	struct bunker_attachment *a = arg;
	(void)ctx;
	if (message->opcode == WSLAY_TEXT_FRAME) {
		take_text(a, (const char *)message->msg, message->msg_length);
	} else if (message->opcode == WSLAY_BINARY_FRAME && !a->stopped) {
		a->offset[a->current] += (int64_t)message->msg_length;
		a->stopped = a->output(a->output_arg, a->current, message->msg,
				     message->msg_length) != 0;
	}
}

/* ---- bytes ---- */

static ssize_t attach_give_bytes(
	wslay_event_context_ptr ctx, uint8_t *buf, size_t len, int flags, void *arg)
{
	struct bunker_attachment *a = arg;
	(void)flags;
	ssize_t n = recv(a->fd, buf, len, MSG_DONTWAIT);
	if (n > 0)
		return n;
	a->lost |= n == 0 || (errno != EAGAIN && errno != EINTR);
	wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
	return -1;
}

static ssize_t attach_take_bytes(
	wslay_event_context_ptr ctx, const uint8_t *data, size_t len, int flags, void *arg)
{
	struct bunker_attachment *a = arg;
	(void)flags;
	ssize_t n = send(a->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n >= 0)
		return n;
	a->lost |= errno != EAGAIN && errno != EINTR;
	wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
	return -1;
}

static int make_mask(wslay_event_context_ptr ctx, uint8_t *buf, size_t len, void *arg)
{
	(void)ctx;
	(void)arg;
	randombytes_buf(buf, len);
	return 0;
}

/* ---- open and close ---- */

static void write_target(
	struct buf *target, const char *sandbox_id, const char *process, const int64_t offset[2])
{
	buf_append_str(target, "/v1/sandboxes/");
	client_call_append_escaped(target, sandbox_id);
	buf_append_str(target, "/processes/");
	client_call_append_escaped(target, process);
	buf_printf(target, "/output?offset=%lld&stderrOffset=%lld", (long long)offset[0],
		(long long)offset[1]);
	buf_append_char(target, '\0');
}

static int start_wslay(struct bunker_attachment *a, struct bunker_error *e)
{
	const struct wslay_event_callbacks callbacks = {.recv_callback = attach_give_bytes,
		.send_callback = attach_take_bytes,
		.genmask_callback = make_mask,
		.on_msg_recv_callback = attach_take_message};
	if (wslay_event_context_client_init(&a->wslay, &callbacks, a) != 0)
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	wslay_event_config_set_max_recv_msg_length(a->wslay, MESSAGE_MAX);
	return 0;
}

int bunker_attach(struct bunker *b, const char *sandbox_id, const char *process,
	const int64_t offset[2], bunker_output_fn *output, void *output_arg,
	struct bunker_attachment **ret, struct bunker_error *e)
{
	autobuf target = {0}, refusal = {0};
	int status = 0;
	write_target(&target, sandbox_id, process, offset);
	struct bunker_attachment *a = calloc(1, sizeof *a);
	if (!a || target.failed) {
		free(a);
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	}
	*a = (struct bunker_attachment){.fd = -1,
		.output = output,
		.output_arg = output_arg,
		.offset = {offset[0], offset[1]}};
	int r = client_transport_upgrade(client_call_url(b), target.data, client_call_key(b),
		"websocket", &a->fd, &refusal, &status, e);
	if (r == 0 && status != 101)
		r = client_call_fail_refused(e, status, &refusal);
	if (r == 0)
		r = start_wslay(a, e);
	if (r < 0) {
		bunker_attachment_close(a);
		return r;
	}
	*ret = a;
	return 0;
}

void bunker_attachment_close(struct bunker_attachment *a)
{
	if (!a)
		return;
	if (a->wslay) {
		wslay_event_queue_close(a->wslay, 1000, NULL, 0);
		wslay_event_send(a->wslay);
		wslay_event_context_free(a->wslay);
	}
	if (a->fd >= 0)
		close(a->fd);
	cJSON_Delete(a->exit);
	free(a);
}

/* ---- use ---- */

int bunker_attachment_fd(const struct bunker_attachment *a)
{
	return a->fd;
}

int bunker_attachment_step(struct bunker_attachment *a, struct bunker_error *e)
{
	if (wslay_event_recv(a->wslay) != 0 || wslay_event_send(a->wslay) != 0)
		a->lost = true;
	if (a->stopped)
		return client_fail(e, BUNKER_STOPPED, "the output is not wanted any more");
	if (a->exit)
		return 0;
	if (a->lost || wslay_event_get_close_received(a->wslay))
		return client_fail(e, BUNKER_CONNECTION_LOST,
			"the server closed the connection before the process had ended");
	return 1;
}

size_t bunker_attachment_queued(const struct bunker_attachment *a)
{
	return wslay_event_want_write(a->wslay) ? 1 + wslay_event_get_queued_msg_length(a->wslay)
						: 0;
}

static int attach_queue(struct bunker_attachment *a, uint8_t opcode, const void *data, size_t size)
{
	const struct wslay_event_msg message = {opcode, data, size};
	if (wslay_event_queue_msg(a->wslay, &message) != 0)
		return -1;
	return wslay_event_send(a->wslay) == 0 ? 0 : -1;
}

int bunker_attachment_write(struct bunker_attachment *a, const void *data, size_t size)
{
	return attach_queue(a, WSLAY_BINARY_FRAME, data, size);
}

static int queue_text(struct bunker_attachment *a, struct buf *text)
{
	return text->failed ? -1 : attach_queue(a, WSLAY_TEXT_FRAME, text->data, text->len);
}

static struct json_writer attach_message_begin(struct buf *out, const char *type)
{
	struct json_writer w = {.out = out};
	json_begin_object(&w);
	json_put_string(&w, "type", type);
	return w;
}

int bunker_attachment_end_input(struct bunker_attachment *a)
{
	autobuf text = {0};
	struct json_writer w = attach_message_begin(&text, "end");
	json_end_object(&w);
	return queue_text(a, &text);
}

int bunker_attachment_resize(struct bunker_attachment *a, unsigned rows, unsigned columns)
{
	autobuf text = {0};
	struct json_writer w = attach_message_begin(&text, "resize");
	json_put_int(&w, "rows", rows);
	json_put_int(&w, "columns", columns);
	json_end_object(&w);
	return queue_text(a, &text);
}

int bunker_attachment_signal(struct bunker_attachment *a, const char *signal)
{
	autobuf text = {0};
	struct json_writer w = attach_message_begin(&text, "signal");
	json_put_string(&w, "signal", signal);
	json_end_object(&w);
	return queue_text(a, &text);
}

int64_t bunker_attachment_offset(const struct bunker_attachment *a, enum bunker_stream stream)
{
	return a->offset[stream];
}

int bunker_attachment_result(
	struct bunker_attachment *a, struct bunker_result *ret, struct bunker_error *e)
{
	struct bunker_result result = {.out = strdup(""), .err = strdup("")};
	if (!a->exit || !result.out || !result.err) {
		free(result.out);
		free(result.err);
		return client_fail(e, BUNKER_INVALID_ARGUMENT, "the process has not ended");
	}
	client_decode_result(take_ptr(a->exit), &result);
	*ret = result;
	return 0;
}
