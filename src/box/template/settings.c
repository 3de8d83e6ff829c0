#include "box/template/settings.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"

static const struct {
	char kind;
	size_t offset;
} lists[] = {
	{'E', offsetof(struct settings, env)},
	{'S', offsetof(struct settings, start)},
	{'N', offsetof(struct settings, entrypoint)},
	{'C', offsetof(struct settings, command)},
	{'P', offsetof(struct settings, ports)},
};

static const struct {
	char kind;
	size_t offset;
} texts[] = {
	{'U', offsetof(struct settings, user)},
	{'W', offsetof(struct settings, workdir)},
	{'R', offsetof(struct settings, ready)},
};

static const struct {
	char kind;
	size_t offset;
} numbers[] = {
	{'t', offsetof(struct settings, ready_timeout_ms)},
	{'m', offsetof(struct settings, memory)},
	{'c', offsetof(struct settings, cpu)},
};

#define MEMBER(type, s, at) ((type *)(void *)((char *)(uintptr_t)(s) + (at)))

void settings_finish(struct settings *s)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		buf_finish(MEMBER(struct buf, s, lists[i].offset));
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		free(*MEMBER(char *, s, texts[i].offset));
	*s = (struct settings){0};
}

void settings_copy(struct settings *to, const struct settings *from)
{
	autobuf packed = {0};
	settings_pack(from, &packed);
	settings_unpack(to, packed.data, packed.len);
}

void settings_config(const struct settings *s, struct template_config *out)
{
	*out = (struct template_config){
		.user = s->user ? s->user : "",
		.workdir = s->workdir ? s->workdir : "",
		.env = {s->env.data, s->env.len},
		.start = {s->start.data, s->start.len},
		.ready = s->ready ? s->ready : "",
		.ready_timeout_ms = s->ready_timeout_ms,
		.entrypoint = {s->entrypoint.data, s->entrypoint.len},
		.command = {s->command.data, s->command.len},
		.ports = {s->ports.data, s->ports.len},
		.memory = s->memory,
		.cpu = s->cpu,
	};
}

void settings_set_text(char **text, const char *value)
{
	free(*text);
	*text = value && value[0] ? mem_copy_text(value) : NULL;
}

void settings_set_list(struct buf *list, const char *const *strings)
{
	buf_finish(list);
	for (; strings && *strings; strings++)
		buf_append(list, *strings, strlen(*strings) + 1);
	buf_require(list);
}

/* Without the variable of this name. */
static void drop_env(struct buf *env, const char *entry)
{
	size_t name = strcspn(entry, "=") + 1;
	for (size_t at = 0; at < env->len;) {
		size_t size = strlen(env->data + at) + 1;
		if (strncmp(env->data + at, entry, name) == 0) {
			memmove(env->data + at, env->data + at + size, env->len - at - size);
			env->len -= size;
		} else {
			at += size;
		}
	}
}

void settings_set_env(struct settings *s, const char *name_and_value)
{
	drop_env(&s->env, name_and_value);
	buf_append(&s->env, name_and_value, strlen(name_and_value) + 1);
	buf_require(&s->env);
}

/* ---- packing ---- */

static void pack_text(struct buf *out, char kind, const char *text)
{
	buf_append_char(out, kind);
	buf_append(out, text, strlen(text) + 1);
}

void settings_pack(const struct settings *s, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		const struct buf *list = MEMBER(const struct buf, s, lists[i].offset);
		for (size_t at = 0; at < list->len; at += strlen(list->data + at) + 1)
			pack_text(out, lists[i].kind, list->data + at);
	}
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const char *text = *MEMBER(char *const, s, texts[i].offset);
		if (text)
			pack_text(out, texts[i].kind, text);
	}
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		char text[24];
		int64_t number = *MEMBER(const int64_t, s, numbers[i].offset);
		snprintf(text, sizeof text, "%" PRId64, number);
		if (number)
			pack_text(out, numbers[i].kind, text);
	}
	buf_require(out);
}

static void unpack_one(struct settings *s, char kind, const char *text)
{
	assert(text);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (lists[i].kind == kind)
			buf_append(MEMBER(struct buf, s, lists[i].offset), text, strlen(text) + 1);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (texts[i].kind == kind)
			settings_set_text(MEMBER(char *, s, texts[i].offset), text);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (numbers[i].kind == kind)
			*MEMBER(int64_t, s, numbers[i].offset) = strtoll(text, NULL, 10);
}

void settings_unpack(struct settings *s, const void *data, size_t len)
{
	const char *text = data;
	settings_finish(s);
	if (len == 0 || text[len - 1] != '\0')
		return;
	for (size_t at = 0; at < len; at += strlen(text + at) + 1)
		if (text[at])
			unpack_one(s, text[at], text + at + 1);
}
