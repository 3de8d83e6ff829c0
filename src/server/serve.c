/*
 * `bunker serve`: the process the user starts becomes the warden; the front is its child. When the
 * front dies the warden starts another: the port stays open meanwhile, sandboxes do not notice.
 * When the warden dies the front ends, too, and the next `bunker serve` finds every sandbox again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box/key/key_text.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/schedule.h"
#include "base/trim.h"
#include "server/certificates.h"
#include "server/config.h"
#include "server/front.h"
#include "server/listen.h"
#include "server/privileged.h"
#include "server/server.h"
#include "server/watchdog.h"

#define RESTARTS_MAX      5 /* in a row, each within RESTART_WINDOW */
#define RESTART_WINDOW_US (10 * 1000000)
#define LOCAL_KEY_SIZE    256 /* more than any key has */

static volatile bool stop_requested;
static struct certificates certificates;

static void request_stop(int number)
{
	(void)number;
	stop_requested = true;
}

/* Signals come only while the warden waits, so that this may call whatever it likes. */
static void look_at_certificates(int number)
{
	(void)number;
	certificates_look(&certificates);
}

/* Blocked but while the warden waits, so that none gets lost between a check and a wait; ends of
 * children it reads from a descriptor. */
static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = request_stop};
	sigset_t mask;
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Without certificates SIGHUP ends the server, as a terminal that goes away should. */
static int prepare_certificates(const struct config *c, struct error *e)
{
	const struct sigaction look = {.sa_handler = look_at_certificates};
	sigset_t mask;
	if (certificates_open(&certificates, c->tls_cert, c->tls_key, e) < 0)
		return -1;
	if (!c->tls_cert)
		return 0;
	sigemptyset(&mask);
	sigaddset(&mask, SIGHUP);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	sigaction(SIGHUP, &look, NULL);
	return 0;
}

static void restore_signals(void)
{
	sigset_t none;
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGALRM, SIG_DFL);
	if (certificates.chain_path)
		signal(SIGHUP, SIG_IGN); /* it is for root */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* ---- what only root can prepare for the front ---- */

/*
 * Its files, and the sockets of the inits, are those of an earlier front, whose uid was another if
 * this server has got other uids since. Nothing else is given away: no links, and nothing that was
 * not a front's.
 */
static void give_front_files(const struct warden *w, int dir_fd)
{
	autodir DIR *dir = fd_open_dir_at(dir_fd, ".");
	struct dirent *entry;
	struct stat st;
	while (dir && (entry = readdir(dir)) != NULL) {
		if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!(S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode)) || st.st_nlink != 1 ||
			st.st_uid == w->front_uid || st.st_uid < UID_BLOCK ||
			st.st_uid % UID_BLOCK != FRONT_UID)
			continue;
		if (fchownat(dir_fd, entry->d_name, w->front_uid, w->front_uid,
			    AT_SYMLINK_NOFOLLOW) < 0)
			log_warn("cannot give a file to the front", "error", strerror(errno));
	}
}

static int make_front_directory(const struct warden *w, const char *name, struct error *e)
{
	char path[WARDEN_PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", w->data, name);
	if ((mkdir(path, 0700) < 0 && errno != EEXIST) || chmod(path, 0700) < 0 ||
		lchown(path, w->front_uid, w->front_uid) < 0)
		return error_set_errno(e, errno, "cannot make %s", path);
	autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(e, errno, "cannot open %s", path);
	give_front_files(w, fd);
	return 0;
}

static int write_local_key(const struct warden *w, const char *key, struct error *e)
{
	autoclose int fd = openat(
		w->data_fd, "api-key", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fd_write_all(fd, key, strlen(key)) < 0 || fd_write_all(fd, "\n", 1) < 0)
		return error_set_errno(e, errno, "cannot write %s/api-key", w->data);
	return 0;
}

/* What the file has, if that is a key. */
static bool read_local_key(const struct warden *w, char key[LOCAL_KEY_SIZE])
{
	uint8_t hash[KEY_HASH_SIZE];
	autobuf text = {0};
	if (fd_read_file_at(w->data_fd, "api-key", &text, LOCAL_KEY_SIZE) < 0)
		return false;
	buf_append_char(&text, '\0');
	if (text.failed)
		return false;
	snprintf(key, LOCAL_KEY_SIZE, "%.*s", (int)strcspn(text.data, "\n"), text.data);
	return key_text_hash(key, hash);
}

/*
 * The file is for the CLI on this machine; the server itself keeps only a hash. It is made on the
 * first start, and again when somebody has removed it. Each front stores the hash anew: the one
 * that was there when the file was written may have died before it did.
 */
static int prepare_key(
	const struct warden *w, const struct config *c, char key[LOCAL_KEY_SIZE], struct error *e)
{
	if (read_local_key(w, key))
		return 0;
	key_text_generate(key);
	if (write_local_key(w, key, e) < 0)
		return -1;
	if (!c->no_auth && c->key_count == 0)
		fprintf(stderr,
			"bunker: made the first API key; it is shown this once:\n\n    %s\n\n"
			"bunker: the CLI on this machine finds it in %s/api-key\n",
			key, w->data);
	return 0;
}

/* ---- the two processes ---- */

static pid_t start_front(const struct privileged *p, struct front_config *f, int *warden_side)
{
	const struct keeper *k = &p->keeper;
	int pair[2];
	keeper_read_owner(k, f->disks.owner);
	f->disks.exist = disk_pool_has_disks(k->disks_fd);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid < 0) {
		close(pair[0]);
		close(pair[1]);
		return -errno;
	}
	if (pid == 0) {
		restore_signals();
		/* Of all the warden's descriptors it keeps four, or five. */
		f->warden_fd = dup2(pair[1], 100);
		f->listen_fd = dup2(f->listen_fd, 101);
		f->keeper_fd = dup2(k->front_pair[0], 102);
		f->network_fd = dup2(p->netns.front_pair[0], 103);
		fcntl(f->warden_fd, F_SETFD, FD_CLOEXEC);
		fcntl(f->listen_fd, F_SETFD, FD_CLOEXEC);
		fcntl(f->keeper_fd, F_SETFD, FD_CLOEXEC);
		fcntl(f->network_fd, F_SETFD, FD_CLOEXEC);
		if (f->certificates->pair[1] >= 0)
			f->certificates->pair[1] = dup3(f->certificates->pair[1], 104, O_CLOEXEC);
		close_range(3, 99, 0);
		close_range(f->certificates->pair[1] >= 0 ? 105 : 104, ~0u, 0);
		exit(front_main(f));
	}
	close(pair[1]);
	*warden_side = pair[0];
	return pid;
}

static int wait_for_front(pid_t pid)
{
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void server_serve_say_death(const struct config *c, int status)
{
	if (watchdog_has_killed())
		log_error("the front did not answer and was killed; starting another", "ms",
			log_num(c->watchdog_ms));
	else
		log_error("the front died; starting it again", "status", log_num(status));
}

static int server_serve_run(struct privileged *p, struct front_config *f)
{
	int restarts = 0;
	for (;;) {
		int fd = -1, status;
		int64_t started = clock_monotonic_us();
		*f->beats = 0;
		pid_t pid = start_front(p, f, &fd);
		if (pid < 0) {
			log_error("cannot start the front", "error", strerror(-pid));
			return 1;
		}
		trim_memory();
		watchdog_guard(pid);
		warden_serve(&p->warden, fd, pid, &stop_requested);
		close(fd);
		status = wait_for_front(pid);
		if (stop_requested || (WIFEXITED(status) && WEXITSTATUS(status) != 1))
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		bool quick = clock_monotonic_us() - started < RESTART_WINDOW_US;
		restarts = quick ? restarts + 1 : 0;
		server_serve_say_death(f->config, status);
		if (restarts > RESTARTS_MAX)
			return 1;
	}
}

static int server_serve_say(const struct error *e)
{
	fprintf(stderr, "bunker: %s\n", e->message);
	return 1;
}

/* Options that are wrong are the caller's fault, and told apart. */
static int say_of_options(const struct error *e)
{
	return server_serve_say(e) + (e->code == ERROR_INVALID_REQUEST);
}

static int set_log_level(const char *name, struct error *e)
{
	static const char *const names[] = {"error", "warn", "info", "debug"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(names[i], name) == 0) {
			log_set_level((enum log_level)i);
			return 0;
		}
	}
	return error_set(e, ERROR_INVALID_REQUEST, "there is no log level '%s'", name);
}

/* A process may get as many descriptors as we may have; raising that takes CAP_SYS_RESOURCE. */
static int settle_open_files(struct config *c, struct error *e)
{
	struct rlimit limit;
	rlim_t wanted = (rlim_t)c->maxima.open_files;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return error_set_errno(e, errno, "cannot read the limit of open files");
	if (limit.rlim_max >= wanted)
		return 0;
	struct rlimit raised = {limit.rlim_cur, wanted};
	if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
		return 0;
	if (c->defaults.open_files > (int64_t)limit.rlim_max)
		return error_set(e, ERROR_INVALID_REQUEST,
			"--open-files is %lld, but this host allows a process %llu (ulimit -Hn)",
			(long long)c->defaults.open_files, (unsigned long long)limit.rlim_max);
	log_warn("a sandbox may ask for no more open files than this host allows", "max-open-files",
		log_num(limit.rlim_max));
	c->maxima.open_files = (int64_t)limit.rlim_max;
	return 0;
}

static int serve_check(const struct config *c, bool is_loopback, struct error *e)
{
	if (c->no_auth && !is_loopback)
		return error_set(e, ERROR_INVALID_REQUEST,
			"--no-auth is only allowed on a loopback address, and %s is none",
			c->listen);
	return 0;
}

static int server_serve_serve(const struct config *c, struct error *e)
{
	static struct privileged p;
	struct warden *w = &p.warden;
	static char key[LOCAL_KEY_SIZE];
	char address[LISTEN_NAME_SIZE];
	bool is_loopback = false;
	int *announced = mmap(
		NULL, sizeof *announced, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int listen_fd = listen_open(c->listen, address, &is_loopback, e);
	if (listen_fd < 0 || announced == MAP_FAILED || serve_check(c, is_loopback, e) < 0)
		return say_of_options(e);
	if (prepare_certificates(c, e) < 0)
		return say_of_options(e);
	if (privileged_open(&p, c, e) < 0 || make_front_directory(w, "front", e) < 0 ||
		make_front_directory(w, "front/spool", e) < 0 ||
		make_front_directory(w, "front/contexts", e) < 0 || prepare_key(w, c, key, e) < 0)
		return server_serve_say(e);
	give_front_files(w, w->run_fd);
	struct front_config f = {
		.config = c,
		.beats = watchdog_open(c->watchdog_ms, c->tls_cert ? look_at_certificates : NULL),
		.certificates = &certificates,
		.data = w->data,
		.local_key = key,
		.address = address,
		.listen_fd = listen_fd,
		.uid = w->front_uid,
		.announced = announced,
	};
	int status = server_serve_run(&p, &f);
	privileged_close(&p);
	return status;
}

int server_check_root(struct error *e)
{
	if (geteuid() == 0)
		return 0;
	return error_set(e, ERROR_PERMISSION_DENIED,
		"it must be started by root (sudo bunker serve): it makes namespaces, mounts, cgroups and "
		"uid blocks for the sandboxes. Running without root is not supported yet");
}

int serve_main(int argc, char **argv)
{
	struct error e = {0};
	static struct config c; /* the options point into its file, until the end */
	if (config_load(&c, argc, argv, &e) < 0 || set_log_level(c.log_level, &e) < 0) {
		server_serve_say(&e);
		return 2;
	}
	if (c.help) {
		config_print_help();
		return 0;
	}
	if (server_check_root(&e) < 0)
		return server_serve_say(&e);
	log_set_process("warden");
	fault_open();
	prctl(PR_SET_NAME, "bunker-warden", 0, 0, 0);
	schedule_promptly();
	/* When the machine is out of memory it takes what sandboxes run, and us last. Without the
	 * right to say so we are what everybody is. */
	(void)fd_write_file_at(AT_FDCWD, "/proc/self/oom_score_adj", "-900");
	if (settle_open_files(&c, &e) < 0)
		return say_of_options(&e);
	catch_signals();
	return server_serve_serve(&c, &e);
}
