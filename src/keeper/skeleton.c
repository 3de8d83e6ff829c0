/*
 * The built-in template `base`: what stands below a sandbox's root besides the host's /usr.
 *
 * Nothing is taken from the host but what is named in `copied`, and of that only what every user of
 * the host may read anyway. The skeleton is built aside, then renamed into place under a name made
 * of what it was built from; a host that changed gets a new one, and running sandboxes keep theirs.
 */
#include "keeper/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/trust_store.h"

/* Part of the name: raise it when the skeleton's content changes. */
#define SKELETON_VERSION "4"
#define DEFAULT_UID      1000

/* clang-format off */
static const struct {
	const char *path;
	mode_t mode;
	uid_t owner;
} directories[] = {
	{"etc", 0755, 0}, {"home", 0755, 0}, {"home/user", 0755, DEFAULT_UID}, {"root", 0700, 0},
	{"tmp", 01777, 0}, {"var", 0755, 0}, {"var/tmp", 01777, 0}, {"var/lib", 0755, 0},
	{"var/lib/dpkg", 0755, 0}, {"var/lib/dpkg/info", 0755, 0},
	{"var/lib/dpkg/updates", 0755, 0}, {"var/lib/dpkg/triggers", 0755, 0},
	{"etc/apt", 0755, 0}, {"etc/apt/apt.conf.d", 0755, 0}, {"etc/apt/preferences.d", 0755, 0},
	{"etc/apt/sources.list.d", 0755, 0}, {"etc/apt/trusted.gpg.d", 0755, 0},
	{"var/lib/apt", 0755, 0}, {"var/lib/apt/lists", 0755, 0},
	{"var/lib/apt/lists/partial", 0755, 0}, {"var/cache", 0755, 0}, {"var/cache/apt", 0755, 0},
	{"var/cache/apt/archives", 0755, 0}, {"var/cache/apt/archives/partial", 0755, 0},
	{"var/log", 0755, 0}, {"run", 0755, 0}, {"run/lock", 01777, 0}, {"proc", 0555, 0},
	{"sys", 0555, 0}, {"dev", 0755, 0}, {"usr", 0755, 0}, {"mnt", 0755, 0}, {"media", 0755, 0},
	{"opt", 0755, 0}, {"srv", 0755, 0}, {"etc/ssl", 0755, 0},
};
/* clang-format on */

static const struct {
	const char *path, *target;
} links[] = {{"bin", "usr/bin"}, {"sbin", "usr/sbin"}, {"lib", "usr/lib"}, {"lib64", "usr/lib64"},
	{"lib32", "usr/lib32"}, {"libx32", "usr/libx32"}, {"var/run", "/run"},
	{"var/lock", "/run/lock"}, {"etc/mtab", "/proc/self/mounts"}};

static const struct {
	const char *path;
	mode_t mode;
	const char *content;
} made_files[] = {
	{"etc/passwd", 0644,
		"root:x:0:0:root:/root:/bin/bash\n"
		"daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
		"bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
		"sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
		"man:x:6:12:man:/var/cache/man:/usr/sbin/nologin\n"
		"mail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
		"www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
		"_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
		"user:x:1000:1000:user:/home/user:/bin/bash\n"
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
	{"etc/group", 0644,
		"root:x:0:\ndaemon:x:1:\nbin:x:2:\nsys:x:3:\nadm:x:4:\ntty:x:5:\ndisk:x:6:\nmail:x:8:\n"
		"man:x:12:\nsudo:x:27:user\nwww-data:x:33:\nshadow:x:42:\nutmp:x:43:\nstaff:x:50:\n"
		"games:x:60:\nusers:x:100:user\nuser:x:1000:\nnogroup:x:65534:\n"},
	{"etc/shadow", 0640, "root:*:19000:0:99999:7:::\nuser:*:19000:0:99999:7:::\n"},
	{"etc/hostname", 0644, "sandbox\n"},
	{"etc/hosts", 0644, "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost\n"},
	{"etc/nsswitch.conf", 0644,
		"passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n"},
	{"etc/resolv.conf", 0644, "nameserver 192.0.2.53\n"},
	{"etc/fstab", 0644, ""},
	/* As Debian's, but without a program to find out who we are: every `bash -l` would pay. */
	{"etc/profile", 0644,
		"if [ \"${EUID:-$(id -u)}\" -eq 0 ]; then\n"
		"  PATH=\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"\n"
		"else\n"
		"  PATH=\"/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games\"\n"
		"fi\n"
		"export PATH\n"
		"if [ \"${PS1-}\" ] && [ \"${BASH-}\" ] && [ -f /etc/bash.bashrc ]; then\n"
		"  . /etc/bash.bashrc\n"
		"fi\n"
		"if [ -d /etc/profile.d ]; then\n"
		"  for i in /etc/profile.d/*.sh; do\n"
		"    if [ -r \"$i\" ]; then . \"$i\"; fi\n"
		"  done\n"
		"  unset i\n"
		"fi\n"},
	{"etc/sudoers", 0440,
		"Defaults env_reset, !use_pty, !fqdn, "
		"secure_path=\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"\n"
		"root ALL=(ALL:ALL) ALL\nuser ALL=(ALL:ALL) NOPASSWD: ALL\n"},
	/* Debian's matplotlib wants one, and its own asks for a display. */
	{"etc/matplotlibrc", 0644, "# Without a display, pictures are drawn by Agg.\n"},
	{"home/user/.profile", 0644, "[ -f ~/.bashrc ] && . ~/.bashrc\n"},
	{"home/user/.bashrc", 0644, "PS1='\\u@\\h:\\w\\$ '\n"},
};

/* Files of the host's /etc and /var: configuration of programs in /usr, no secrets. */
static const char *const copied[] = {"etc/alternatives", "etc/ssl/certs", "etc/ssl/openssl.cnf",
	"etc/ca-certificates", "etc/ca-certificates.conf", "etc/python3", "etc/python3.11",
	"etc/python3.12", "etc/python3.13", "etc/perl", "etc/terminfo", "etc/fonts",
	"etc/mime.types", "etc/services", "etc/protocols", "etc/rpc", "etc/localtime",
	"etc/timezone", "etc/ld.so.cache", "etc/ld.so.conf", "etc/ld.so.conf.d",
	"etc/debian_version", "etc/os-release", "etc/lsb-release", "etc/login.defs", "etc/pam.d",
	"etc/pam.conf", "etc/security", "etc/skel", "etc/shells", "etc/inputrc", "etc/bash.bashrc",
	"etc/magic", "etc/locale.alias", "etc/java-17-openjdk", "etc/debconf.conf", "etc/dpkg",
	"etc/adduser.conf", "var/lib/dpkg/status"};

/* ---- copying ---- */

static int copy_host_tree(int from_dir, int to_dir, const char *name);

static int copy_host_file(int from_dir, int to_dir, const char *name, const struct stat *st)
{
	autoclose int in = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	autoclose int out =
		openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st->st_mode & 0755);
	if (in < 0 || out < 0)
		return -errno;
	off_t left = st->st_size;
	while (left > 0) {
		ssize_t n = sendfile(out, in, NULL, (size_t)left);
		if (n <= 0)
			return n < 0 ? -errno : 0;
		left -= n;
	}
	return 0;
}

static int copy_host_link(int from_dir, int to_dir, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from_dir, name, target, sizeof target - 1);
	if (n < 0)
		return -errno;
	target[n] = '\0';
	return symlinkat(target, to_dir, name) < 0 ? -errno : 0;
}

static int copy_host_directory(int from_dir, int to_dir, const char *name)
{
	if (mkdirat(to_dir, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	autoclose int to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int from = openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = from >= 0 ? fdopendir(from) : NULL;
	struct dirent *entry;
	int r = 0;
	if (to < 0 || !dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = copy_host_tree(dirfd(dir), to, entry->d_name);
	closedir(dir);
	return r;
}

/* Skips files that are missing or not readable by all users. */
static int copy_host_tree(int from_dir, int to_dir, const char *name)
{
	struct stat st;
	if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(st.st_mode))
		return copy_host_link(from_dir, to_dir, name);
	if (S_ISDIR(st.st_mode) && (st.st_mode & 0005) == 0005)
		return copy_host_directory(from_dir, to_dir, name);
	if (S_ISREG(st.st_mode) && (st.st_mode & 0004))
		return copy_host_file(from_dir, to_dir, name, &st);
	return 0;
}

static int copy_from_host(int root_fd, const char *path)
{
	char parent[PATH_MAX];
	const char *name = strrchr(path, '/') + 1;
	snprintf(parent, sizeof parent, "/%.*s", (int)(name - 1 - path), path);
	autoclose int from = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autoclose int to = openat(root_fd, parent + 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (from < 0)
		return 0;
	return to < 0 ? -errno : copy_host_tree(from, to, name);
}

/* ---- building ---- */

static int skeleton_make_directories(int root_fd)
{
	for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
		if (mkdirat(root_fd, directories[i].path, 0755) < 0 ||
			fchownat(root_fd, directories[i].path, directories[i].owner,
				directories[i].owner, 0) < 0 ||
			fchmodat(root_fd, directories[i].path, directories[i].mode, 0) < 0)
			return -errno;
	}
	return 0;
}

static int make_links(int root_fd)
{
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		struct stat st;
		char host[64];
		snprintf(host, sizeof host, "/%s", links[i].path);
		bool only_if_host_has = links[i].target[0] == 'u';
		if (only_if_host_has && (lstat(host, &st) < 0 || !S_ISLNK(st.st_mode)))
			continue;
		if (symlinkat(links[i].target, root_fd, links[i].path) < 0)
			return -errno;
	}
	return 0;
}

static int make_files(int root_fd)
{
	for (size_t i = 0; i < ARRAY_LEN(made_files); i++) {
		autoclose int fd = openat(root_fd, made_files[i].path,
			O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (fd < 0)
			return -errno;
		int r = fd_write_all(fd, made_files[i].content, strlen(made_files[i].content));
		if (r < 0)
			return r;
		uid_t owner = strncmp(made_files[i].path, "home/", 5) == 0 ? DEFAULT_UID : 0;
		if (fchown(fd, owner, owner) < 0 || fchmod(fd, made_files[i].mode) < 0)
			return -errno;
	}
	return 0;
}

/* The value of "\nNAME=" in /etc/os-release, if it is a plain word. */
static bool os_release(const struct buf *text, const char *name, char out[32])
{
	const char *at = strstr(text->data, name);
	size_t skip = strlen(name);
	size_t len = at ? strspn(at + skip, "abcdefghijklmnopqrstuvwxyz") : 0;
	if (len == 0 || len >= 32)
		return false;
	snprintf(out, 32, "%.*s", (int)len, at + skip);
	return true;
}

/* Lists Debian's own servers. The host's list may contain others, with their passwords. */
static int make_apt_sources(int root_fd)
{
	static const char key[] = "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n";
	autobuf release = {0}, sources = {0};
	char id[32], codename[32];
	buf_append_char(&release, '\n');
	int r = fd_read_file_at(AT_FDCWD, "/etc/os-release", &release, 64 << 10);
	buf_append_char(&release, '\0');
	if (r < 0 || release.failed || !os_release(&release, "\nID=", id) ||
		strcmp(id, "debian") != 0 || !os_release(&release, "\nVERSION_CODENAME=", codename))
		return 0;
	buf_printf(&sources,
		"Types: deb\nURIs: http://deb.debian.org/debian\n"
		"Suites: %s %s-updates\nComponents: main\n%s\n"
		"Types: deb\nURIs: http://deb.debian.org/debian-security\n"
		"Suites: %s-security\nComponents: main\n%s",
		codename, codename, key, codename, key);
	autoclose int fd = openat(root_fd, "etc/apt/sources.list.d/debian.sources",
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	return sources.failed ? -ENOMEM : fd_write_all(fd, sources.data, sources.len);
}

static int skeleton_build(int root_fd, const char *trust)
{
	int r = skeleton_make_directories(root_fd);
	if (r == 0)
		r = make_links(root_fd);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(copied); i++)
		r = copy_from_host(root_fd, copied[i]);
	if (r == 0)
		r = make_apt_sources(root_fd);
	if (r == 0)
		r = make_files(root_fd);
	return r < 0 ? r : trust_store_put(root_fd, trust, strlen(trust));
}

/* Derives the name from the skeleton's inputs. */
static void skeleton_name(const char *trust, char out[64])
{
	static const char *const inputs[] = {
		"/var/lib/dpkg/status", "/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl/certs"};
	uint64_t hash = 14695981039346656037u;
	for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
		struct stat st = {0};
		stat(inputs[i], &st);
		uint64_t parts[] = {(uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec};
		for (size_t p = 0; p < ARRAY_LEN(parts); p++)
			hash = (hash ^ parts[p]) * 1099511628211u;
	}
	for (; *trust; trust++)
		hash = (hash ^ (unsigned char)*trust) * 1099511628211u;
	snprintf(out, 64, "base-" SKELETON_VERSION "-%016llx", (unsigned long long)hash);
}

static int build_at(struct keeper *k, const char *name, const char *trust)
{
	char aside[64];
	snprintf(aside, sizeof aside, "new.%d", getpid());
	if (mkdirat(k->templates_fd, aside, 0755) < 0)
		return -errno;
	autoclose int fd = openat(k->templates_fd, aside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : skeleton_build(fd, trust);
	if (r == 0 && renameat(k->templates_fd, aside, k->templates_fd, name) < 0 &&
		errno != EEXIST)
		r = -errno;
	if (r < 0) /* the sweeper takes half-built trees, too */
		renameat(k->templates_fd, aside, k->trash_fd, aside);
	return r;
}

static bool has_sandboxes(const struct keeper *k)
{
	int fd = openat(k->dirs[DISK_BOX], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	bool found = dir == NULL;
	while (dir && !found && (entry = readdir(dir)) != NULL)
		found = entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return found;
}

/*
 * Discards skeletons of an earlier host and of interrupted builds; a sandbox may still stand on the
 * former.
 */
static void discard_others(const struct keeper *k, const char *current)
{
	bool in_use = has_sandboxes(k);
	int fd = openat(k->templates_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	while (dir && (entry = readdir(dir)) != NULL) {
		bool half_built = strncmp(entry->d_name, "new.", 4) == 0;
		bool other = strncmp(entry->d_name, "base-", 5) == 0 &&
			     strcmp(entry->d_name, current) != 0;
		if (half_built || (other && !in_use))
			renameat(dirfd(dir), entry->d_name, k->trash_fd, entry->d_name);
	}
	if (dir)
		closedir(dir);
}

int skeleton_open(struct keeper *k, const char *trust, struct error *e)
{
	char name[64];
	struct stat st;
	if (lstat("/bin", &st) < 0 || !S_ISLNK(st.st_mode))
		return error_set(e, ERROR_UNAVAILABLE,
			"this host has no merged /usr (/bin is not a link to usr/bin), which the template 'base' needs");
	skeleton_name(trust, name);
	if (fstatat(k->templates_fd, name, &st, 0) < 0) {
		int r = build_at(k, name, trust);
		if (r < 0)
			return error_set_errno(
				e, r, "cannot build the template 'base' in %s", k->data);
	}
	discard_others(k, name);
	snprintf(k->template_path, sizeof k->template_path, "%s/disks/templates/%s", k->data, name);
	return 0;
}
