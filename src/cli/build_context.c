#include "cli/build_context.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/program.h"
#include "cli/report.h"

#define PATHS_MAX 10000

/* ---- which files ---- */

/* "./a//b/" as "a/b"; NULL: it leads out of the directory. */
static char *build_context_clean_path(struct scratch *memory, const char *path)
{
	char *made = scratch_alloc(memory, strlen(path) + 2), *out = made;
	while (*path) {
		size_t len = strcspn(path, "/");
		if (len == 2 && path[0] == '.' && path[1] == '.')
			return NULL;
		if (len > 0 && !(len == 1 && path[0] == '.')) {
			if (out > made)
				*out++ = '/';
			memcpy(out, path, len);
			out += len;
		}
		path += len + (path[len] == '/');
	}
	if (out == made)
		*out++ = '.';
	*out = '\0';
	return made;
}

static int build_context_add_matches(
	const char *pattern, struct scratch *memory, const char **paths, size_t *count)
{
	glob_t found;
	if (glob(pattern, 0, NULL, &found) != 0)
		return cli_report("nothing here matches %s", pattern);
	for (size_t i = 0; i < found.gl_pathc && *count < PATHS_MAX; i++)
		paths[(*count)++] = build_context_clean_path(memory, found.gl_pathv[i]);
	globfree(&found);
	return 0;
}

int cli_build_context_expand(
	const char *const *sources, struct scratch *memory, const char *const **ret)
{
	const char **paths = scratch_alloc(memory, (PATHS_MAX + 1) * sizeof *paths);
	size_t count = 0;
	struct stat st;
	for (; *sources; sources++) {
		char *path = build_context_clean_path(memory, *sources);
		if (!path)
			return cli_report("%s leads out of the directory", *sources);
		if (strpbrk(path, "*?[")) {
			if (build_context_add_matches(path, memory, paths, &count) < 0)
				return -1;
			continue;
		}
		if (lstat(path, &st) < 0)
			return cli_report("%s: %s", *sources, strerror(errno));
		if (count < PATHS_MAX)
			paths[count++] = path;
	}
	*ret = paths;
	return 0;
}

struct listing {
	const struct ignore *ignore;
	struct buf *names; /* each with its NUL */
	unsigned depth;
};

static int build_context_list_path(struct listing *l, const char *path);

static int build_context_list_directory(struct listing *l, const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, NULL, alphasort), r = 0;
	if (count < 0)
		return cli_report("cannot read %s: %s", path, strerror(errno));
	for (int i = 0; i < count; i++) {
		autobuf child = {0};
		const char *name = entries[i]->d_name;
		if (r == 0 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
			if (strcmp(path, ".") != 0) {
				buf_append_str(&child, path);
				buf_append_char(&child, '/');
			}
			buf_append(&child, name, strlen(name) + 1);
			r = child.failed ? cli_report("out of memory")
					 : build_context_list_path(l, child.data);
		}
		free(entries[i]);
	}
	free(entries);
	return r;
}

/* A directory that is ignored is looked into when something below may be an exception. */
static int build_context_list_path(struct listing *l, const char *path)
{
	struct stat st;
	bool is_top = strcmp(path, ".") == 0;
	bool ignored = !is_top && cli_ignore_matches(l->ignore, path);
	if (lstat(path, &st) < 0)
		return cli_report("%s: %s", path, strerror(errno));
	if (!ignored && !is_top && !S_ISSOCK(st.st_mode) && !S_ISCHR(st.st_mode) &&
		!S_ISBLK(st.st_mode))
		buf_append(l->names, path, strlen(path) + 1);
	if (!S_ISDIR(st.st_mode) || (ignored && !l->ignore->has_exceptions))
		return 0;
	if (++l->depth > 200)
		return cli_report("%s is too deep", path);
	int r = build_context_list_directory(l, path);
	l->depth--;
	return r;
}

/* ---- packing and sending ---- */

/* The program reads the list from a file, because we read what it writes. */
static int build_context_list_file(const char *const *paths, const struct ignore *ignore)
{
	autobuf names = {0};
	struct listing l = {.ignore = ignore, .names = &names};
	for (; *paths; paths++)
		if (build_context_list_path(&l, *paths) < 0)
			return -1;
	if (names.len == 0)
		return cli_report("there is nothing to copy, or .dockerignore leaves it all out");
	int fd = memfd_create("bunker-context", MFD_CLOEXEC);
	if (fd < 0 || names.failed || fd_write_all(fd, names.data, names.len) < 0 ||
		lseek(fd, 0, SEEK_SET) < 0)
		return cli_report("cannot collect the files: %s", strerror(errno));
	return fd;
}

static FILE *build_context_new_archive(void)
{
	FILE *file = tmpfile();
	if (!file)
		cli_report("cannot make a temporary file: %s", strerror(errno));
	return file;
}

/* From fd into the file, and its hash; the file stands at its beginning again. */
static int build_context_copy_hashed(int fd, int to_fd, char hash[BUILD_CONTEXT_HASH_SIZE])
{
	static char data[256 << 10];
	unsigned char digest[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_state state;
	ssize_t n;
	crypto_hash_sha256_init(&state);
	while ((n = read(fd, data, sizeof data)) > 0) {
		crypto_hash_sha256_update(&state, (unsigned char *)data, (size_t)n);
		if (to_fd >= 0 && fd_write_all(to_fd, data, (size_t)n) < 0)
			return cli_report("cannot write a temporary file: %s", strerror(errno));
	}
	if (n < 0)
		return cli_report("cannot read the files: %s", strerror(errno));
	crypto_hash_sha256_final(&state, digest);
	sodium_bin2hex(hash, BUILD_CONTEXT_HASH_SIZE, digest, sizeof digest);
	return lseek(to_fd >= 0 ? to_fd : fd, 0, SEEK_SET) < 0 ? -1 : 0;
}

static ptrdiff_t build_context_read_archive(void *arg, char *data, size_t size)
{
	return read(*(int *)arg, data, size);
}

/* -2: *e says why. */
static int build_context_send_if_missing(
	struct bunker *b, int fd, const char *hash, struct bunker_error *e)
{
	bool exists;
	if (bunker_context_exists(b, hash, &exists, e) < 0)
		return -2;
	if (!exists && bunker_context_put(b, hash, build_context_read_archive, &fd, e) < 0)
		return -2;
	return 0;
}

static int build_context_pack(int list_fd, int to_fd, char hash[BUILD_CONTEXT_HASH_SIZE])
{
	/* 1980-01-02: what cannot be older than ZIP files must work with it. */
	static const char *const argv[] = {"tar", "--create", "--format=gnu", "--no-recursion",
		"--null", "--verbatim-files-from", "--files-from=-", "--owner=0", "--group=0",
		"--numeric-owner", "--mtime=@315619200", NULL};
	struct program p;
	if (cli_program_start(&p, argv, list_fd, true) < 0)
		return -1;
	int r = build_context_copy_hashed(p.output, to_fd, hash);
	return cli_program_end(&p, "tar") < 0 ? -1 : r;
}

int cli_build_context_send(struct bunker *b, const char *const *paths, const struct ignore *ignore,
	char hash[BUILD_CONTEXT_HASH_SIZE], struct bunker_error *e)
{
	autoclose int list = build_context_list_file(paths, ignore);
	FILE *file = list < 0 ? NULL : build_context_new_archive();
	if (!file)
		return -1;
	int fd = fileno(file);
	int r = build_context_pack(list, fd, hash);
	if (r == 0)
		r = build_context_send_if_missing(b, fd, hash, e);
	fclose(file);
	return r;
}

int cli_build_context_send_archive(struct bunker *b, const char *path,
	char hash[BUILD_CONTEXT_HASH_SIZE], struct bunker_error *e)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return cli_report("%s: %s", path, strerror(errno));
	int r = build_context_copy_hashed(fd, -1, hash);
	return r < 0 ? r : build_context_send_if_missing(b, fd, hash, e);
}

bool cli_build_context_is_archive(const char *path)
{
	static const char *const ends[] = {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"};
	size_t len = strlen(path);
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (len > strlen(ends[i]) && strcmp(path + len - strlen(ends[i]), ends[i]) == 0)
			return true;
	return false;
}
