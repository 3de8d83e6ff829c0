/*
 * The output of an interpreter: a stream of packets (wire/frame.h), written by its minder in init,
 * with the output of user code and the messages of the interpreter in them. All of it is hostile: a
 * malformed packet ends the interpreter.
 *
 * What was read is acknowledged at the ends of packets only, so that after a restart of ours the
 * stream goes on with a whole one: that is what the two watchers are for.
 */
#include <stdlib.h>
#include <string.h>

#include "box/code/code_core.h"

#define READ_SIZE (64u * 1024)
#define NONSENSE  "what came from it made no sense"

/* ---- bytes ---- */

/* From here on init would begin again. */
static void note_boundary(struct code_context *c)
{
	c->holder.position[0] = c->reader.position[0] - (c->in.len - c->at);
}

bool code_stream_fetch(struct code_context *c)
{
	if (!c->execution)
		return false;
	buf_consume(&c->in, c->at);
	c->at = 0;
	size_t before = c->in.len;
	if (!execution_has_ended(c->execution))
		execution_acknowledge(c->execution, 0);
	return execution_read(c->execution, &c->reader, 0, READ_SIZE, &c->in) && !c->in.failed &&
	       c->in.len > before;
}

static void signal_was_heard(struct code_context *c)
{
	c->interrupting = false;
	if (c->state == CODE_INTERPRETER_IDLE)
		c->kill_at_ms = 0;
	if (c->asked && !c->asked_out) {
		c->asked_out = true;
		buf_append_str(&c->commands, "__bunker_sync\n");
		code_interpreter_tell(c);
	}
	if (c->kill_at_ms)
		code_watch_time(c->sandbox->box);
	code_run_begin(c);
}

static bool begin_packet(struct code_context *c)
{
	uint32_t header;
	if (c->in.len - c->at < FRAME_PACKET_HEADER)
		return false;
	memcpy(&header, c->in.data + c->at, sizeof header);
	c->channel = header >> 24;
	c->packet_left = header & 0xffffff;
	c->at += FRAME_PACKET_HEADER;
	if (c->channel == FRAME_CHANNEL_HEARD && c->packet_left == 0) {
		note_boundary(c);
		signal_was_heard(c);
	} else if (c->channel >= FRAME_CHANNELS || c->packet_left == 0 ||
		   c->packet_left > FRAME_PACKET_MAX) {
		c->packet_left = 0;
		c->at = c->in.len;
		code_interpreter_fail(c, NONSENSE);
	}
	return true;
}

static void code_stream_consume(struct code_context *c, size_t len)
{
	c->at += len;
	c->packet_left -= len;
	if (c->packet_left == 0)
		note_boundary(c);
}

/* ---- messages ---- */

static int64_t number_in(const struct code_field *f)
{
	int64_t n = 0;
	for (size_t i = 0; i < f->len && i < 15 && f->data[i] >= '0' && f->data[i] <= '9'; i++)
		n = n * 10 + (f->data[i] - '0');
	return n;
}

static void code_stream_copy_text(char *out, size_t size, const struct code_field *f)
{
	size_t len = f->len < size - 1 ? f->len : size - 1;
	memcpy(out, f->data, len);
	out[len] = '\0';
}

static void is_free(struct code_context *c)
{
	c->state = CODE_INTERPRETER_IDLE;
	c->abandoned = false;
	if (!c->interrupting)
		c->kill_at_ms = 0;
	code_run_begin(c);
	code_interpreter_answer(c, NULL);
}

static void became_ready(struct code_context *c, const struct code_message *m)
{
	char cwd[CODE_CWD_MAX + 1];
	if (m->field_count > 0)
		code_stream_copy_text(c->version, sizeof c->version, &m->fields[0]);
	if (m->field_count > 1 && m->fields[1].len <= CODE_CWD_MAX) {
		code_stream_copy_text(cwd, sizeof cwd, &m->fields[1]);
		free(c->seen_cwd);
		c->seen_cwd = sandbox_copy_string(cwd);
	}
	is_free(c);
}

static const struct {
	const char *name;
	enum code_event_type type;
	size_t fields; /* at least; 0: pairs */
} message_types[] = {
	{"result", CODE_EVENT_RESULT, 0},
	{"display", CODE_EVENT_DISPLAY, 0},
	{"error", CODE_EVENT_ERROR, 3},
};

static bool is_event(const struct code_message *m, struct code_event *ret)
{
	for (size_t i = 0; i < sizeof message_types / sizeof message_types[0]; i++) {
		if (strcmp(message_types[i].name, m->type) != 0)
			continue;
		size_t wanted = message_types[i].fields;
		if (wanted ? m->field_count < wanted : m->field_count % 2 != 0)
			return false;
		ret->type = message_types[i].type;
		ret->field_count = m->field_count;
		memcpy(ret->fields, m->fields, m->field_count * sizeof m->fields[0]);
		return true;
	}
	return false;
}

/* True when it is something for the run. */
static bool handle_message(struct code_context *c, struct code_event *ret)
{
	const struct code_message *m = &c->message;
	if (c->state == CODE_INTERPRETER_STARTING && strcmp(m->type, "ready") == 0) {
		became_ready(c, m);
		return false;
	}
	if (c->state != CODE_INTERPRETER_BUSY)
		return false;
	if (strcmp(m->type, "synced") == 0 && c->asked) {
		c->asked = c->asked_out = false;
		c->count = m->field_count > 0 ? number_in(&m->fields[0]) : 0;
		is_free(c);
		return false;
	}
	if (strcmp(m->type, "done") != 0 || c->asked)
		return is_event(m, ret);
	bool wanted = !c->abandoned;
	if (wanted)
		code_run_finish(c);
	is_free(c);
	ret->type = CODE_EVENT_END;
	return wanted;
}

static bool put_text(struct code_event *ret, const char *text)
{
	ret->type = CODE_EVENT_STDERR;
	ret->field_count = 1;
	ret->fields[0] = (struct code_field){text, strlen(text)};
	return true;
}

/* ---- the next event ---- */

static bool take_message_bytes(struct code_context *c, struct code_event *ret)
{
	bool left_out = false;
	size_t rest = c->in.len - c->at;
	size_t len = rest < c->packet_left ? rest : c->packet_left;
	code_stream_consume(
		c, code_message_feed(&c->message, c->key, c->in.data + c->at, len, &left_out));
	if (left_out)
		return put_text(ret, "a result was left out: too many wait for their readers\n");
	if (c->message.state == CODE_MESSAGE_NONSENSE)
		code_interpreter_fail(c, NONSENSE);
	return c->message.state == CODE_MESSAGE_WHOLE && handle_message(c, ret);
}

/* Output is told by whole packets: a line that was written at once is one event. */
static bool take_output(struct code_context *c, struct code_event *ret)
{
	ret->type = c->channel == FRAME_CHANNEL_STDOUT ? CODE_EVENT_STDOUT : CODE_EVENT_STDERR;
	ret->field_count = 1;
	ret->fields[0] = (struct code_field){c->in.data + c->at, c->packet_left};
	code_stream_consume(c, c->packet_left);
	return true;
}

bool code_stream_next(struct code_context *c, struct code_event *ret)
{
	*ret = (struct code_event){0};
	for (;;) {
		size_t rest = c->in.len - c->at;
		bool is_output = c->channel <= FRAME_CHANNEL_STDERR;
		if (c->packet_left == 0) {
			if (!begin_packet(c) && !code_stream_fetch(c))
				return false;
		} else if (rest == 0 || (is_output && rest < c->packet_left)) {
			if (!code_stream_fetch(c))
				return false;
		} else if (is_output ? take_output(c, ret) : take_message_bytes(c, ret)) {
			return true;
		}
	}
}

bool code_stream_is_wanted(const struct code_context *c)
{
	return c->state == CODE_INTERPRETER_BUSY && !c->abandoned;
}

void code_stream_drain(struct code_context *c)
{
	struct code_event ignored;
	while (c->execution && !code_stream_is_wanted(c) && code_stream_next(c, &ignored))
		;
}

void code_stream_forget(struct code_context *c)
{
	buf_finish(&c->in);
	buf_finish(&c->commands);
	code_message_reset(&c->message);
	c->at = c->packet_left = c->commands_sent = 0;
}
