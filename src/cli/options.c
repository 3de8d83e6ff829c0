#include "cli/options.h"
#include "model/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/suggest.h"

struct parser {
	const struct options_input *input;
	void *destination;
	int next; /* index of the argument to look at */
	char *message;
	size_t message_size;
};

static int options_fail(struct parser *p, const char *what, const char *option, int option_len)
{
	snprintf(p->message, p->message_size, "%s %.*s", what, option_len, option);
	return -1;
}

static int store_flag(void *to, char *value)
{
	*(bool *)to = true;
	return 0;
}

static int store_string(void *to, char *value)
{
	*(const char **)to = value;
	return 0;
}

static int store_number(void *to, char *value)
{
	char *end;
	errno = 0;
	long long number = strtoll(value, &end, 10);
	if (errno || end == value || *end || number < 1)
		return -1;
	*(int64_t *)to = number;
	return 0;
}

static int store_item(void *to, char *value)
{
	struct option_list *list = to;
	char **items = reallocarray(list->items, list->count + 1, sizeof *items);
	if (!items)
		return -1;
	items[list->count++] = value;
	list->items = items;
	return 0;
}

static int (*const store[])(void *to, char *value) = {
	[OPTION_FLAG] = store_flag,
	[OPTION_STRING] = store_string,
	[OPTION_NUMBER] = store_number,
	[OPTION_LIST] = store_item,
};

static int store_setting(void *to, char *value, const struct field *f)
{
	struct option_settings *settings = to;
	int64_t number;
	struct header_rule rule;
	if ((f->kind == FIELD_INTEGER && (!value || store_number(&number, value) < 0)) ||
		(f->kind == FIELD_HEADERS && (!value || header_rule_parse(value, &rule) < 0)))
		return -1;
	struct bunker_pair *items =
		reallocarray(settings->items, settings->count + 1, sizeof *items);
	if (!items)
		return -1;
	/* The last one given is the first that is found. */
	memmove(items + 1, items, settings->count * sizeof *items);
	items[0] = (struct bunker_pair){f->name, value ? value : "1"};
	settings->items = items;
	settings->count++;
	return 0;
}

static bool has_option(const struct field *f)
{
	return f->option && f->flags & FIELD_CREATE;
}

/* The option of one row, as if it were written in a table. */
static struct option option_of(const struct option *o, const struct field *f)
{
	return (struct option){f->letter, f->option, f->value,
		f->kind == FIELD_BOOL      ? OPTION_FLAG
		: f->kind == FIELD_INTEGER ? OPTION_NUMBER
					   : OPTION_STRING,
		o->offset, f->help, NULL, f};
}

bool cli_options_next(const struct option *const *tables, size_t *at, struct option *ret)
{
	size_t n = *at;
	for (; *tables; tables++)
		for (const struct option *o = *tables; o->name; o++) {
			size_t count = o->fields ? o->fields->count : 1;
			if (n >= count) {
				n -= count;
				continue;
			}
			for (; n < count; n++) {
				++*at;
				if (o->fields && !has_option(&o->fields->fields[n]))
					continue;
				*ret = o->fields ? option_of(o, &o->fields->fields[n]) : *o;
				return true;
			}
			n = 0;
		}
	return false;
}

static int options_fail_unknown(struct parser *p, const char *arg, size_t len)
{
	struct suggestion s;
	struct option o;
	cli_suggest_begin(&s, arg + 2, len - 2);
	for (size_t at = 0; cli_options_next(p->input->tables, &at, &o);)
		cli_suggest_offer(&s, o.name);
	if (!s.best)
		return options_fail(p, "unknown option", arg, (int)len);
	snprintf(p->message, p->message_size, "unknown option %.*s; did you mean --%s?", (int)len,
		arg, s.best);
	return -1;
}

static bool options_find_option(
	const struct parser *p, char letter, const char *name, size_t name_len, struct option *ret)
{
	for (size_t at = 0; cli_options_next(p->input->tables, &at, ret);)
		if (name ? strlen(ret->name) == name_len && strncmp(ret->name, name, name_len) == 0
			 : ret->letter == letter)
			return true;
	return false;
}

/* value: what was glued to the option, or NULL. `shown` is the option as it was written. */
static int take_value(
	struct parser *p, const struct option *o, char *value, const char *shown, int shown_len)
{
	if (o->kind == OPTION_FLAG && value)
		return options_fail(p, "there is no value to give to", shown, shown_len);
	if (o->kind != OPTION_FLAG && !value) {
		if (p->next == p->input->argc)
			return options_fail(p, "a value is missing after", shown, shown_len);
		value = p->input->argv[p->next++];
	}
	void *to = (char *)p->destination + o->offset;
	if ((o->field ? store_setting(to, value, o->field) : store[o->kind](to, value)) < 0)
		return options_fail(p,
			o->kind == OPTION_NUMBER ? "a positive number is needed after"
			: o->field && o->field->kind == FIELD_HEADERS
				? "'HOST NAME: VALUE' is needed after"
				: "out of memory at",
			shown, shown_len);
	return 0;
}

static int take_long(struct parser *p, char *arg)
{
	char *name = arg + 2;
	size_t len = strcspn(name, "=");
	struct option o;
	if (!options_find_option(p, 0, name, len, &o))
		return options_fail_unknown(p, arg, len + 2);
	return take_value(p, &o, name[len] ? name + len + 1 : NULL, arg, (int)len + 2);
}

static bool options_is_pair(const char *pair, const char *letters)
{
	return strlen(letters) == 2 && ((letters[0] == pair[0] && letters[1] == pair[1]) ||
					       (letters[0] == pair[1] && letters[1] == pair[0]));
}

static bool options_find_pair(const struct parser *p, const char *letters, struct option *ret)
{
	for (size_t at = 0; cli_options_next(p->input->tables, &at, ret);)
		if (ret->together && options_is_pair(ret->together, letters))
			return true;
	return false;
}

static int take_letters(struct parser *p, char *arg)
{
	struct option pair;
	if (options_find_pair(p, arg + 1, &pair))
		return take_value(p, &pair, NULL, arg, 3);
	for (char *letter = arg + 1; *letter; letter++) {
		const char shown[] = {'-', *letter, '\0'};
		struct option o;
		if (!options_find_option(p, *letter, NULL, 0, &o))
			return options_fail(p, "unknown option", shown, 2);
		bool ends = o.kind != OPTION_FLAG;
		int r = take_value(p, &o, ends && letter[1] ? letter + 1 : NULL, shown, 2);
		if (r < 0 || ends)
			return r;
	}
	return 0;
}

static bool starts_command(const struct options_input *input, int operands)
{
	return input->operands_before_command != OPTIONS_ANYWHERE &&
	       operands > input->operands_before_command;
}

int cli_options_parse(
	const struct options_input *input, void *destination, char *message, size_t message_size)
{
	struct parser p = {input, destination, 0, message, message_size};
	bool only_operands = false;
	int operands = 0;
	while (p.next < input->argc) {
		char *arg = input->argv[p.next++];
		int r = 0;
		if (only_operands || arg[0] != '-' || !arg[1]) {
			input->argv[operands++] = arg;
			only_operands |= starts_command(input, operands);
		} else if (strcmp(arg, "--") == 0) {
			only_operands = true;
		} else {
			r = arg[1] == '-' ? take_long(&p, arg) : take_letters(&p, arg);
		}
		if (r < 0)
			return r;
	}
	return operands;
}
