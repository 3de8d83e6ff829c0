/*
 * The two databases belong to whoever is root inside: they are read with bounds, only when they are
 * regular files, and kept until they change.
 */
#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define DATABASE_MAX (256u * 1024)
#define NAME_MAX_LEN 63

struct database {
	const char *path;
	struct buf text;
	struct stat seen;
	unsigned last_id; /* the last answer, for the many files of one owner */
	char last_name[NAME_MAX_LEN + 1];
	bool has_last;
};

static struct database users = {.path = "/etc/passwd"}, groups = {.path = "/etc/group"};

static bool is_unchanged(const struct database *d, const struct stat *st)
{
	return d->text.len > 0 && d->seen.st_ino == st->st_ino && d->seen.st_dev == st->st_dev &&
	       d->seen.st_size == st->st_size && d->seen.st_mtim.tv_sec == st->st_mtim.tv_sec &&
	       d->seen.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
}

static void names_refresh(struct database *d)
{
	struct stat st;
	if (stat(d->path, &st) == 0 && is_unchanged(d, &st))
		return;
	buf_finish(&d->text);
	d->has_last = false;
	autoclose int fd = open(d->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > DATABASE_MAX)
		return;
	if (fd_read_all(fd, &d->text, DATABASE_MAX) < 0)
		d->text.len = 0;
	/* Terminates the last line. */
	buf_append_char(&d->text, '\0');
	d->text.len -= d->text.len > 0;
	d->seen = st;
}

static bool parse_id(const char *text, size_t len, unsigned *ret)
{
	unsigned value = 0;
	if (len == 0 || len > 5)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (unsigned)(text[i] - '0');
	}
	*ret = value;
	return value <= 65535;
}

/* "name:password:id:…": the line's name and id, and behind the id what follows. */
static bool names_parse_line(
	const char *line, size_t len, size_t *name_len, unsigned *id, const char **rest)
{
	const char *end = line + len, *colon = memchr(line, ':', len);
	if (!colon)
		return false;
	*name_len = (size_t)(colon - line);
	const char *second = memchr(colon + 1, ':', (size_t)(end - colon - 1));
	if (!second)
		return false;
	const char *third = memchr(second + 1, ':', (size_t)(end - second - 1));
	const char *id_end = third ? third : end;
	*rest = third ? third + 1 : end;
	return parse_id(second + 1, (size_t)(id_end - second - 1), id);
}

/* Calls with each line until it is the wanted one: by name when there is one, else by id. */
static bool find_line(struct database *d, const char *name, size_t name_len, unsigned *id,
	const char **found_name, size_t *found_len, const char **rest)
{
	const char *at = d->text.data, *end = at ? at + d->text.len : NULL;
	while (at && at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((newline ? newline : end) - at), this_len;
		unsigned this_id;
		if (names_parse_line(at, len, &this_len, &this_id, rest) &&
			(name ? this_len == name_len && memcmp(at, name, name_len) == 0
			      : this_id == *id)) {
			*id = this_id;
			*found_name = at;
			*found_len = this_len;
			return true;
		}
		at = newline ? newline + 1 : end;
	}
	return false;
}

static const char *names_name_of(struct database *d, unsigned id)
{
	const char *name, *rest;
	size_t len = 0;
	names_refresh(d);
	if (d->has_last && d->last_id == id)
		return d->last_name;
	if (!find_line(d, NULL, 0, &id, &name, &len, &rest) || len > NAME_MAX_LEN)
		len = 0;
	if (len > 0)
		memcpy(d->last_name, name, len);
	d->last_name[len] = '\0';
	d->last_id = id;
	d->has_last = true;
	return d->last_name;
}

const char *name_of_user(uid_t uid)
{
	return names_name_of(&users, uid);
}

const char *name_of_group(gid_t gid)
{
	return names_name_of(&groups, gid);
}

static int parse_user(const char *text, size_t len, uid_t *uid, gid_t *gid)
{
	const char *name, *rest;
	size_t name_len;
	unsigned id = 0;
	if (parse_id(text, len, uid))
		return 0;
	names_refresh(&users);
	if (!find_line(&users, text, len, &id, &name, &name_len, &rest))
		return -EINVAL;
	*uid = id;
	/* A user's own group comes with the name, as with chown(1)'s "user:". */
	unsigned group;
	if (parse_id(rest, strcspn(rest, ":\n"), &group))
		*gid = group;
	return 0;
}

/* Behind the id there are the group, the comment, the home and the shell. */
int home_of_user(const char *name, char home[PATH_MAX])
{
	const char *found, *rest;
	size_t len;
	unsigned id = 0;
	bool by_number = parse_id(name, strlen(name), &id);
	names_refresh(&users);
	if (!find_line(&users, by_number ? NULL : name, strlen(name), &id, &found, &len, &rest))
		return -ESRCH;
	for (int i = 0; i < 2; i++) {
		rest += strcspn(rest, ":\n");
		if (*rest != ':')
			return -ESRCH;
		rest++;
	}
	len = strcspn(rest, ":\n");
	if (len == 0 || len >= PATH_MAX || rest[0] != '/')
		return -ESRCH;
	memcpy(home, rest, len);
	home[len] = '\0';
	return 0;
}

static int parse_group(const char *text, size_t len, gid_t *gid)
{
	const char *name, *rest;
	size_t name_len;
	unsigned id = 0;
	if (parse_id(text, len, gid))
		return 0;
	names_refresh(&groups);
	if (!find_line(&groups, text, len, &id, &name, &name_len, &rest))
		return -EINVAL;
	*gid = id;
	return 0;
}

int owner_parse(const char *text, size_t len, uid_t *uid, gid_t *gid)
{
	const char *colon = len ? memchr(text, ':', len) : NULL;
	size_t user_len = colon ? (size_t)(colon - text) : len;
	*uid = (uid_t)-1;
	*gid = (gid_t)-1;
	if (user_len > 0 && parse_user(text, user_len, uid, gid) < 0)
		return -EINVAL;
	return colon ? parse_group(colon + 1, len - user_len - 1, gid) : 0;
}
