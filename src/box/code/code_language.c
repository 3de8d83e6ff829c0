/*
 * The languages: how their interpreters are started, and how an interpreter is spoken to. The
 * programs of the interpreters are in src/interpreter, which says what goes over the wire.
 */
#include <stdio.h>
#include <string.h>

#include "box/code/code_core.h"
#include "box/code/interpreters.h"

/* Follows each run of a shell: see src/interpreter/bash. */
#define SHELL_TRAILER "eval \"$__bunker_code\" 0</dev/null\n__bunker_done\n"

static const struct language {
	const char *command[6];
	const struct interpreter_text *text, *parts; /* parts end with a NULL name */
	bool quotes;                                 /* its commands are lines of shell */
} languages[CODE_LANGUAGE_COUNT] = {
	[CODE_PYTHON] = {{"python3", "-c", interpreter_python_boot}, &interpreter_python,
		interpreter_python_parts, false},
	[CODE_JAVASCRIPT] = {{"node", "-e", interpreter_javascript_boot}, &interpreter_javascript,
		interpreter_no_parts, false},
	[CODE_BASH] = {{"bash", "-c", interpreter_bash_boot}, &interpreter_bash,
		interpreter_no_parts, true},
};

const char *const *code_language_command(enum code_language language)
{
	return languages[language].command;
}

/* ---- fields, by their lengths ---- */

struct field_list {
	struct buf lengths, bytes;
};

static void add_field(struct field_list *l, const void *data, size_t len)
{
	buf_printf(&l->lengths, " %zu", len);
	buf_append(&l->bytes, data, len);
}

static void code_language_put_command(const char *verb, struct field_list *l, struct buf *out)
{
	buf_append_str(out, verb);
	buf_append(out, l->lengths.data, l->lengths.len);
	buf_append_char(out, '\n');
	buf_append(out, l->bytes.data, l->bytes.len);
	out->failed |= l->lengths.failed || l->bytes.failed;
	buf_finish(&l->lengths);
	buf_finish(&l->bytes);
}

void code_language_load(enum code_language language, const char *key, struct buf *out)
{
	const struct language *l = &languages[language];
	struct field_list fields = {0};
	add_field(&fields, key, strlen(key));
	add_field(&fields, l->text->text, l->text->len);
	for (const struct interpreter_text *part = l->parts; part->name; part++) {
		add_field(&fields, part->name, strlen(part->name));
		add_field(&fields, part->text, part->len);
	}
	code_language_put_command("__bunker_load", &fields, out);
}

/* ---- words of shell ---- */

/* Quotes as $'...': everything but plain letters and digits as octal numbers. */
static void put_quoted(struct buf *out, const char *data, size_t len)
{
	buf_append_str(out, " $'");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)data[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || c == ' ';
		if (plain) {
			buf_append_char(out, (char)c);
			continue;
		}
		char octal[] = {'\\', (char)('0' + (c >> 6)), (char)('0' + (c >> 3 & 7)),
			(char)('0' + (c & 7))};
		buf_append(out, octal, sizeof octal);
	}
	buf_append_char(out, '\'');
}

static void put_shell_run(const struct code_run *r, struct buf *out)
{
	buf_append_str(out, "__bunker_run");
	put_quoted(out, r->code.data, r->code.len);
	for (size_t at = 0; at < r->env.len; at += strlen(r->env.data + at) + 1)
		put_quoted(out, r->env.data + at, strlen(r->env.data + at));
	buf_append_str(out, "\n" SHELL_TRAILER);
}

void code_language_run(enum code_language language, const struct code_run *r, struct buf *out)
{
	struct field_list fields = {0};
	if (languages[language].quotes) {
		put_shell_run(r, out);
		return;
	}
	add_field(&fields, r->code.data, r->code.len);
	for (size_t at = 0; at < r->env.len; at += strlen(r->env.data + at) + 1)
		add_field(&fields, r->env.data + at, strlen(r->env.data + at));
	code_language_put_command("__bunker_run", &fields, out);
}
