/*
 * bunker cp: files and directories between here and a sandbox, as an archive that is made and taken
 * apart while it flows. Modes, links and times are kept; owners are those who copy.
 *
 * An archive that was cut by a restart of the server is sent anew from its beginning: what was
 * written is written again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/copy.h"
#include "cli/session.h"
#include "cli/target.h"
#include "client/failure.h"

/* A server that goes away each time is no server that restarts. */
#define COPY_TRIES 5

/* One side of a copy. */
struct copy_side {
	char *sandbox; /* NULL: here */
	const char *path;
};

struct job {
	struct arguments *args;
	struct bunker *bunker;
	char sandbox[ID_SIZE];
	const char *local, *remote;
};

/* ---- what goes where ---- */

/* "SANDBOX:PATH"; a path that has a slash before its colon is one of here, as with scp. Owned. */
static int parse_place(const char *text, struct copy_side *ret)
{
	const char *colon = strchr(text, ':'), *slash = strchr(text, '/');
	*ret = (struct copy_side){.path = text};
	if (!colon || colon == text || (slash && slash < colon))
		return 0;
	ret->sandbox = strndup(text, (size_t)(colon - text));
	ret->path = colon[1] ? colon + 1 : ".";
	return ret->sandbox ? 0 : cli_report("out of memory");
}

/* The last part of a path, without slashes at its end; "." and ".." have none. */
static char *last_name(const char *path)
{
	size_t len = strlen(path);
	while (len > 1 && path[len - 1] == '/')
		len--;
	const char *end = path + len, *start = end;
	while (start > path && start[-1] != '/')
		start--;
	if ((end - start == 1 && *start == '.') ||
		(end - start == 2 && memcmp(start, "..", 2) == 0))
		return strdup("");
	return strndup(start, (size_t)(end - start));
}

/* "dir/." means what is in it. */
static bool means_content(const char *path)
{
	size_t len = strlen(path);
	return strcmp(path, ".") == 0 || (len > 1 && path[len - 1] == '.' && path[len - 2] == '/');
}

static char *cp_join(const char *directory, const char *name)
{
	struct buf text = {0};
	buf_append_str(&text, directory);
	if (text.len > 0 && text.data[text.len - 1] != '/')
		buf_append_char(&text, '/');
	buf_append_str(&text, name);
	return buf_take_str(&text);
}

/* The directory that a path is in. */
static char *parent_of(const char *path)
{
	size_t len = strlen(path);
	while (len > 1 && path[len - 1] == '/')
		len--;
	while (len > 0 && path[len - 1] != '/')
		len--;
	return len == 0 ? strdup(".") : strndup(path, len);
}

static bool ends_with_slash(const char *path)
{
	size_t len = strlen(path);
	return len > 0 && path[len - 1] == '/';
}

static int cp_report(const struct job *j, const struct bunker_error *e)
{
	cli_session_report(j->args, e);
	return -1;
}

/* "directory", "file" and so on; "" when there is nothing. */
static int remote_type(const struct job *j, const char *path, char type[32])
{
	struct bunker_entry entry;
	struct bunker_error e;
	type[0] = '\0';
	if (bunker_file_stat(j->bunker, j->sandbox, path, true, &j->args->file.place, &entry, &e) ==
		0) {
		snprintf(type, 32, "%s", entry.type);
		bunker_entry_finish(&entry);
		return 0;
	}
	return strcmp(e.code, "not_found") == 0 ? 0 : cp_report(j, &e);
}

/* ---- up ---- */

struct upload {
	char *directory; /* there, into which it is unpacked */
	char *name;      /* of a file; NULL: a directory's content */
};

/* As cp has it: into a directory that is there, or as what was named. */
static int plan_upload(const struct job *j, bool is_directory, struct upload *ret)
{
	char type[32];
	autofree char *name = last_name(j->local);
	if (!name || remote_type(j, j->remote, type) < 0)
		return -1;
	bool into = strcmp(type, "directory") == 0 || ends_with_slash(j->remote);
	if (is_directory) {
		bool as_itself = !into || means_content(j->local) || name[0] == '\0';
		ret->directory = as_itself ? strdup(j->remote) : cp_join(j->remote, name);
	} else {
		ret->directory = into ? strdup(j->remote) : parent_of(j->remote);
		ret->name = into ? take_ptr(name) : last_name(j->remote);
	}
	return ret->directory ? 0 : cli_report("out of memory");
}

static int send_once(const struct job *j, const struct upload *u, struct bunker_error *e)
{
	struct progress progress = {0};
	uint64_t size;
	struct packing *p = cli_pack_open(j->local, u->name, &progress, &size);
	if (!p)
		return client_fail(e, BUNKER_STOPPED, "said");
	cli_progress_begin(&progress, j->local, size, j->args->quiet);
	int r = bunker_tar_put(
		j->bunker, j->sandbox, u->directory, &j->args->file.place, cli_pack_read, p, e);
	cli_progress_end(&progress);
	cli_pack_close(p);
	return r;
}

static int send_archive(const struct job *j, const struct upload *u)
{
	struct bunker_error e;
	int r = send_once(j, u, &e);
	for (int tries = 1; r < 0 && tries < COPY_TRIES && cli_session_await(j->bunker, &e);
		tries++)
		r = send_once(j, u, &e);
	/* The local read error has been printed. */
	if (r < 0 && strcmp(e.code, BUNKER_STOPPED) == 0)
		return -1;
	return r < 0 ? cp_report(j, &e) : 0;
}

static int cp_upload(const struct job *j)
{
	struct stat st;
	struct upload u = {0};
	if (stat(j->local, &st) < 0)
		return cli_report("%s: %s", j->local, strerror(errno));
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return cli_report("%s is neither a file nor a directory", j->local);
	int r = plan_upload(j, S_ISDIR(st.st_mode), &u);
	if (r == 0)
		r = send_archive(j, &u);
	free(u.directory);
	free(u.name);
	return r;
}

static ptrdiff_t read_stdin(void *arg, char *data, size_t size)
{
	ssize_t n;
	(void)arg;
	do
		n = read(STDIN_FILENO, data, size);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		cli_report("cannot read stdin: %s", strerror(errno));
	return n;
}

static int upload_stdin(const struct job *j)
{
	struct bunker_error e;
	int r = bunker_file_write(
		j->bunker, j->sandbox, j->remote, NULL, &j->args->file.place, read_stdin, NULL, &e);
	return r < 0 ? cp_report(j, &e) : 0;
}

/* ---- down ---- */

static int write_to(void *arg, const void *data, size_t size)
{
	const char *at = data;
	while (size > 0) {
		ssize_t n = write(*(int *)arg, at, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

static int download_stdout(const struct job *j)
{
	struct bunker_error e;
	int out = STDOUT_FILENO;
	if (bunker_file_read(j->bunker, j->sandbox, j->remote, &j->args->file.place, write_to, &out,
		    &e) == 0)
		return 0;
	if (strcmp(e.code, BUNKER_STOPPED) != 0)
		return cp_report(j, &e);
	return errno == EPIPE ? -1 : cli_report("cannot write the output: %s", strerror(errno));
}

/* The exit status of a download whose server went away and came back. */
#define DOWNLOAD_CUT 2

static _Noreturn void cp_download_archive(const struct job *j, int fd, bool may_be_cut)
{
	struct bunker_error e;
	int r = bunker_tar_get(
		j->bunker, j->sandbox, j->remote, &j->args->file.place, write_to, &fd, &e);
	close(fd);
	if (r < 0 && may_be_cut && cli_session_await(j->bunker, &e))
		_exit(DOWNLOAD_CUT);
	/* A transfer that was stopped has been explained. */
	if (r < 0 && strcmp(e.code, BUNKER_STOPPED) != 0)
		cp_report(j, &e);
	_exit(r < 0);
}

/* In a process of its own: here the archive is taken apart while it comes. */
static pid_t start_download(const struct job *j, bool may_be_cut, int *fd)
{
	int p[2];
	if (pipe2(p, O_CLOEXEC) < 0)
		return cli_report("cannot make a pipe: %s", strerror(errno));
	fcntl(p[0], F_SETPIPE_SZ, 1 << 20);
	pid_t pid = fork();
	if (pid == 0) {
		close(p[0]);
		cp_download_archive(j, p[1], may_be_cut);
	}
	close(p[1]);
	if (pid < 0) {
		close(p[0]);
		return cli_report("cannot fork: %s", strerror(errno));
	}
	*fd = p[0];
	return pid;
}

/* 0, -1, or 1: it was cut, and may be tried again. */
static int receive_once(const struct job *j, const char *directory, const char *name, bool last)
{
	struct progress progress;
	int fd = -1, status = 0;
	pid_t pid = start_download(j, !last, &fd);
	if (pid < 0)
		return -1;
	cli_progress_begin(&progress, j->remote, 0, j->args->quiet);
	int r = cli_unpack(fd, directory, name, &progress);
	cli_progress_end(&progress);
	close(fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r != -1 && WIFEXITED(status) && WEXITSTATUS(status) == DOWNLOAD_CUT)
		return 1;
	if (r == UNPACK_INCOMPLETE && status == 0)
		cli_report("what came is not complete, or no archive");
	return r < 0 || status != 0 ? -1 : 0;
}

static int receive_archive(const struct job *j, const char *directory, const char *name)
{
	int r = 1;
	for (int tries = 1; r > 0; tries++)
		r = receive_once(j, directory, name, tries == COPY_TRIES);
	return r;
}

static int download_directory(const struct job *j, bool into)
{
	autofree char *name = last_name(j->remote);
	bool as_itself = !into || means_content(j->remote) || !name || !name[0];
	autofree char *target = as_itself ? strdup(j->local) : cp_join(j->local, name);
	if (!target)
		return cli_report("out of memory");
	if (mkdir(target, 0755) < 0 && errno != EEXIST)
		return cli_report("%s: %s", target, strerror(errno));
	return receive_archive(j, target, NULL);
}

static int cp_download(const struct job *j)
{
	struct stat st;
	char type[32];
	if (remote_type(j, j->remote, type) < 0)
		return -1;
	if (!type[0])
		return cli_report("there is no %s in the sandbox (not_found)", j->remote);
	bool into = stat(j->local, &st) == 0 && S_ISDIR(st.st_mode);
	if (strcmp(type, "directory") == 0)
		return download_directory(j, into);
	if (!into && ends_with_slash(j->local))
		return cli_report("%s: %s", j->local, strerror(ENOENT));
	autofree char *directory = into ? strdup(j->local) : parent_of(j->local);
	autofree char *name = last_name(into ? j->remote : j->local);
	if (!directory || !name)
		return cli_report("out of memory");
	return receive_archive(j, directory, name);
}

/* ---- the command ---- */

static int cp_copy(struct job *j, bool up)
{
	if (strcmp(j->local, "-") == 0)
		return up ? upload_stdin(j) : download_stdout(j);
	return up ? cp_upload(j) : cp_download(j);
}

static int run_places(
	struct arguments *args, const struct copy_side *from, const struct copy_side *to)
{
	bool up = to->sandbox != NULL;
	struct job j = {.args = args,
		.local = up ? from->path : to->path,
		.remote = up ? to->path : from->path};
	struct bunker_error e;
	if (!from->sandbox == !to->sandbox) {
		cli_report(
			"one of the two must be of the form SANDBOX:PATH, and the other a path here");
		return STATUS_USAGE;
	}
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &j.bunker) < 0)
		return STATUS_FAILED;
	int r = cli_target_find(j.bunker, up ? to->sandbox : from->sandbox, j.sandbox, &e);
	if (r < 0)
		cp_report(&j, &e);
	else
		r = cp_copy(&j, up);
	bunker_close(j.bunker);
	return r < 0 ? STATUS_FAILED : 0;
}

static int run_cp(struct arguments *args)
{
	struct copy_side from = {0}, to = {0};
	int status = STATUS_FAILED;
	if (parse_place(args->operands[0], &from) == 0 && parse_place(args->operands[1], &to) == 0)
		status = run_places(args, &from, &to);
	free(from.sandbox);
	free(to.sandbox);
	return status;
}

static const struct option own_options[] = {
	{'u', "user", "NAME", OPTION_STRING, offsetof(struct arguments, file.place.user),
		"with the rights of this user of the sandbox"},
	{'q', "quiet", NULL, OPTION_FLAG, offsetof(struct arguments, quiet), "no progress bar"},
	{0},
};

static const struct option *const cp_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_cp = {
	.name = "cp",
	.summary = "copy files and directories into or out of a sandbox",
	.usage = "[options] SOURCE DESTINATION",
	.description =
		"One of the two is SANDBOX:PATH, the other a path here; - is stdin or stdout. A file or\n"
		"directory goes into a directory that is there, and otherwise gets the name that is given;\n"
		"DIR/. is what is in it. Modes, links and times are kept; what is copied belongs to who\n"
		"copies it. Relative paths of a sandbox begin in its working directory. A copy that a\n"
		"restart of the server cut begins again, but for one from stdin.",
	.examples = "  bunker cp notes.txt work:\n"
		    "  bunker cp -u root src work:/srv/app\n"
		    "  bunker cp work:results ./results\n"
		    "  bunker cp work:/etc/os-release - | head -2\n"
		    "  pg_dump | bunker cp - work:dump.sql",
	.options = cp_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = 2,
	.run = run_cp,
};
