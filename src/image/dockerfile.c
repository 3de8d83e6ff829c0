#include "image/dockerfile.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "image/dockerfile_text.h"

struct planner {
	const struct dockerfile *file;
	struct scratch *memory;
	char escape;
	struct dockerfile_scope env;  /* of what FROM names, and of ENV; the args are behind it */
	struct dockerfile_scope args; /* of ARG, behind FROM */
	struct dockerfile_plan *plan;
	struct dockerfile_error *e;
};

typedef int take_fn(struct planner *p, const struct dockerfile_line *line);

static take_fn take_run, take_copy, take_add, dockerfile_take_env, take_workdir, take_user,
	take_arg, take_cmd, take_entrypoint, take_expose;

static const struct {
	const char *name;
	take_fn *take;
} instructions[] = {
	{"RUN", take_run},
	{"COPY", take_copy},
	{"ADD", take_add},
	{"ENV", dockerfile_take_env},
	{"WORKDIR", take_workdir},
	{"USER", take_user},
	{"ARG", take_arg},
	{"CMD", take_cmd},
	{"ENTRYPOINT", take_entrypoint},
	{"EXPOSE", take_expose},
};

/* ---- what instructions share ---- */

static struct dockerfile_step *dockerfile_add_step(
	struct planner *p, enum dockerfile_kind kind, const struct dockerfile_line *line)
{
	struct dockerfile_step *step = &p->plan->steps[p->plan->step_count++];
	autobuf text = {0};
	buf_printf(&text, "%s %s", line->name, line->rest);
	*step = (struct dockerfile_step){.kind = kind, .line = line->number, .mode = -1};
	step->text = dockerfile_copy(p->memory, text.data, text.len);
	return step;
}

static const char *const *dockerfile_shell_line(struct scratch *memory, const char *line)
{
	const char **argv = scratch_alloc(memory, 4 * sizeof *argv);
	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = line;
	return argv;
}

/* The exec form or the shell form. */
static int read_command(
	struct planner *p, const struct dockerfile_line *line, const char *const **ret)
{
	if (!line->rest[0])
		return dockerfile_fail(p->e, line->number, "%s has no arguments", line->name);
	*ret = dockerfile_list(line->rest, p->memory);
	if (!*ret)
		*ret = dockerfile_shell_line(p->memory, line->rest);
	return 0;
}

static bool has_here_document(const char *text)
{
	for (const char *at = text; (at = strstr(at, "<<")) != NULL; at += 2) {
		const char *word = at + 2 + (at[2] == '-');
		word += *word == '"' || *word == '\'';
		/* "<<<" is a string, "1 << 3" a shift. */
		if ((at == text || at[-1] != '<') &&
			(isalpha((unsigned char)*word) || *word == '_'))
			return true;
	}
	return false;
}

static int refuse_here_document(struct planner *p, const struct dockerfile_line *line)
{
	return dockerfile_fail(p->e, line->number,
		"here-documents (<<) are not supported; use a script and COPY it");
}

/* ---- RUN, CMD, ENTRYPOINT ---- */

static int take_run(struct planner *p, const struct dockerfile_line *line)
{
	struct dockerfile_step *step = dockerfile_add_step(p, DOCKERFILE_RUN, line);
	if (strncmp(line->rest, "--", 2) == 0)
		return dockerfile_fail(
			p->e, line->number, "options of RUN, such as --mount, are not supported");
	if (has_here_document(line->rest))
		return refuse_here_document(p, line);
	if (read_command(p, line, &step->argv) < 0)
		return -1;
	if (!step->argv[0])
		return dockerfile_fail(p->e, line->number, "RUN has no arguments");
	const char **env = scratch_alloc(p->memory, (p->args.count + 1) * sizeof *env);
	size_t count = 0;
	for (size_t i = 0; i < p->args.count; i++)
		if (!dockerfile_has(&p->env, p->args.entries[i], strcspn(p->args.entries[i], "=")))
			env[count++] = p->args.entries[i];
	step->env = env;
	return 0;
}

static int take_cmd(struct planner *p, const struct dockerfile_line *line)
{
	return read_command(p, line, &p->plan->command);
}

static int take_entrypoint(struct planner *p, const struct dockerfile_line *line)
{
	p->plan->entrypoint_is_line = !dockerfile_list(line->rest, p->memory);
	return read_command(p, line, &p->plan->entrypoint);
}

/* ---- COPY, ADD ---- */

static int read_mode(struct planner *p, const struct dockerfile_line *line, const char *text,
	struct dockerfile_step *step)
{
	char *end;
	long mode = strtol(text, &end, 8);
	if (!isdigit((unsigned char)text[0]) || *end || mode > 07777)
		return dockerfile_fail(
			p->e, line->number, "--chmod wants an octal number, not '%.32s'", text);
	step->mode = (int)mode;
	return 0;
}

static int read_copy_option(struct planner *p, const struct dockerfile_line *line,
	const char *option, struct dockerfile_step *step)
{
	if (strncmp(option, "--chown=", 8) == 0 && option[8]) {
		step->owner = option + 8;
		return 0;
	}
	if (strncmp(option, "--chmod=", 8) == 0)
		return read_mode(p, line, option + 8, step);
	if (strncmp(option, "--from", 6) == 0)
		return dockerfile_fail(p->e, line->number,
			"%s --from is not supported: a Dockerfile has one stage here", line->name);
	return dockerfile_fail(p->e, line->number, "%s has no option %.64s", line->name, option);
}

/* The options stand in front of both forms. */
static int read_copy_options(struct planner *p, const struct dockerfile_line *line,
	struct dockerfile_step *step, const char **rest)
{
	const char *text = line->rest;
	while (strncmp(text, "--", 2) == 0) {
		size_t len = strcspn(text, " \t");
		const char *option;
		if (dockerfile_expand(line, dockerfile_copy(p->memory, text, len), &p->env,
			    p->escape, &option, p->e) < 0 ||
			read_copy_option(p, line, option, step) < 0)
			return -1;
		text += len + strspn(text + len, " \t");
	}
	*rest = text;
	return 0;
}

static int expand_list(struct planner *p, const struct dockerfile_line *line,
	const char *const *list, const char *const **ret)
{
	size_t count = 0;
	while (list[count])
		count++;
	const char **made = scratch_alloc(p->memory, (count + 1) * sizeof *made);
	for (size_t i = 0; i < count; i++)
		if (dockerfile_expand(line, list[i], &p->env, p->escape, &made[i], p->e) < 0)
			return -1;
	*ret = made;
	return 0;
}

static int read_copy(
	struct planner *p, const struct dockerfile_line *line, struct dockerfile_step *step)
{
	const char *rest, *const *words;
	if (read_copy_options(p, line, step, &rest) < 0)
		return -1;
	if (has_here_document(rest))
		return refuse_here_document(p, line);
	words = dockerfile_list(rest, p->memory);
	int r = words ? expand_list(p, line, words, &words)
		      : dockerfile_words(line, rest, &p->env, p->escape, &words, p->e);
	if (r < 0)
		return r;
	size_t count = 0;
	while (words[count])
		count++;
	if (count < 2)
		return dockerfile_fail(p->e, line->number,
			"%s wants at least one source and a destination", line->name);
	step->path = words[count - 1];
	((const char **)(uintptr_t)words)[count - 1] = NULL;
	step->sources = words;
	size_t len = strlen(step->path);
	if (len == 0)
		return dockerfile_fail(
			p->e, line->number, "the destination of %s is empty", line->name);
	if (count > 2 && step->path[len - 1] != '/')
		return dockerfile_fail(p->e, line->number,
			"with more than one source the destination must end with '/'");
	return 0;
}

static int take_copy(struct planner *p, const struct dockerfile_line *line)
{
	return read_copy(p, line, dockerfile_add_step(p, DOCKERFILE_COPY, line));
}

static int take_add(struct planner *p, const struct dockerfile_line *line)
{
	struct dockerfile_step *step = dockerfile_add_step(p, DOCKERFILE_COPY, line);
	if (read_copy(p, line, step) < 0)
		return -1;
	for (const char *const *source = step->sources; *source; source++)
		if (strstr(*source, "://") || strncmp(*source, "git@", 4) == 0)
			return dockerfile_fail(p->e, line->number,
				"ADD takes local files only, not '%.100s'", *source);
	step->unpack = true;
	return 0;
}

/* ---- ENV, ARG ---- */

static bool is_variable(const char *text, size_t len)
{
	if (len == 0 || isdigit((unsigned char)text[0]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	return true;
}

static int bad_name(struct planner *p, const struct dockerfile_line *line, const char *word)
{
	return dockerfile_fail(
		p->e, line->number, "%s wants NAME=VALUE, not '%.64s'", line->name, word);
}

/* ENV NAME VALUE, where the value is the rest of the line. */
static int read_old_env(
	struct planner *p, const struct dockerfile_line *line, const char *const **ret)
{
	size_t name = strcspn(line->rest, " \t");
	const char *value = line->rest + name, *expanded;
	value += strspn(value, " \t");
	if (!is_variable(line->rest, name) || !*value)
		return bad_name(p, line, line->rest);
	if (dockerfile_expand(line, value, &p->env, p->escape, &expanded, p->e) < 0)
		return -1;
	autobuf entry = {0};
	buf_append(&entry, line->rest, name);
	buf_append_char(&entry, '=');
	buf_append_str(&entry, expanded);
	const char **env = scratch_alloc(p->memory, 2 * sizeof *env);
	env[0] = dockerfile_copy(p->memory, entry.data, entry.len);
	*ret = env;
	return 0;
}

static int dockerfile_take_env(struct planner *p, const struct dockerfile_line *line)
{
	struct dockerfile_step *step = dockerfile_add_step(p, DOCKERFILE_ENV, line);
	size_t first = strcspn(line->rest, " \t=");
	/* The values are those from before this instruction. */
	int r = line->rest[first] == '='
			? dockerfile_words(line, line->rest, &p->env, p->escape, &step->env, p->e)
			: read_old_env(p, line, &step->env);
	if (r < 0)
		return r;
	for (const char *const *entry = step->env; *entry; entry++) {
		size_t name = strcspn(*entry, "=");
		if (!(*entry)[name] || !is_variable(*entry, name))
			return bad_name(p, line, *entry);
		dockerfile_set(&p->env, *entry, name, *entry + name + 1);
	}
	return 0;
}

static const char *dockerfile_listed(const char *const *list, const char *name, size_t len)
{
	for (; list && *list; list++)
		if (strncmp(*list, name, len) == 0 && (*list)[len] == '=')
			return *list + len + 1;
	return NULL;
}

/*
 * Looks up an argument: the user's value, else the default, else (after FROM) the default given
 * before it.
 */
static int read_args(const struct dockerfile_line *line, const struct dockerfile_scope *known,
	const char *const *given, const char *const *early, char escape,
	struct dockerfile_scope *ret, struct dockerfile_error *e)
{
	const char *const *words;
	if (dockerfile_words(line, line->rest, known, escape, &words, e) < 0)
		return -1;
	if (!words[0])
		return dockerfile_fail(e, line->number, "ARG has no arguments");
	for (; *words; words++) {
		size_t name = strcspn(*words, "=");
		if (!is_variable(*words, name))
			return dockerfile_fail(e, line->number,
				"ARG wants NAME or NAME=VALUE, not '%.64s'", *words);
		const char *value = dockerfile_listed(given, *words, name);
		if (!value && (*words)[name])
			value = *words + name + 1;
		if (!value)
			value = dockerfile_listed(early, *words, name);
		if (value)
			dockerfile_set(ret, *words, name, value);
	}
	return 0;
}

static int take_arg(struct planner *p, const struct dockerfile_line *line)
{
	return read_args(
		line, &p->env, p->file->build_args, p->file->early_args, p->escape, &p->args, p->e);
}

/* ---- WORKDIR, USER, EXPOSE ---- */

static int read_one(struct planner *p, const struct dockerfile_line *line, const char **ret)
{
	if (dockerfile_expand(line, line->rest, &p->env, p->escape, ret, p->e) < 0)
		return -1;
	if (!(*ret)[0])
		return dockerfile_fail(p->e, line->number, "%s has no argument", line->name);
	return 0;
}

static int take_workdir(struct planner *p, const struct dockerfile_line *line)
{
	return read_one(p, line, &dockerfile_add_step(p, DOCKERFILE_WORKDIR, line)->path);
}

static int take_user(struct planner *p, const struct dockerfile_line *line)
{
	return read_one(p, line, &dockerfile_add_step(p, DOCKERFILE_USER, line)->user);
}

const char *dockerfile_user(struct scratch *memory, const char *text)
{
	const char *user = dockerfile_copy(memory, text, strcspn(text, ":"));
	if (strcmp(user, "0") == 0)
		return "root";
	return strcmp(user, "1000") == 0 ? "user" : user;
}

static bool is_port(const char *text)
{
	size_t len = strspn(text, "0123456789-");
	return len > 0 && len <= 11 && isdigit((unsigned char)text[0]) &&
	       (!text[len] || strcasecmp(text + len, "/tcp") == 0 ||
		       strcasecmp(text + len, "/udp") == 0);
}

static int take_expose(struct planner *p, const struct dockerfile_line *line)
{
	const char *const *words, *const *old = p->plan->ports;
	size_t count = 0, more = 0;
	if (dockerfile_words(line, line->rest, &p->env, p->escape, &words, p->e) < 0)
		return -1;
	for (; words[more]; more++)
		if (!is_port(words[more]))
			return dockerfile_fail(p->e, line->number,
				"EXPOSE wants ports such as 80 or 53/udp, not '%.64s'",
				words[more]);
	while (old && old[count])
		count++;
	const char **ports = scratch_alloc(p->memory, (count + more + 1) * sizeof *ports);
	for (size_t i = 0; i < count + more; i++)
		ports[i] = i < count ? old[i] : words[i - count];
	p->plan->ports = ports;
	return more ? 0 : dockerfile_fail(p->e, line->number, "EXPOSE has no arguments");
}

/* ---- FROM ---- */

static int read_from(const struct dockerfile_line *line, const struct dockerfile_scope *args,
	char escape, const char **ret, struct dockerfile_error *e)
{
	const char *const *words;
	if (dockerfile_words(line, line->rest, args, escape, &words, e) < 0)
		return -1;
	if (words[0] && strncmp(words[0], "--", 2) == 0)
		return dockerfile_fail(e, line->number, "FROM has no option %.64s", words[0]);
	bool named = words[0] && words[1] && strcasecmp(words[1], "as") == 0 && words[2];
	if (!words[0] || !words[0][0] || (words[1] && (!named || words[3])))
		return dockerfile_fail(
			e, line->number, "FROM wants the name of a template, and nothing more");
	*ret = words[0];
	return 0;
}

static bool is_known(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(instructions); i++)
		if (strcmp(instructions[i].name, name) == 0)
			return true;
	return false;
}

/* Checks, before anything is built, that every line is understood. */
static int dockerfile_check_names(
	const struct dockerfile_line *lines, size_t count, struct dockerfile_error *e)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(lines[i].name, "FROM") == 0)
			return dockerfile_fail(e, lines[i].number,
				"a second FROM: several stages are not supported");
		if (!is_known(lines[i].name))
			return dockerfile_fail(e, lines[i].number,
				"the instruction %.32s is not supported", lines[i].name);
	}
	return 0;
}

int dockerfile_read(const char *text, size_t len, const char *const *args, struct scratch *memory,
	struct dockerfile *ret, struct dockerfile_error *e)
{
	struct dockerfile_line *lines;
	struct dockerfile_scope early = {.memory = memory};
	size_t count, i = 0;
	char escape;
	*ret = (struct dockerfile){.build_args = args};
	if (len > DOCKERFILE_MAX)
		return dockerfile_fail(e, 0, "it is longer than 1 MiB");
	if (dockerfile_split(text, len, memory, &lines, &count, &escape, e) < 0)
		return -1;
	for (; i < count && strcmp(lines[i].name, "ARG") == 0; i++)
		if (read_args(&lines[i], &early, args, NULL, escape, &early, e) < 0)
			return -1;
	if (i == count || strcmp(lines[i].name, "FROM") != 0)
		return dockerfile_fail(
			e, i < count ? lines[i].number : 0, "the first instruction must be FROM");
	if (read_from(&lines[i], &early, escape, &ret->from, e) < 0)
		return -1;
	ret->early_args = early.entries;
	ret->lines = lines + i + 1;
	ret->line_count = count - i - 1;
	ret->escape = escape;
	return dockerfile_check_names(ret->lines, ret->line_count, e);
}

int dockerfile_plan(const struct dockerfile *file, const char *const *env, struct scratch *memory,
	struct dockerfile_plan *ret, struct dockerfile_error *e)
{
	struct planner p = {.file = file,
		.memory = memory,
		.escape = file->escape,
		.env = {.memory = memory},
		.args = {.memory = memory},
		.plan = ret,
		.e = e};
	p.env.behind = &p.args;
	*ret = (struct dockerfile_plan){0};
	ret->steps = scratch_alloc(memory, (file->line_count + 1) * sizeof *ret->steps);
	for (; env && *env; env++)
		if (strchr(*env, '='))
			dockerfile_set(&p.env, *env, strcspn(*env, "="), strchr(*env, '=') + 1);
	for (size_t i = 0; i < file->line_count; i++)
		for (size_t k = 0; k < ARRAY_LEN(instructions); k++)
			if (strcmp(instructions[k].name, file->lines[i].name) == 0 &&
				instructions[k].take(&p, &file->lines[i]) < 0)
				return -1;
	return 0;
}
