/* 5-12: capabilities, file handles, roots, and what is in force from the first instruction on. */
#include "attempt.h"

#include <dirent.h>
#include <limits.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/xattr.h>

/* What the design leaves in the bounding set; everything else must be gone. */
static const int kept[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL,
	CAP_SETGID, CAP_SETUID, CAP_NET_BIND_SERVICE};

static bool is_kept(int capability)
{
	for (size_t i = 0; i < COUNT(kept); i++)
		if (kept[i] == capability)
			return true;
	return false;
}

static int make_temporary(char path[PATH_MAX])
{
	strcpy(path, "/tmp/attemptXXXXXX");
	return mkstemp(path);
}

/* ---- 5: file capabilities ---- */

static enum outcome try_file_capability(const struct attempt *a)
{
	char path[PATH_MAX];
	struct {
		uint32_t magic, permitted[2], inheritable[2];
	} value = {0};
	uint32_t v3[6] = {0};
	int fd = make_temporary(path);
	if (fd < 0)
		return say(ERROR, "mkstemp: %s", strerror(errno));
	value.magic = 0x02000000 | 1; /* version 2, effective */
	value.permitted[0] = 1u << CAP_SYS_ADMIN;
	v3[0] = 0x03000000 | 1; /* version 3 names the user namespace's root */
	v3[1] = 1u << CAP_SYS_ADMIN;
	int r = a->arg == 2 ? fsetxattr(fd, "security.capability", &value, sizeof value, 0)
			    : fsetxattr(fd, "security.capability", v3, sizeof v3, 0);
	enum outcome outcome = judge(r);
	unlink(path);
	return outcome;
}

/* ---- 6: capabilities of processes ---- */

static enum outcome try_capset(const struct attempt *a)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	(void)a;
	syscall(SYS_capget, &header, data);
	data[0].effective |= 1u << CAP_SYS_ADMIN | 1u << CAP_SYS_PTRACE | 1u << CAP_MKNOD;
	data[0].permitted |= data[0].effective;
	long r = syscall(SYS_capset, &header, data);
	return judge(r);
}

static enum outcome try_ambient(const struct attempt *a)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	(void)a;
	syscall(SYS_capget, &header, data);
	data[0].inheritable |= 1u << CAP_SYS_ADMIN;
	syscall(SYS_capset, &header, data);
	return judge(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0));
}

static enum outcome try_securebits(const struct attempt *a)
{
	(void)a;
	return judge(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_NOROOT, 0, 0, 0));
}

static enum outcome look_at_bounding_set(const struct attempt *a)
{
	(void)a;
	for (int c = 0; c < 64; c++)
		if (prctl(PR_CAPBSET_READ, c, 0, 0, 0) == 1 && !is_kept(c))
			return say(ESCAPED, "capability %d is in the bounding set", c);
	return say(BLOCKED, "it holds what the design names");
}

static enum outcome look_at_capabilities(const struct attempt *a)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	(void)a;
	syscall(SYS_capget, &header, data);
	for (int c = 0; c < 64; c++) {
		uint32_t any = data[c / 32].effective | data[c / 32].permitted;
		if (any >> (c % 32) & 1 && (getuid() != 0 || !is_kept(c)))
			return say(ESCAPED, "uid %d has capability %d", (int)getuid(), c);
		if (data[c / 32].inheritable >> (c % 32) & 1)
			return say(ESCAPED, "capability %d is inheritable", c);
	}
	return say(BLOCKED, "none but what the design names");
}

/* ---- 7: file handles ---- */

struct handle {
	uint32_t size;
	int32_t type;
	unsigned char bytes[128];
};

/* Of a file of our own where we get one; the root inode of ext4 where we do not. */
static enum outcome try_open_by_handle(const struct attempt *a)
{
	struct handle h = {.size = sizeof h.bytes};
	char path[PATH_MAX];
	int mount_id, fd = make_temporary(path), mount_fd = open("/tmp", O_RDONLY | O_DIRECTORY);
	(void)a;
	if (fd < 0 || mount_fd < 0)
		return say(ERROR, "cannot prepare: %s", strerror(errno));
	if (syscall(SYS_name_to_handle_at, AT_FDCWD, path, &h, &mount_id, 0) < 0)
		h = (struct handle){.size = 8, .type = 1, .bytes = {2}};
	enum outcome outcome = judge(syscall(SYS_open_by_handle_at, mount_fd, &h, O_RDONLY));
	unlink(path);
	return outcome;
}

/* ---- 8, 9: other roots ---- */

static bool sees_canary(void)
{
	const char *path = setting("CANARY_FILE");
	return path[0] == '/' && (access(path, F_OK) == 0 || access(path + 1, F_OK) == 0);
}

/* The classic: a root inside the root, with the working directory left outside of both. */
static enum outcome try_double_chroot(const struct attempt *a)
{
	char path[] = "/tmp/attemptXXXXXX";
	(void)a;
	if (!mkdtemp(path))
		return say(ERROR, "mkdtemp: %s", strerror(errno));
	int out = open("/", O_RDONLY | O_DIRECTORY), r = chroot(path);
	int error = errno;
	if (r == 0) {
		r = fchdir(out);
		for (int i = 0; i < 64; i++)
			r |= chdir("..");
		r |= chroot(".");
	}
	rmdir(path);
	errno = error;
	if (r < 0)
		return judge(r);
	return sees_canary() ? say(ESCAPED, "the canary is in sight") : say(ERROR, "no canary");
}

static enum outcome try_pivot_root(const struct attempt *a)
{
	(void)a;
	if (is_control && (unshare(CLONE_NEWNS) < 0 ||
				  mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
				  mount("attempt", "/tmp", "tmpfs", 0, NULL) < 0))
		return say(ERROR, "cannot prepare: %s", strerror(errno));
	if (chdir("/tmp") < 0)
		return say(ERROR, "chdir: %s", strerror(errno));
	return judge(syscall(SYS_pivot_root, ".", "."));
}

/* ---- 10: what was left open ---- */

static int inherited = -1; /* the first descriptor above 2 that was open when we started */
static char inherited_path[PATH_MAX];

static void look_at_descriptors(void)
{
	char link[64];
	for (int fd = 3; fd < 4096 && inherited < 0; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			inherited = fd;
	snprintf(link, sizeof link, "/proc/self/fd/%d", inherited);
	if (inherited >= 0 && readlink(link, inherited_path, sizeof inherited_path - 1) < 0)
		inherited_path[0] = '\0';
}

static enum outcome look_for_inherited(const struct attempt *a)
{
	(void)a;
	if (inherited < 0)
		return say(BLOCKED, "0, 1 and 2 are all there was");
	return say(ESCAPED, "%d was open, on %.100s", inherited, inherited_path);
}

static enum outcome look_at_standard_streams(const struct attempt *a)
{
	(void)a;
	for (int fd = 0; fd < 3; fd++) {
		struct stat st;
		if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
			return say(ESCAPED, "%d is a directory", fd);
	}
	return say(BLOCKED, "none is a directory");
}

static enum outcome walk_up(const struct attempt *a)
{
	if (a->text && chdir(a->text) < 0)
		return judge(-1);
	for (int i = 0; i < 100; i++)
		if (chdir("..") < 0)
			return judge(-1);
	return sees_canary() ? say(ESCAPED, "the canary is in sight")
			     : say(BLOCKED, "the way up ends before the canary");
}

/* ---- 11, 12 ---- */

static enum outcome look_at_seccomp(const struct attempt *a)
{
	char text[8192] = "";
	int fd = open("/proc/self/status", O_RDONLY);
	(void)a;
	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
		return say(ERROR, "no status: %s", strerror(errno));
	const char *line = strstr(text, "\nSeccomp:\t");
	if (!line)
		return say(ERROR, "the status has no line for seccomp");
	return line[10] == '2' ? say(BLOCKED, "Seccomp: 2") : say(ESCAPED, "Seccomp: %c", line[10]);
}

static enum outcome try_personality(const struct attempt *a)
{
	return judge(syscall(SYS_personality, a->arg));
}

static const struct attempt attempts[] = {
	{5, "file-capability", try_file_capability, .arg = 2},
	{5, "file-capability-of-namespace", try_file_capability, .arg = 3},
	{6, "capset", try_capset},
	{6, "ambient-capability", try_ambient},
	{6, "securebits", try_securebits},
	{6, "bounding-set", look_at_bounding_set},
	{6, "capabilities-in-force", look_at_capabilities},
	{7, "open-by-handle", try_open_by_handle},
	{8, "double-chroot", try_double_chroot},
	{9, "pivot-root", try_pivot_root},
	{10, "inherited-descriptors", look_for_inherited},
	{10, "standard-streams", look_at_standard_streams},
	{10, "up-from-working-directory", walk_up},
	{10, "up-from-proc-self-root", walk_up, .text = "/proc/self/root"},
	{10, "up-from-proc-self-cwd", walk_up, .text = "/proc/self/cwd"},
	{10, "up-from-shm", walk_up, .text = "/dev/shm"},
	{10, "up-from-usr", walk_up, .text = "/usr/bin"},
	{11, "seccomp-in-force", look_at_seccomp},
	{12, "personality-no-randomize", try_personality, .arg = ADDR_NO_RANDOMIZE},
	{12, "personality-linux32", try_personality, .arg = PER_LINUX32},
	{12, "personality-read-implies-exec", try_personality, .arg = READ_IMPLIES_EXEC},
	{12, "personality-with-high-bits", try_personality,
		.arg = (long)(0xffffffff00000000u | ADDR_NO_RANDOMIZE)},
	{12, "may-ask-for-personality", try_personality, .arg = 0xffffffff},
};

int main(int argc, char **argv)
{
	look_at_descriptors();
	return attempts_main(argc, argv, attempts, COUNT(attempts));
}
