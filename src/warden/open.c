/*
 * What the warden does once, before it serves: take its uid range, build what all sandboxes share.
 * Every step must work; there is no boot with a layer missing.
 */
#include "warden/warden.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"

#define LOCK_DIR    "/run/bunker"
#define LOCK_WAIT_S 1

/* ---- which uids are ours ---- */

/* The file data/instance holds "RANGE NAME" for as long as the data lives. */
static bool read_instance(struct warden *w)
{
	autobuf text = {0};
	if (fd_read_file_at(w->data_fd, "instance", &text, 64) < 0)
		return false;
	buf_append_char(&text, '\0');
	return !text.failed && sscanf(text.data, "%u %8s", &w->uid_range, w->instance) == 2 &&
	       w->uid_range < UID_RANGES && strlen(w->instance) == 8 &&
	       strspn(w->instance, "abcdefghijklmnopqrstuvwxyz0123456789") == 8;
}

static int write_instance(struct warden *w)
{
	char text[64];
	snprintf(text, sizeof text, "%u %s\n", w->uid_range, w->instance);
	autoclose int fd =
		openat(w->data_fd, "instance", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

/* Locks a range for this server while it runs. */
static int lock_range(unsigned range)
{
	char path[64];
	mkdir(LOCK_DIR, 0755);
	snprintf(path, sizeof path, LOCK_DIR "/range-%u.lock", range);
	autoclose int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return take_fd(&fd);
}

/* Returns whether a cgroup v2 directory has processes in it or below. */
static bool is_populated(const char *root, const char *name)
{
	char path[WARDEN_PATH_MAX * 2];
	autobuf text = {0};
	snprintf(path, sizeof path, "%s/%s/cgroup.events", root, name);
	int r = fd_read_file_at(AT_FDCWD, path, &text, 4096);
	buf_append_char(&text, '\0');
	return r < 0 ? r != -ENOENT : text.failed || strstr(text.data, "populated 1") != NULL;
}

/*
 * A stopped server's sandboxes still use its range: their cgroups say so. Empty ones are of a
 * server that was killed and whose data is gone; nobody would ever remove them. Looked for are our
 * own, or those of others.
 */
static bool lives_in_range(const struct warden *w, unsigned range, bool own)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char prefix[32];
	bool found = false;
	int len = snprintf(prefix, sizeof prefix, "bunker-%u-", range);
	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		DIR *dir = opendir(roots[i]);
		struct dirent *entry;
		while (dir && (entry = readdir(dir)) != NULL)
			found |= strncmp(entry->d_name, prefix, (size_t)len) == 0 &&
				 own == (strcmp(entry->d_name + len, w->instance) == 0) &&
				 is_populated(roots[i], entry->d_name);
		if (dir)
			closedir(dir);
	}
	return found;
}

/* Locks a range without sandboxes of other servers. Returns 0, -EWOULDBLOCK or another error. */
static int try_range(struct warden *w, unsigned range)
{
	int fd = lock_range(range);
	if (fd < 0)
		return fd;
	if (lives_in_range(w, range, false)) {
		close(fd);
		return -EWOULDBLOCK;
	}
	w->uid_range = range;
	w->lock_fd = fd;
	return 0;
}

static int take_new_range(struct warden *w, struct error *e)
{
	char id[ID_SIZE];
	int r = -EWOULDBLOCK;
	id_generate(id);
	snprintf(w->instance, sizeof w->instance, "%.8s", id);
	for (unsigned range = 0; range < UID_RANGES && r == -EWOULDBLOCK; range++)
		r = try_range(w, range);
	if (r == -EWOULDBLOCK)
		return error_set(e, ERROR_UNAVAILABLE,
			"all %u ranges of uids are taken by other bunker servers on this host",
			UID_RANGES);
	if (r < 0)
		return error_set_errno(e, r, "cannot lock a range of uids in " LOCK_DIR);
	r = write_instance(w);
	return r < 0 ? error_set_errno(e, r, "cannot write %s/instance", w->data) : 0;
}

/* While a server was down, and nothing of it lived, another may have got its range. */
static int take_range(struct warden *w, struct error *e)
{
	if (!read_instance(w))
		return take_new_range(w, e);
	int r = try_range(w, w->uid_range);
	if (r == 0)
		return 0;
	if (r != -EWOULDBLOCK)
		return error_set_errno(e, r, "cannot lock the range of uids in " LOCK_DIR);
	if (lives_in_range(w, w->uid_range, true))
		return error_set(e, ERROR_UNAVAILABLE,
			"another bunker server uses the uids of this one's sandboxes");
	return take_new_range(w, e);
}

static void note_time(int number)
{
	(void)number;
}

/* -EINTR: the time is up. The clock goes on striking, should it do so before we wait. */
static int lock_in_time(int fd)
{
	struct sigaction before, action = {.sa_handler = note_time};
	struct itimerval never = {0}, limit = {{LOCK_WAIT_S, 0}, {LOCK_WAIT_S, 0}};
	sigaction(SIGALRM, &action, &before);
	setitimer(ITIMER_REAL, &limit, NULL);
	int r = flock(fd, LOCK_EX) < 0 ? -errno : 0;
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	return r;
}

/* One server a data directory. Of one that was killed this moment a child may still hold it, on its
 * way to exec. */
static int lock_data(struct warden *w, struct error *e)
{
	int r = lock_in_time(w->data_fd);
	if (r == -EINTR)
		return error_set(e, ERROR_UNAVAILABLE,
			"another bunker server is running with the data directory %s", w->data);
	return r < 0 ? error_set_errno(e, r, "cannot lock %s", w->data) : 0;
}

/* ---- all of it ---- */

/* The front has no privilege: it must be able to walk to its own directory below. */
static int check_reachable(const char *data, struct error *e)
{
	char path[DATA_PATH_MAX + 1];
	for (const char *slash = strchr(data, '/'); slash; slash = strchr(slash + 1, '/')) {
		struct stat st;
		if (slash == data)
			continue;
		snprintf(path, sizeof path, "%.*s", (int)(slash - data), data);
		if (stat(path, &st) < 0 || !(st.st_mode & S_IXOTH))
			return error_set(e, ERROR_PERMISSION_DENIED,
				"the data directory %s cannot be reached by processes without privilege: %s is "
				"closed to others (chmod o+x)",
				data, path);
	}
	return 0;
}

static int open_data(struct warden *w, const char *data, struct error *e)
{
	char resolved[4096];
	if (mkdir(data, 0711) < 0 && errno != EEXIST)
		return error_set_errno(e, errno, "cannot make the data directory %s", data);
	if (!realpath(data, resolved))
		return error_set_errno(e, errno, "cannot use the data directory %s", data);
	if (strlen(resolved) > DATA_PATH_MAX)
		return error_set(e, ERROR_INVALID_REQUEST,
			"the data directory's path is longer than %d bytes: %s", DATA_PATH_MAX,
			resolved);
	memcpy(w->data, resolved, strlen(resolved) + 1);
	if (check_reachable(w->data, e) < 0)
		return -1;
	if (chmod(w->data, 0711) < 0)
		return error_set_errno(e, errno, "cannot set the mode of %s", w->data);
	return 0;
}

static int seal_init(struct warden *w, const struct warden_config *config, struct error *e)
{
	w->lends_network = config->lends_network;
	w->init_fd = fd_seal_copy("bunker-init", config->init_image, config->init_size);
	return w->init_fd < 0 ? error_set_errno(e, w->init_fd, "cannot make a sealed copy of init")
			      : 0;
}

int warden_open(struct warden *w, const struct warden_config *config, struct error *e)
{
	*w = (struct warden){.lock_fd = -1};
	umask(022); /* modes of files made for sandboxes must not depend on the caller's umask */
	if (open_data(w, config->data, e) < 0 || host_enter_private_mounts(w->data, e) < 0 ||
		disk_make_directories(w, e) < 0 || lock_data(w, e) < 0 || take_range(w, e) < 0 ||
		seal_init(w, config, e) < 0 || seccomp_build(w, e) < 0 || cgroup_open(w, e) < 0)
		return -1;
	/* The block before the first sandbox's is unused, and its last uid is the front's. */
	w->front_uid = (w->uid_range + 1) * UID_RANGE_SIZE - 1;
	cgroup_scan_slots(w);
	return 0;
}

void warden_close(struct warden *w)
{
	/* No event tells of it, and nothing else is left to do. What the kernel has not let go of
	 * after this long is found by the next start. */
	for (int i = 0; i < 50 && boot_retry_cleanups(w); i++)
		usleep(10000);
	cgroup_close(w);
}

void warden_unmount(const char *data)
{
	char path[WARDEN_PATH_MAX];
	snprintf(path, sizeof path, "%s/stage/cgroup2", data);
	umount2(path, MNT_DETACH);
}
