/*
 * Users of the sandbox. The two files belong to whoever is root inside, so they are read with
 * bounds, only when they are regular files, and never by a call that could wait.
 */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define USER_FILE_MAX (256 * 1024)

/*
 * Reads into a static buffer, one file at a time: an allocation of this size would be mapped for
 * each exec.
 */
static char *read_database(const char *path)
{
	static char text[USER_FILE_MAX + 1];
	size_t len = 0;
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > USER_FILE_MAX)
		return NULL;
	while (len < USER_FILE_MAX) {
		ssize_t n = read(fd, text + len, USER_FILE_MAX - len);
		if (n < 0)
			return NULL;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	return text;
}

/* Splits "a:b:c" in place; returns how many fields there were, at most max. */
static int split_fields(char *line, char **fields, int max)
{
	int n = 0;
	while (n < max) {
		fields[n++] = line;
		char *colon = strchr(line, ':');
		if (!colon)
			break;
		*colon = '\0';
		line = colon + 1;
	}
	return n;
}

static bool user_parse_number(const char *text, unsigned *ret)
{
	char *end;
	errno = 0;
	unsigned long value = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || value > 65535)
		return false;
	*ret = (unsigned)value;
	return true;
}

/* passwd: name:password:uid:gid:gecos:home:shell */
static bool match_passwd(char *line, const char *name, bool by_uid, unsigned uid, struct user *u)
{
	char *f[7];
	unsigned line_uid, line_gid;
	if (split_fields(line, f, 7) < 7 || !user_parse_number(f[2], &line_uid) ||
		!user_parse_number(f[3], &line_gid))
		return false;
	if (by_uid ? line_uid != uid : strcmp(f[0], name) != 0)
		return false;
	u->uid = line_uid;
	u->gid = line_gid;
	snprintf(u->name, sizeof u->name, "%s", f[0]);
	snprintf(u->home, sizeof u->home, "%s", f[5][0] ? f[5] : "/");
	snprintf(u->shell, sizeof u->shell, "%s", f[6][0] ? f[6] : "/bin/sh");
	return true;
}

static bool list_has(char *members, const char *name)
{
	char *save = NULL;
	for (char *m = strtok_r(members, ",", &save); m; m = strtok_r(NULL, ",", &save))
		if (strcmp(m, name) == 0)
			return true;
	return false;
}

/* group: name:password:gid:member,member */
static void add_groups(struct user *u)
{
	u->groups[u->group_count++] = u->gid;
	char *save = NULL, *text = read_database("/etc/group");
	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
		line = strtok_r(NULL, "\n", &save)) {
		char *f[4];
		unsigned gid;
		if (split_fields(line, f, 4) == 4 && user_parse_number(f[2], &gid) &&
			gid != u->gid && u->group_count < USER_MAX_GROUPS &&
			list_has(f[3], u->name))
			u->groups[u->group_count++] = gid;
	}
}

static int look_up(const char *name, struct user *ret)
{
	unsigned uid = 0;
	bool by_uid = user_parse_number(name, &uid);
	char *save = NULL, *text = read_database("/etc/passwd");
	*ret = (struct user){0};
	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
		line = strtok_r(NULL, "\n", &save)) {
		if (match_passwd(line, name, by_uid, uid, ret)) {
			add_groups(ret);
			return 0;
		}
	}
	/* A number needs no entry, and root exists even if the file is broken. */
	if (!by_uid && strcmp(name, "root") != 0)
		return -ENOENT;
	*ret = (struct user){.uid = uid, .gid = uid, .group_count = 1, .groups = {uid}};
	snprintf(ret->name, sizeof ret->name, "%s", name);
	snprintf(ret->home, sizeof ret->home, "/");
	snprintf(ret->shell, sizeof ret->shell, "/bin/sh");
	return 0;
}

/* ---- the last answer ---- */

static const char *const databases[] = {"/etc/passwd", "/etc/group"};

struct look {
	char name[64];
	struct stat files[ARRAY_LEN(databases)];
	struct user user;
};

/* A file that changed as we read it could have the same time afterwards: only older ones count. */
static bool is_settled(const struct stat *st)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return st->st_ctim.tv_sec + 1 < now.tv_sec;
}

static bool stat_databases(struct stat files[ARRAY_LEN(databases)])
{
	for (size_t i = 0; i < ARRAY_LEN(databases); i++)
		if (lstat(databases[i], &files[i]) < 0 || !S_ISREG(files[i].st_mode) ||
			!is_settled(&files[i]))
			return false;
	return true;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int user_lookup(const char *name, struct user *ret)
{
	static struct look last;
	struct look now;
	bool settled = strlen(name) < sizeof now.name && stat_databases(now.files);
	if (settled && strcmp(name, last.name) == 0 &&
		is_same_file(&now.files[0], &last.files[0]) &&
		is_same_file(&now.files[1], &last.files[1])) {
		*ret = last.user;
		return 0;
	}
	int r = look_up(name, ret);
	if (r < 0 || !settled)
		return r;
	memcpy(now.name, name, strlen(name) + 1);
	now.user = *ret;
	last = now;
	return 0;
}
