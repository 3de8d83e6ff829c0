#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/program.h"
#include "cli/template.h"

/* The server does not wait for ever for the first byte; who writes into our stdin may take longer.
 */
static void wait_for_bytes(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
}

int cli_template_send(struct arguments *args, const struct bunker_import_options *wanted, int fd,
	struct program *program, const char *program_name)
{
	struct bunker *b;
	struct bunker_error e;
	struct bunker_build build;
	struct bunker_import_options options = *wanted;
	options.read = cli_template_read;
	options.arg = &fd;
	wait_for_bytes(fd);
	if (cli_session_open(args, SESSION_STARTS_SERVER, &b) < 0)
		return STATUS_FAILED;
	int r = bunker_template_import(b, &options, &build, &e);
	bunker_close(b);
	/* The program's own error explains an archive that was cut short. */
	bool well = !program || cli_program_end(program, program_name) == 0;
	if (r < 0 && (well || strcmp(e.code, "invalid_archive") != 0))
		cli_session_report(args, &e);
	if (r == 0 && !well)
		bunker_build_finish(&build);
	return r < 0 || !well ? STATUS_FAILED : cli_template_report(args, &build);
}

static int template_import_send_archive(struct arguments *args, const char *format, int fd,
	struct program *program, const char *program_name)
{
	struct bunker_import_options options = {
		.name = args->operands[1],
		.description = args->create.description,
		.format = args->template.format ? args->template.format : format,
		.ref = args->template.ref,
		.digest = args->template.digest,
		.origin = args->operands[0],
	};
	return cli_template_send(args, &options, fd, program, program_name);
}

static int import_file(struct arguments *args, const char *path)
{
	bool is_stdin = strcmp(path, "-") == 0;
	autoclose int fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		cli_report("%s: %s", path, strerror(errno));
		return STATUS_FAILED;
	}
	return template_import_send_archive(args, NULL, fd, NULL, NULL);
}

static int import_directory(struct arguments *args, const char *path)
{
	const char *const argv[] = {
		"tar", "--create", "--numeric-owner", "--directory", path, ".", NULL};
	autobuf layout = {0};
	struct program p;
	buf_append_str(&layout, path);
	buf_append(&layout, "/oci-layout", sizeof "/oci-layout");
	bool is_oci = !layout.failed && access(layout.data, F_OK) == 0;
	if (cli_program_start(&p, argv, -1, true) < 0)
		return STATUS_FAILED;
	return template_import_send_archive(args, is_oci ? "oci" : "root", p.output, &p, "tar");
}

/* ---- registries: skopeo fetches, the server checks ---- */

static const char *const transports[] = {"docker://",
	"docker-daemon:", "containers-storage:", "docker-archive:", "oci-archive:", "oci:", "dir:"};

static bool is_for_skopeo(const char *source)
{
	for (size_t i = 0; i < ARRAY_LEN(transports); i++)
		if (strncmp(source, transports[i], strlen(transports[i])) == 0)
			return true;
	return false;
}

static int template_import_fetch(const struct arguments *args, const char *directory)
{
	const char *argv[16] = {"skopeo", "--override-os", "linux", "copy", "--quiet"};
	size_t n = 5;
	autobuf target = {0};
	if (args->template.creds) {
		argv[n++] = "--src-creds";
		argv[n++] = args->template.creds;
	}
	if (args->template.authfile) {
		argv[n++] = "--src-authfile";
		argv[n++] = args->template.authfile;
	}
	if (args->template.insecure)
		argv[n++] = "--src-tls-verify=false";
	argv[n++] = args->operands[0];
	buf_append_str(&target, "oci:");
	buf_append_str(&target, directory);
	buf_append(&target, ":image", sizeof ":image");
	argv[n++] = target.data;
	return target.failed ? cli_report("out of memory") : cli_program_run(argv, -1);
}

static int import_fetched(struct arguments *args)
{
	char directory[] = "/tmp/bunker-image-XXXXXX";
	if (!mkdtemp(directory)) {
		cli_report("cannot make a temporary directory: %s", strerror(errno));
		return STATUS_FAILED;
	}
	int status = STATUS_FAILED;
	if (template_import_fetch(args, directory) == 0) {
		args->template.format = "oci";
		status = import_directory(args, directory);
	}
	cli_program_run((const char *const[]){"rm", "-rf", directory, NULL}, -1);
	return status;
}

static int run_import(struct arguments *args)
{
	const char *source = args->operands[0];
	struct stat st;
	if (is_for_skopeo(source))
		return import_fetched(args);
	if (stat(source, &st) == 0 && S_ISDIR(st.st_mode))
		return import_directory(args, source);
	return import_file(args, source);
}

#define AT(member) offsetof(struct arguments, member)

static const struct option own_options[] = {
	{0, "description", "TEXT", OPTION_STRING, AT(create.description), "a note for people"},
	{0, "format", "FORMAT", OPTION_STRING, AT(template.format),
		"auto, root, docker or oci, if it is not plain"},
	{0, "ref", "NAME", OPTION_STRING, AT(template.ref), "which image of an archive"},
	{0, "digest", "SHA256", OPTION_STRING, AT(template.digest),
		"refuse any other image than this"},
	{0, "creds", "USER:PASS", OPTION_STRING, AT(template.creds), "for the registry"},
	{0, "authfile", "FILE", OPTION_STRING, AT(template.authfile),
		"the same, as docker login writes it"},
	{0, "insecure", NULL, OPTION_FLAG, AT(template.insecure), "a registry without TLS"},
	{0},
};

static const struct option *const import_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_template_import = {
	.name = "template import",
	.summary = "make one of a directory, an archive or an image",
	.usage = "[options] SOURCE NAME[:TAG]",
	.description =
		"Makes a template of SOURCE, which is\n"
		"  a directory          a root, or an OCI layout\n"
		"  a file, or - (stdin) a tar archive of a root, what `docker save` writes, or an OCI\n"
		"                       layout; plain, or compressed by gzip or zstd\n"
		"  docker://HOST/IMAGE  an image from a registry, fetched by skopeo; its other\n"
		"                       transports work as well, such as docker-daemon:NAME:TAG\n"
		"It is unpacked by the server, in a throwaway sandbox, and its digests are checked.\n"
		"Prints the id of the build.",
	.examples = "  docker save python:3.12-slim | bunker template import - python:3.12\n"
		    "  bunker template import docker://docker.io/library/alpine:3.20 alpine:3.20\n"
		    "  bunker template import ./rootfs mine",
	.options = import_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = 2,
	.run = run_import,
};
