#include "base/trust_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/fd.h"

#define SECTION_BEGIN "# bunker: certificates that this server adds begin here\n"
#define SECTION_END   "# bunker: and end here\n"
#define HASH_DIGITS   8
#define BUNDLE_MAX    (8u << 20)
#define LINKS_MAX     64 /* certificates of one hash */
#define OWN_PREFIX    "bunker-"

/* The first is the one that variables name; it is made if it is missing. */
static const char *const bundles[] = {"etc/ssl/certs/ca-certificates.crt",
	"etc/pki/tls/certs/ca-bundle.crt", "etc/ssl/cert.pem", "etc/ssl/ca-bundle.pem"};
#define BUNDLE_COUNT (sizeof bundles / sizeof bundles[0])

/* Debian's and Alpine's update-ca-certificates run what is there when they have made the bundle. */
static const char hook[] = "#!/bin/sh\n"
			   "cat " TRUST_STORE_FILE " >>" TRUST_STORE_BUNDLE "\n";

void trust_store_append(struct buf *entries, unsigned long hash, const char *pem, size_t len)
{
	buf_printf(entries, "# %08lx\n", hash & 0xffffffff);
	buf_append(entries, pem, len);
}

void trust_store_frame(struct buf *section, const struct buf *entries)
{
	if (entries->len == 0)
		return;
	buf_append_str(section, SECTION_BEGIN);
	buf_append(section, entries->data, entries->len);
	buf_append_str(section, SECTION_END);
}

/* ---- one file ---- */

/* Seen as it was or complete. */
static int trust_store_replace(
	int dir_fd, const char *name, const void *data, size_t len, mode_t mode)
{
	char aside[NAME_MAX + 1];
	snprintf(aside, sizeof aside, ".%.200s.bunker", name);
	if (unlinkat(dir_fd, aside, 0) < 0 && errno != ENOENT)
		return -errno;
	autoclose int fd =
		openat(dir_fd, aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : fd_write_all(fd, data, len);
	if (r == 0 && (fchmod(fd, mode) < 0 || renameat(dir_fd, aside, dir_fd, name) < 0))
		r = -errno;
	if (r < 0)
		unlinkat(dir_fd, aside, 0);
	return r;
}

/* The same below the tree's root, in a directory that is made if it is missing. */
static int trust_store_keep(
	int root_fd, const char *dir, const char *name, const char *data, size_t len, mode_t mode)
{
	autoclose int dir_fd = beneath_make(root_fd, dir, BENEATH_IS_ROOT);
	return dir_fd < 0 ? dir_fd : trust_store_replace(dir_fd, name, data, len, mode);
}

/* 0, also when it was not there. */
static int trust_store_discard(int root_fd, const char *dir, const char *name)
{
	autoclose int dir_fd = beneath_open(root_fd, dir, O_PATH | O_DIRECTORY, BENEATH_IS_ROOT);
	if (dir_fd < 0)
		return dir_fd == -ENOENT ? 0 : dir_fd;
	return unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* 1 with its content; 0: there is no such file. */
static int trust_store_read(int root_fd, const char *path, struct buf *text, int *ret_fd)
{
	autoclose int fd =
		beneath_open(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, BENEATH_IS_ROOT);
	struct stat st;
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	int r = S_ISREG(st.st_mode) ? fd_read_all(fd, text, BUNDLE_MAX) : -ENXIO;
	if (r < 0)
		return r;
	if (ret_fd)
		*ret_fd = take_fd(&fd);
	return 1;
}

/* ---- bundles ---- */

static bool text_holds(const struct buf *text, const char *part, size_t len)
{
	return text->len >= len && text->data && memmem(text->data, text->len, part, len);
}

/* Cuts the first section out of a text; false: it has none. */
static bool text_cut_section(struct buf *text)
{
	char *begin = text->len
			      ? memmem(text->data, text->len, SECTION_BEGIN, strlen(SECTION_BEGIN))
			      : NULL;
	if (!begin)
		return false;
	size_t left = (size_t)(text->data + text->len - begin);
	char *end = memmem(begin, left, SECTION_END, strlen(SECTION_END));
	size_t cut = end ? (size_t)(end - begin) + strlen(SECTION_END) : left;
	memmove(begin, begin + cut, left - cut);
	text->len -= cut;
	return true;
}

/* A link may lead to the file: it is replaced where it is, so that the link stays. */
static int bundle_replace(int fd, const struct buf *text)
{
	char link[32], path[PATH_MAX];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, path, sizeof path - 1);
	if (len < 0)
		return -errno;
	path[len] = '\0';
	char *slash = strrchr(path, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	autoclose int dir_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -errno
			  : trust_store_replace(dir_fd, slash + 1, text->data, text->len, 0644);
}

/* 1: it is there, and holds the section now. */
static int bundle_put(int root_fd, const char *path, const char *section, size_t len)
{
	autobuf text = {0};
	autoclose int fd = -1;
	int r = trust_store_read(root_fd, path, &text, &fd);
	if (r <= 0)
		return r;
	if (len > 0 && text_holds(&text, section, len))
		return 1;
	bool cut = false;
	while (text_cut_section(&text))
		cut = true;
	if (len == 0 && !cut)
		return 1;
	if (len > 0 && text.len > 0 && text.data[text.len - 1] != '\n')
		buf_append_char(&text, '\n');
	buf_append(&text, section, len);
	r = text.failed ? -ENOMEM : bundle_replace(fd, &text);
	return r < 0 ? r : 1;
}

static int bundles_put(int root_fd, const char *section, size_t len)
{
	const char *found = NULL;
	bool has_first = false;
	for (size_t i = 0; i < BUNDLE_COUNT; i++) {
		int r = bundle_put(root_fd, bundles[i], section, len);
		if (r < 0)
			return r;
		has_first |= r > 0 && i == 0;
		if (r > 0 && !found)
			found = bundles[i];
	}
	if (has_first || len == 0)
		return 0;
	if (!found)
		return trust_store_keep(
			root_fd, "etc/ssl/certs", "ca-certificates.crt", section, len, 0644);
	char target[64];
	snprintf(target, sizeof target, "/%s", found);
	autoclose int dir_fd = beneath_make(root_fd, "etc/ssl/certs", BENEATH_IS_ROOT);
	if (dir_fd < 0)
		return dir_fd;
	return symlinkat(target, dir_fd, "ca-certificates.crt") < 0 && errno != EEXIST ? -errno : 0;
}

/* ---- the directory of hashes ---- */

/* Whether an entry is ours: a certificate, or a link to one. */
static bool entry_is_own(int dir_fd, const char *name)
{
	char target[sizeof OWN_PREFIX];
	if (strncmp(name, OWN_PREFIX, strlen(OWN_PREFIX)) == 0)
		return true;
	ssize_t len = readlinkat(dir_fd, name, target, sizeof target);
	return len >= (ssize_t)strlen(OWN_PREFIX) &&
	       memcmp(target, OWN_PREFIX, strlen(OWN_PREFIX)) == 0;
}

static int hashes_clear(int dir_fd)
{
	autodir DIR *dir = fd_open_dir_at(dir_fd, ".");
	const struct dirent *entry;
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)) != NULL)
		if (entry_is_own(dir_fd, entry->d_name) && unlinkat(dir_fd, entry->d_name, 0) < 0 &&
			errno != ENOENT && errno != EISDIR)
			return -errno;
	return 0;
}

/* Links HASH.N, for the first free N, to the certificate. */
static int hash_link(int dir_fd, const char *hash, const char *target)
{
	for (int i = 0; i < LINKS_MAX; i++) {
		char name[HASH_DIGITS + 8];
		snprintf(name, sizeof name, "%s.%d", hash, i);
		if (symlinkat(target, dir_fd, name) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EMLINK;
}

static int hash_add(int dir_fd, unsigned number, const char *hash, const char *pem, size_t len)
{
	char name[64];
	snprintf(name, sizeof name, OWN_PREFIX "%s-%u.pem", hash, number);
	int r = trust_store_replace(dir_fd, name, pem, len, 0644);
	return r < 0 ? r : hash_link(dir_fd, hash, name);
}

/* Each entry of a section is "# HASH\n" and a certificate up to the next line with a mark. */
static int hashes_add(int dir_fd, const char *section, size_t len)
{
	const char *at = section + strlen(SECTION_BEGIN);
	const char *end = section + len - strlen(SECTION_END);
	for (unsigned number = 0; end - at > HASH_DIGITS + 3; number++) {
		char hash[HASH_DIGITS + 1];
		snprintf(hash, sizeof hash, "%.*s", HASH_DIGITS, at + 2);
		const char *pem = at + HASH_DIGITS + 3;
		at = memchr(pem, '#', (size_t)(end - pem));
		at = at ? at : end;
		if (strspn(hash, "0123456789abcdef") != HASH_DIGITS)
			return -EINVAL;
		int r = hash_add(dir_fd, number, hash, pem, (size_t)(at - pem));
		if (r < 0)
			return r;
	}
	return 0;
}

static int hashes_put(int root_fd, const char *section, size_t len)
{
	autoclose int dir_fd = len > 0 ? beneath_make(root_fd, "etc/ssl/certs", BENEATH_IS_ROOT)
				       : beneath_open(root_fd, "etc/ssl/certs",
						 O_PATH | O_DIRECTORY, BENEATH_IS_ROOT);
	if (dir_fd < 0)
		return len == 0 && dir_fd == -ENOENT ? 0 : dir_fd;
	int r = hashes_clear(dir_fd);
	return r < 0 || len == 0 ? r : hashes_add(dir_fd, section, len);
}

/* ---- all of it ---- */

/* Whether the last put of this section was completed, and no bundle was made anew since. */
static bool trust_store_is_there(int root_fd, const char *section, size_t len)
{
	autobuf own = {0};
	if (trust_store_read(root_fd, &TRUST_STORE_FILE[1], &own, NULL) <= 0)
		return len == 0;
	if (own.len != len || (own.data && memcmp(own.data, section, len) != 0))
		return false;
	for (size_t i = 0; i < BUNDLE_COUNT; i++) {
		autobuf text = {0};
		int r = trust_store_read(root_fd, bundles[i], &text, NULL);
		if (r < 0 || (r == 0 && i == 0) || (r > 0 && !text_holds(&text, section, len)))
			return false;
	}
	return true;
}

static bool section_is_framed(const char *section, size_t len)
{
	size_t begin = strlen(SECTION_BEGIN), end = strlen(SECTION_END);
	return len > begin + end && memcmp(section, SECTION_BEGIN, begin) == 0 &&
	       memcmp(section + len - end, SECTION_END, end) == 0;
}

static int trust_store_remove(int root_fd)
{
	int r = bundles_put(root_fd, NULL, 0);
	if (r == 0)
		r = hashes_put(root_fd, NULL, 0);
	if (r == 0)
		r = trust_store_discard(root_fd, "etc/ca-certificates/update.d", "bunker");
	return r < 0 ? r : trust_store_discard(root_fd, "etc/ssl", "bunker-ca.pem");
}

int trust_store_put(int root_fd, const char *section, size_t len)
{
	if (len > 0 && !section_is_framed(section, len))
		return -EINVAL;
	if (trust_store_is_there(root_fd, section, len))
		return 0;
	if (len == 0)
		return trust_store_remove(root_fd);
	int r = bundles_put(root_fd, section, len);
	if (r == 0)
		r = hashes_put(root_fd, section, len);
	if (r == 0)
		r = trust_store_keep(root_fd, "etc/ca-certificates/update.d", "bunker", hook,
			sizeof hook - 1, 0755);
	return r < 0 ? r
		     : trust_store_keep(root_fd, "etc/ssl", "bunker-ca.pem", section, len, 0644);
}
