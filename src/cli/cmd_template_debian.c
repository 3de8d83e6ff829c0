#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/template.h"

#define DEFAULT_SUITE "bookworm"
/* Packages of every recipe: host names, certificates, and the tools that agents use first. */
#define USUAL "ca-certificates,curl,git,sudo,procps,less,nano,xz-utils,unzip,jq"

static const struct {
	const char *name, *description, *packages;
} recipes[] = {
	{"python", "Debian with Python 3, pip and venv",
		USUAL
		",python3,python3-pip,python3-venv,python3-dev,python-is-python3,build-essential"},
	{"node", "Debian with Node.js and npm", USUAL ",nodejs,npm"},
	{"data-science", "Debian with Python and pandas, numpy, matplotlib, scipy, scikit-learn",
		USUAL
		",python3,python3-pip,python3-venv,python-is-python3,ipython3,python3-pandas,python3-numpy,"
		"python3-matplotlib,python3-scipy,python3-sklearn"},
};

/* The part of "name:tag" in front of the colon. */
static bool template_debian_is_called(const char *ref, const char *name)
{
	size_t len = strcspn(ref, ":");
	return strlen(name) == len && strncmp(ref, name, len) == 0;
}

static const char *packages_of(struct arguments *args)
{
	const char *recipe = args->template.recipe;
	for (size_t i = 0; i < ARRAY_LEN(recipes); i++) {
		bool wanted = recipe ? strcmp(recipe, recipes[i].name) == 0
				     : !args->template.include &&
					       template_debian_is_called(
						       args->operands[0], recipes[i].name);
		if (!wanted)
			continue;
		if (!args->create.description)
			args->create.description = recipes[i].description;
		return recipes[i].packages;
	}
	if (recipe)
		cli_report("there is no recipe \"%s\"; there are python, node and data-science",
			recipe);
	else if (!args->template.include)
		cli_report("no recipe is called \"%s\": this will be a minimal Debian",
			args->operands[0]);
	return recipe ? NULL : "";
}

/* A recipe is for agents: it has no manuals, and dpkg need not sync. */
static const char *const lean[] = {"--dpkgopt=force-unsafe-io",
	"--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
	"--dpkgopt=path-exclude=/usr/share/doc/*",
	"--dpkgopt=path-include=/usr/share/doc/*/copyright"};

static int run_mmdebstrap(struct arguments *args, const char *packages, int output_fd)
{
	autobuf include = {0}, variant = {0};
	const char *argv[10 + ARRAY_LEN(lean)] = {"mmdebstrap", "--format=tar"};
	size_t n = 2;
	buf_append_str(&variant, "--variant=");
	buf_append_str(&variant, args->template.variant ? args->template.variant : "minbase");
	buf_append_char(&variant, '\0');
	buf_append_str(&include, "--include=");
	buf_append_str(&include, packages);
	if (packages[0] && args->template.include)
		buf_append_char(&include, ',');
	buf_append_str(&include, args->template.include ? args->template.include : "");
	buf_append_char(&include, '\0');
	if (variant.failed || include.failed)
		return cli_report("out of memory");
	if (!isatty(STDERR_FILENO))
		argv[n++] = "--quiet";
	for (size_t i = 0; packages[0] && i < ARRAY_LEN(lean); i++)
		argv[n++] = lean[i];
	argv[n++] = variant.data;
	if (strcmp(include.data, "--include=") != 0)
		argv[n++] = include.data;
	argv[n++] = args->template.suite ? args->template.suite : DEFAULT_SUITE;
	argv[n++] = "-";
	if (args->template.mirror)
		argv[n++] = args->template.mirror;
	return cli_program_run(argv, output_fd);
}

/* mmdebstrap begins its archive at once and goes on with it minutes later: longer than a server
 * waits for the next byte. */
static int open_spool(void)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir && *dir ? dir : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return fd < 0 ? cli_report("cannot make a file in %s: %s", dir && *dir ? dir : "/var/tmp",
				strerror(errno))
		      : fd;
}

static int run_debian(struct arguments *args)
{
	struct bunker *b;
	const char *packages = packages_of(args);
	if (!packages)
		return STATUS_USAGE;
	/* That there is no server is to be said now, not in five minutes. */
	if (cli_session_open(args, SESSION_STARTS_SERVER, &b) < 0)
		return STATUS_FAILED;
	bunker_close(b);
	autoclose int spool = open_spool();
	if (spool < 0 || run_mmdebstrap(args, packages, spool) < 0 || lseek(spool, 0, SEEK_SET) < 0)
		return STATUS_FAILED;
	struct bunker_import_options options = {
		.name = args->operands[0],
		.description = args->create.description,
		.format = "root",
		.origin = "mmdebstrap",
	};
	return cli_template_send(args, &options, spool, NULL, NULL);
}

#define AT(member) offsetof(struct arguments, member)

static const struct option own_options[] = {
	{0, "recipe", "NAME", OPTION_STRING, AT(template.recipe),
		"python, node or data-science; by default what NAME says"},
	{0, "suite", "SUITE", OPTION_STRING, AT(template.suite),
		"Debian's release [" DEFAULT_SUITE "]"},
	{0, "include", "PACKAGES", OPTION_STRING, AT(template.include),
		"packages to install, with commas"},
	{0, "variant", "VARIANT", OPTION_STRING, AT(template.variant),
		"of mmdebstrap: how much there is besides [minbase]"},
	{0, "mirror", "URL", OPTION_STRING, AT(template.mirror), "where packages come from"},
	{0, "description", "TEXT", OPTION_STRING, AT(create.description), "a note for people"},
	{0},
};

static const struct option *const debian_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_template_debian = {
	.name = "template debian",
	.summary = "make one of a clean Debian",
	.usage = "[options] NAME[:TAG]",
	.description =
		"Installs a Debian by mmdebstrap on this machine and imports it. There are recipes for\n"
		"python, node and data-science: a NAME that is one of them is made by it.",
	.examples =
		"  bunker template debian python\n"
		"  bunker template debian data-science\n"
		"  bunker template debian trixie:small --suite trixie --include busybox,openssh-client",
	.options = debian_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.run = run_debian,
};
