/*
 * Other ways to run `true` isolated, each only where it is installed and works. None downloads
 * anything: the container runtimes get a root made of links into the host's /usr, which is mounted
 * read-only.
 *
 * The runtimes run in a mount namespace of ours: crun refuses a hybrid cgroup tree, so cgroup2 is
 * unmounted there, and what they would leave in /run and /dev/shm goes with the namespace.
 */
#include "bench.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

#define CLEANUP_WAIT_US (5 * 1000000)
#define PODMAN_CGROUP   "libpod_parent"

/* In the order of their rows. A leading @ in an argument stands for our directory. */
static const struct peer {
	const char *name;
	bool own_mounts;
	const char *arguments[PEER_ARGUMENTS - 1]; /* behind its name */
} peers[ROW_PODMAN - ROW_BWRAP + 1] = {
	{"bwrap", false,
		{"--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
			"true"}},
	{"crun", true, {"--root", "@/crun", "run", "--bundle", "@/bundle", "c"}},
	{"runc", true, {"--root", "@/runc", "run", "--bundle", "@/bundle", "r"}},
	{"podman", true,
		{"--root", "@/podman/root", "--runroot", "@/podman/run", "--tmpdir", "@/podman/tmp",
			"--network-config-dir", "@/podman/net", "--runtime", "runc",
			"--cgroup-manager", "cgroupfs", "--events-backend", "none", "run", "--rm",
			"--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit",
			"nproc=1024:1024", "--volume", "/usr:/usr:ro", "--rootfs",
			"@/bundle/rootfs", "/bin/true"}},
};

static const char bundle[] =
	"{\"ociVersion\": \"1.0.2\", \"hostname\": \"bench\","
	" \"process\": {\"user\": {\"uid\": 0, \"gid\": 0}, \"args\": [\"/bin/true\"],"
	"  \"env\": [\"PATH=/usr/bin:/bin\"], \"cwd\": \"/\", \"noNewPrivileges\": true},"
	" \"root\": {\"path\": \"rootfs\", \"readonly\": true},"
	" \"mounts\": [{\"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\"},"
	"  {\"destination\": \"/dev\", \"type\": \"tmpfs\", \"source\": \"tmpfs\","
	"   \"options\": [\"nosuid\", \"mode=755\", \"size=65536k\"]},"
	"  {\"destination\": \"/usr\", \"type\": \"bind\", \"source\": \"/usr\","
	"   \"options\": [\"bind\", \"ro\"]}],"
	" \"linux\": {\"namespaces\": [{\"type\": \"pid\"}, {\"type\": \"network\"}, {\"type\": \"ipc\"},"
	"  {\"type\": \"uts\"}, {\"type\": \"mount\"}]}}\n";

/* ---- what they need ---- */

static int make_root(const char *root)
{
	static const char *const directories[] = {"usr", "proc", "sys", "dev", "etc", "tmp", "run"};
	static const char *const links[] = {"bin", "sbin", "lib", "lib64"};
	autoclose int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(directories); i++)
		if (mkdirat(fd, directories[i], 0755) < 0)
			return -errno;
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		char target[32];
		snprintf(target, sizeof target, "usr/%s", links[i]);
		if (symlinkat(target, fd, links[i]) < 0)
			return -errno;
	}
	return 0;
}

static int make_bundle(const char *dir)
{
	static const char *const directories[] = {
		"bundle", "bundle/rootfs", "podman", "podman/net"};
	char path[BENCH_PATH_MAX + 32];
	for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
		snprintf(path, sizeof path, "%s/%s", dir, directories[i]);
		if (mkdir(path, 0755) < 0)
			return -errno;
	}
	snprintf(path, sizeof path, "%s/bundle/rootfs", dir);
	int r = make_root(path);
	if (r < 0)
		return r;
	snprintf(path, sizeof path, "%s/bundle/config.json", dir);
	autoclose int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	return fd < 0 ? -errno : fd_write_all(fd, bundle, strlen(bundle));
}

static int cover_with_tmpfs(const char *path)
{
	return mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, NULL);
}

/* Leaves us where we were, with the new namespace in b->peers.mounts_fd. */
static int make_mounts(struct bench *b)
{
	b->peers.home_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (b->peers.home_fd < 0 || unshare(CLONE_NEWNS) < 0)
		return -errno;
	int r = mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	if (r == 0)
		r = cover_with_tmpfs("/run") < 0 ? -1 : cover_with_tmpfs("/dev/shm");
	umount2("/sys/fs/cgroup/unified", MNT_DETACH); /* only hybrid hosts have it */
	b->peers.mounts_fd = r < 0 ? -1 : open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	int error = errno;
	if (setns(b->peers.home_fd, CLONE_NEWNS) < 0)
		return -errno;
	return b->peers.mounts_fd < 0 ? -error : 0;
}

/* ---- running one ---- */

static bool find_program(const char *name, char out[BENCH_PATH_MAX])
{
	static const char *const places[] = {
		"/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin"};
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		snprintf(out, BENCH_PATH_MAX, "%s/%s", places[i], name);
		if (access(out, X_OK) == 0)
			return true;
	}
	return false;
}

/* NULL-terminated: the last entry is never filled. */
static void fill_arguments(struct bench *b, enum row row, const char *program)
{
	const char *const *from = peers[row - ROW_BWRAP].arguments;
	for (size_t i = 0; i + 1 < PEER_ARGUMENTS && (i == 0 || from[i - 1]); i++) {
		const char *argument = i == 0 ? program : from[i - 1];
		bool below_dir = argument[0] == '@';
		autobuf text = {0};
		buf_append_str(&text, below_dir ? b->dir : "");
		buf_append_str(&text, below_dir ? argument + 1 : argument);
		b->peers.argv[row][i] = buf_take_str(&text);
	}
}

static int run_once(struct bench *b, enum row row, const char *log)
{
	bool own_mounts = peers[row - ROW_BWRAP].own_mounts;
	if (own_mounts && setns(b->peers.mounts_fd, CLONE_NEWNS) < 0)
		return bench_fail("cannot enter a mount namespace: %s", strerror(errno));
	int r = spawn_and_wait((const char *const *)b->peers.argv[row], log);
	if (own_mounts && setns(b->peers.home_fd, CLONE_NEWNS) < 0)
		return bench_fail("cannot leave a mount namespace: %s", strerror(errno));
	return r;
}

/* The last line that it said, as the reason why it has no number. */
static void note_failure(struct bench *b, enum row row, const char *log)
{
	autobuf text = {0};
	fd_read_file_at(AT_FDCWD, log, &text, 1 << 16);
	while (text.len > 0 && text.data[text.len - 1] == '\n')
		text.len--;
	buf_append_char(&text, '\0');
	const char *line = text.failed ? "" : text.data;
	const char *last = strrchr(line, '\n');
	snprintf(b->skipped[row], sizeof b->skipped[row], "%s failed after %zu runs: %s",
		peers[row - ROW_BWRAP].name, b->rows[row].count, last ? last + 1 : line);
	samples_finish(&b->rows[row]);
}

static void log_path(const struct bench *b, char out[BENCH_PATH_MAX + 16])
{
	snprintf(out, BENCH_PATH_MAX + 16, "%s/peer.log", b->dir);
}

int peer_run(struct bench *b, enum row row)
{
	char log[BENCH_PATH_MAX + 16];
	log_path(b, log);
	if (run_once(b, row, log) == 0)
		return 0;
	note_failure(b, row, log);
	return -1;
}

int peers_open(struct bench *b)
{
	b->peers.podman_was_there = access("/sys/fs/cgroup/memory/" PODMAN_CGROUP, F_OK) == 0 ||
				    access("/sys/fs/cgroup/" PODMAN_CGROUP, F_OK) == 0;
	int r = make_bundle(b->dir);
	if (r == 0)
		r = make_mounts(b);
	if (r < 0)
		return bench_fail("cannot prepare for the other sandboxes: %s", strerror(-r));
	for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
		char program[BENCH_PATH_MAX];
		enum row row = ROW_BWRAP + (enum row)i;
		if (!find_program(peers[i].name, program)) {
			snprintf(b->skipped[row], sizeof b->skipped[row], "%s is not installed",
				peers[i].name);
			continue;
		}
		fill_arguments(b, row, program);
		peer_run(b, row);
	}
	return 0;
}

/* ---- leaving nothing behind ---- */

/* Podman's own cgroups, when they hold nobody any more: its monitor outlives the command a little.
 */
static bool remove_cgroup(const char *hierarchy, const char *name)
{
	char path[BENCH_PATH_MAX * 2];
	snprintf(path, sizeof path, "/sys/fs/cgroup/%s/" PODMAN_CGROUP "%s", hierarchy, name);
	return rmdir(path) == 0 || errno == ENOENT || errno == ENOTDIR;
}

static bool remove_podman_cgroups(void)
{
	DIR *dir = opendir("/sys/fs/cgroup");
	struct dirent *entry;
	bool gone = remove_cgroup(".", "/conmon") && remove_cgroup(".", "");
	while (dir && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			gone &= remove_cgroup(entry->d_name, "/conmon") &&
				remove_cgroup(entry->d_name, "");
	if (dir)
		closedir(dir);
	return gone;
}

void peers_close(struct bench *b)
{
	int64_t deadline = clock_monotonic_us() + CLEANUP_WAIT_US;
	bool used_podman = b->peers.argv[ROW_PODMAN][0] != NULL;
	while (used_podman && !b->peers.podman_was_there && !remove_podman_cgroups() &&
		clock_monotonic_us() < deadline)
		usleep(20000);
	for (size_t row = 0; row < ROW_COUNT; row++)
		for (size_t i = 0; i < PEER_ARGUMENTS; i++)
			free(b->peers.argv[row][i]);
	if (b->peers.home_fd > 0)
		close(b->peers.home_fd);
	if (b->peers.mounts_fd > 0)
		close(b->peers.mounts_fd);
	b->peers = (struct peer_state){0};
}
