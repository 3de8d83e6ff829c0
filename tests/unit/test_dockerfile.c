/* Dockerfiles: what is understood, and what is refused with its line. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "image/dockerfile.h"

struct world {
	struct scratch memory;
	struct dockerfile file;
	struct dockerfile_plan plan;
	struct dockerfile_error e;
};

static int read_with(
	struct world *w, const char *text, const char *const *args, const char *const *env)
{
	memset(w, 0, sizeof *w);
	/* On the heap and without a NUL, so that a sanitizer sees who reads too far. */
	size_t len = strlen(text);
	char *copy = malloc(len + 1);
	memcpy(copy, text, len);
	char *exact = realloc(copy, len ? len : 1);
	int r = dockerfile_read(exact, len, args, &w->memory, &w->file, &w->e);
	if (r == 0)
		r = dockerfile_plan(&w->file, env, &w->memory, &w->plan, &w->e);
	free(exact);
	return r;
}

static int read_text(struct world *w, const char *text)
{
	return read_with(w, text, NULL, NULL);
}

static void finish(struct world *w)
{
	scratch_finish(&w->memory);
}

static void reads_a_usual_file(void)
{
	struct world w;
	CHECK_INT(read_text(&w, "# a comment\n"
				"FROM python:3.12\n"
				"\n"
				"WORKDIR /app\n"
				"COPY . .\n"
				"RUN pip install -r requirements.txt && \\\n"
				"    # between the lines\n"
				"    rm -rf /root/.cache\n"
				"ENV A=1 B=\"two words\"\n"
				"USER user\n"
				"EXPOSE 8080 53/udp\n"
				"entrypoint [\"python\", \"-m\"]\n"
				"CMD [\"app\"]\n"),
		0);
	CHECK_STR(w.file.from, "python:3.12");
	CHECK_INT((long long)w.plan.step_count, 5);
	CHECK_STR(w.plan.steps[0].path, "/app");
	CHECK_STR(w.plan.steps[1].sources[0], ".");
	CHECK_STR(w.plan.steps[1].path, ".");
	CHECK_STR(w.plan.steps[2].argv[0], "/bin/sh");
	CHECK_STR(w.plan.steps[2].argv[2],
		"pip install -r requirements.txt &&     rm -rf /root/.cache");
	CHECK_INT(w.plan.steps[2].line, 6);
	CHECK_STR(w.plan.steps[3].env[1], "B=two words");
	CHECK_STR(w.plan.steps[4].user, "user");
	CHECK_STR(w.plan.ports[1], "53/udp");
	CHECK_STR(w.plan.entrypoint[1], "-m");
	CHECK_STR(w.plan.command[0], "app");
	CHECK(w.plan.command[1] == NULL);
	finish(&w);
}

static void tells_the_exec_form_from_a_test(void)
{
	struct world w;
	CHECK_INT(read_text(&w, "FROM x\nRUN [\"a b\",\"\\u00e9\\n\"]\nRUN [ -f x ] || true\n"
				"RUN [\"open\nCMD echo $HOME"),
		0);
	CHECK_STR(w.plan.steps[0].argv[0], "a b");
	CHECK_STR(w.plan.steps[0].argv[1], "\xc3\xa9\n");
	CHECK_STR(w.plan.steps[1].argv[2], "[ -f x ] || true");
	CHECK_STR(w.plan.steps[2].argv[2], "[\"open");
	CHECK_STR(w.plan.command[2], "echo $HOME");
	finish(&w);
}

static void puts_in_variables_where_docker_does(void)
{
	static const char *const env[] = {"PATH=/bin", "EMPTY=", NULL};
	struct world w;
	CHECK_INT(
		read_with(&w,
			"FROM x\nENV PATH=/x:$PATH\nENV D=${NONE:-d}${PATH:+p}${EMPTY:-e} Q='$PATH' R=\\$PATH\n"
			"WORKDIR /w/${D}\nCOPY $D \"/a b/\"\nRUN echo $PATH\nENV OLD style $D\n",
			NULL, env),
		0);
	CHECK_STR(w.plan.steps[0].env[0], "PATH=/x:/bin");
	CHECK_STR(w.plan.steps[1].env[0], "D=dpe");
	CHECK_STR(w.plan.steps[1].env[1], "Q=$PATH");
	CHECK_STR(w.plan.steps[1].env[2], "R=$PATH");
	CHECK_STR(w.plan.steps[2].path, "/w/dpe");
	CHECK_STR(w.plan.steps[3].sources[0], "dpe");
	CHECK_STR(w.plan.steps[3].path, "/a b/");
	CHECK_STR(w.plan.steps[4].argv[2], "echo $PATH");
	CHECK_STR(w.plan.steps[5].env[0], "OLD=style dpe");
	finish(&w);
}

static void an_env_of_one_line_sees_the_values_from_before(void)
{
	struct world w;
	CHECK_INT(read_text(&w, "FROM x\nENV A=1\nENV A=2 B=$A\n"), 0);
	CHECK_STR(w.plan.steps[1].env[1], "B=1");
	finish(&w);
}

static void build_arguments_count_before_and_behind_from(void)
{
	static const char *const args[] = {"V=9", "UNUSED=1", NULL};
	struct world w;
	CHECK_INT(
		read_with(&w,
			"ARG V=1\nARG W=w\nFROM x:$V\nRUN a\nARG V\nARG W=own\nARG NOT\nRUN b\nENV V=env\nRUN c $V\nWORKDIR /$V/$W\n",
			args, NULL),
		0);
	CHECK_STR(w.file.from, "x:9");
	CHECK(w.plan.steps[0].env[0] == NULL);
	CHECK_STR(w.plan.steps[1].env[0], "V=9");
	CHECK_STR(w.plan.steps[1].env[1], "W=own");
	CHECK(w.plan.steps[1].env[2] == NULL);
	CHECK_STR(w.plan.steps[3].env[0], "W=own"); /* ENV has taken V's place */
	CHECK(w.plan.steps[3].env[1] == NULL);
	CHECK_STR(w.plan.steps[4].path, "/env/own");
	finish(&w);
}

static void copies_with_owner_and_mode(void)
{
	struct world w;
	CHECK_INT(read_text(&w, "FROM x\nCOPY --chown=1000:1000 --chmod=0755 a b /d/\n"
				"COPY [\"a b\", \"c d\"]\nADD x.tar.gz /x\n"),
		0);
	CHECK_STR(w.plan.steps[0].owner, "1000:1000");
	CHECK_INT(w.plan.steps[0].mode, 0755);
	CHECK_STR(w.plan.steps[0].sources[1], "b");
	CHECK(w.plan.steps[0].sources[2] == NULL);
	CHECK_STR(w.plan.steps[1].sources[0], "a b");
	CHECK_STR(w.plan.steps[1].path, "c d");
	CHECK_INT(w.plan.steps[1].mode, -1);
	CHECK(w.plan.steps[2].unpack);
	finish(&w);
}

static void follows_the_escape_directive(void)
{
	struct world w;
	CHECK_INT(
		read_text(&w,
			"# syntax=docker/dockerfile:1\r\n# escape=`\r\nFROM x\r\nRUN a `\r\n b\\\r\n"),
		0);
	CHECK_STR(w.plan.steps[0].argv[2], "a  b\\");
	finish(&w);
}

static void refuses_with_the_line(void)
{
	static const struct {
		const char *text;
		int line;
		const char *part;
	} bad[] = {
		{"", 0, "FROM"},
		{"RUN x\n", 1, "FROM"},
		{"FROM\n", 1, "FROM"},
		{"FROM a b\n", 1, "FROM"},
		{"FROM --platform=linux/arm64 a\n", 1, "--platform"},
		{"FROM a AS one\nFROM b\n", 2, "second FROM"},
		{"FROM a\n\nRUN x \\\n  y\nLABEL a=b\n", 5, "LABEL"},
		{"FROM a\nVOLUME /x\n", 2, "VOLUME"},
		{"FROM a\nHEALTHCHECK NONE\n", 2, "HEALTHCHECK"},
		{"FROM a\nSHELL [\"x\"]\n", 2, "SHELL"},
		{"FROM a\nONBUILD RUN x\n", 2, "ONBUILD"},
		{"FROM a\nNONSENSE\n", 2, "NONSENSE"},
		{"FROM a\nRUN\n", 2, "no arguments"},
		{"FROM a\nRUN []\n", 2, "no arguments"},
		{"FROM a\nRUN --mount=type=cache x\n", 2, "--mount"},
		{"FROM a\nRUN cat <<EOF\nx\nEOF\n", 3, "X"},
		{"FROM a\nRUN cat <<EOF > y\n", 2, "here-documents"},
		{"FROM a\nCOPY x\n", 2, "destination"},
		{"FROM a\nCOPY a b c\n", 2, "end with '/'"},
		{"FROM a\nCOPY --from=x a b\n", 2, "--from"},
		{"FROM a\nCOPY --link a b\n", 2, "--link"},
		{"FROM a\nCOPY --chmod=u+x a b\n", 2, "octal"},
		{"FROM a\nADD https://x/y /z\n", 2, "local"},
		{"FROM a\nADD git@github.com:a/b /z\n", 2, "local"},
		{"FROM a\nENV A\n", 2, "NAME=VALUE"},
		{"FROM a\nENV 1=2\n", 2, "NAME=VALUE"},
		{"FROM a\nENV A=1 B\n", 2, "NAME=VALUE"},
		{"FROM a\nENV A=\"x\n", 2, "quote"},
		{"FROM a\nWORKDIR ${A%b}\n", 2, "understood"},
		{"FROM a\nWORKDIR ${A\n", 2, "understood"},
		{"FROM a\nWORKDIR $NONE\n", 2, "no argument"},
		{"FROM a\nUSER\n", 2, "no argument"},
		{"FROM a\nARG\n", 2, "no arguments"},
		{"FROM a\nARG 1x\n", 2, "ARG"},
		{"FROM a\nEXPOSE http\n", 2, "EXPOSE"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct world w;
		int r = read_text(&w, bad[i].text);
		bool right = r < 0 && w.e.line == bad[i].line &&
			     (strstr(w.e.message, bad[i].part) != NULL);
		if (!right)
			check_fail(__FILE__, __LINE__, bad[i].text, w.e.message, bad[i].part);
		finish(&w);
	}
}

static const struct check_test tests[] = {
	TEST(reads_a_usual_file),
	TEST(tells_the_exec_form_from_a_test),
	TEST(puts_in_variables_where_docker_does),
	TEST(an_env_of_one_line_sees_the_values_from_before),
	TEST(build_arguments_count_before_and_behind_from),
	TEST(copies_with_owner_and_mode),
	TEST(follows_the_escape_directive),
	TEST(refuses_with_the_line),
};

int main(void)
{
	return RUN_TESTS(tests);
}
