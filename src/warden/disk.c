/*
 * The directories below data/, and taking apart what a sandbox leaves behind.
 *
 *     data/boxes/ID/{root,usr}            upper layers of / and /usr
 *     data/boxes/ID/{root.work,usr.work}  overlayfs' own
 *     data/trash/ID                       on its way out
 *
 * A sandbox's tree is hostile: a million files, a hundred thousand levels. The sweeper is a process
 * of its own, works by descriptors that never follow a link, and flattens deep trees by moving
 * directories up into the trash, so that neither its stack nor its descriptors grow with the depth.
 */
#include "warden/warden.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

/* On disk uids are those of the sandbox (the mount is idmapped), so its root is 0 here too. */
static const struct {
	const char *name;
	mode_t mode;
} box_dirs[] = {{"root", 0755}, {"root.work", 0700}, {"usr", 0755}, {"usr.work", 0700}};

static int make_dir(int parent, const char *name, mode_t mode, uid_t owner)
{
	if (mkdirat(parent, name, mode) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (fchown(fd, owner, owner) < 0 || fchmod(fd, mode) < 0) {
		close(fd);
		return -errno;
	}
	return fd;
}

int disk_open(struct warden *w, struct error *e)
{
	w->data_fd = open(w->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->data_fd < 0)
		return error_set_errno(e, errno, "cannot open %s", w->data);
	w->boxes_fd = make_dir(w->data_fd, "boxes", 0700, 0);
	w->trash_fd = make_dir(w->data_fd, "trash", 0700, 0);
	w->run_fd = make_dir(w->data_fd, "run", 0711, 0);
	int stage = make_dir(w->data_fd, "stage", 0700, 0);
	if (w->boxes_fd < 0 || w->trash_fd < 0 || w->run_fd < 0 || stage < 0)
		return error_set(
			e, ERROR_INTERNAL, "cannot make the directories below %s", w->data);
	static const char *const mounts[] = {"disk", "skeleton", "usr", "root"};
	for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
		int fd = make_dir(stage, mounts[i], 0755, 0);
		if (fd < 0)
			return error_set_errno(
				e, fd, "cannot make %s/stage/%s", w->data, mounts[i]);
		close(fd);
	}
	close(stage);
	return 0;
}

int disk_create(struct warden *w, const char *id)
{
	if (mkdirat(w->boxes_fd, id, 0755) < 0)
		return -errno;
	autoclose int fd = openat(w->boxes_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(box_dirs); i++)
		if (mkdirat(fd, box_dirs[i].name, box_dirs[i].mode) < 0)
			return -errno;
	return 0;
}

void disk_discard(struct warden *w, const char *id)
{
	if (renameat(w->boxes_fd, id, w->trash_fd, id) < 0) {
		if (errno != ENOENT)
			log_warn("cannot move a sandbox's disk to the trash", "sandbox", id,
				"error", strerror(errno));
		return;
	}
	/* A full socket means that the sweeper has been told already. */
	if (send(w->sweeper_fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
		log_warn("the sweeper is gone", "error", strerror(errno));
}

union fd_message {
	char space[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* If the sweeper cannot keep up, what is sent is closed here and now. */
static void send_to_sweeper(struct warden *w, char what, int fd)
{
	union fd_message control = {0};
	struct iovec text = {.iov_base = &what, .iov_len = 1};
	struct msghdr message = {.msg_iov = &text,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof control.space};
	if (fd < 0)
		return;
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	if (sendmsg(w->sweeper_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_debug("the sweeper is busy", "error", strerror(errno));
	close(fd);
}

void disk_release_mounts(struct warden *w, int mounts_fd)
{
	send_to_sweeper(w, 'm', mounts_fd);
}

void disk_reclaim(struct warden *w, int file_fd)
{
	send_to_sweeper(w, 'r', file_fd);
}

/* ---- the sweeper ---- */

/* Moves dir/name to the top of the trash under a fresh name. */
static int move_up(int trash_fd, int dir_fd, const char *name)
{
	static uint64_t counter;
	char fresh[64];
	snprintf(fresh, sizeof fresh, "%d.%llu", getpid(), (unsigned long long)++counter);
	return renameat(dir_fd, name, trash_fd, fresh);
}

/* Empties one directory: files go, directories with content move to the top for a later round. */
static void empty_directory(int trash_fd, int fd)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	if (!dir) {
		close(fd);
		return;
	}
	while ((entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) == 0 || errno == ENOENT)
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR) < 0)
			move_up(trash_fd, dirfd(dir), entry->d_name);
	}
	closedir(dir);
}

/* One round over the trash; true when something was removed or moved. */
static bool sweep_once(int trash_fd)
{
	int fd = openat(trash_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *trash = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	bool progress = false;
	if (!trash)
		return false;
	while ((entry = readdir(trash)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		int sub = openat(
			trash_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub >= 0)
			empty_directory(trash_fd, sub);
		if (unlinkat(trash_fd, entry->d_name, sub >= 0 ? AT_REMOVEDIR : 0) == 0)
			progress = true;
	}
	closedir(trash);
	return progress;
}

/*
 * Waits for work. A descriptor that comes along is the last thing that holds a dead sandbox's
 * mounts, or the file by which a paused one gives its page cache back: as much as the kernel finds.
 */
static bool receive_work(int work_fd)
{
	union fd_message control;
	char byte;
	struct iovec text = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &text,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof control.space};
	ssize_t n = recvmsg(work_fd, &message, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return n < 0 && errno == EINTR;
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		int fd;
		memcpy(&fd, CMSG_DATA(c), sizeof fd);
		if (byte == 'r' && write(fd, "1T", 2) < 0)
			log_debug("not all could be reclaimed", "error", strerror(errno));
		close(fd);
	}
	return true;
}

static void sweeper_main(int trash_fd, int work_fd)
{
	log_set_process("sweeper");
	prctl(PR_SET_NAME, "bunker-sweeper", 0, 0, 0);
	setpriority(PRIO_PROCESS, 0, 10);
	do {
		while (sweep_once(trash_fd))
			;
	} while (receive_work(work_fd));
	_exit(0);
}

int disk_start_sweeper(struct warden *w)
{
	int p[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid < 0) {
		close(p[0]);
		close(p[1]);
		return -errno;
	}
	if (pid == 0) {
		/* Ctrl-C is for the server; the sweeper finishes and leaves when the socket closes.
		 */
		signal(SIGINT, SIG_IGN);
		signal(SIGTERM, SIG_IGN);
		/* Nothing else of ours: the port and the lock are free when the warden is gone. */
		int trash_fd = dup2(w->trash_fd, 100), work_fd = dup2(p[0], 101);
		close_range(3, 99, 0);
		close_range(102, ~0u, 0);
		sweeper_main(trash_fd, work_fd);
	}
	close(p[0]);
	w->sweeper_fd = p[1];
	w->sweeper_pid = pid;
	return 0;
}

void disk_stop_sweeper(struct warden *w)
{
	close(w->sweeper_fd);
	waitpid(w->sweeper_pid, NULL, 0);
}

void disk_remove_tree(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	while (sweep_once(fd))
		;
	close(fd);
	rmdir(path);
}
