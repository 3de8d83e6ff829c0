/*
 * The warden: the only process with privilege. It boots, limits, measures and destroys sandboxes
 * for the front, which it does not trust: requests are fixed structs (wire/warden.h), checked
 * against the table in ops.c; names of files, cgroups and uids are made here, from nothing but a
 * validated id.
 *
 * It keeps no state that it could not find again in the kernel: a sandbox is a cgroup named by its
 * id under "bunker-INSTANCE"; the cgroup's owner tells the uid block, its first process is init.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/id.h"
#include "base/instance.h"
#include "wire/warden.h"

#define UID_BLOCK        65536u /* uids of a sandbox */
#define UID_CHUNKS       256u   /* of the kernel; a server takes one at a time */
#define FRONT_UID        65535u /* the front's, modulo UID_BLOCK, in every version */
#define EGRESS_UID       65534u /* so is bunker-egress's, in the same block */
#define BROKER_UID       65533u /* so are those of bunker-brokers, from here down */
#define DATA_PATH_MAX    72     /* so that a socket below it fits into sun_path */
#define WARDEN_PATH_MAX  256
#define CGROUP_NAME_SIZE 32

enum cgroup_mode {
	CGROUP_V1,
	CGROUP_V2,
	CGROUP_HYBRID /* controllers on v1, kill and freeze on v2 */
};

enum cgroup_controller {
	CONTROLLER_MEMORY,
	CONTROLLER_CPU,
	CONTROLLER_PIDS,
	CONTROLLER_COUNT
};

/* What the keeper has made: where the disks are, and who takes them apart. All borrowed. */
struct warden_disks {
	int boxes_fd;
	int trash_fd;
	int sweeper_fd;
	const char *template_path;
};

/* The blocks of uids, see uids.c. */
struct uids {
	int lock_fd;
	int old_fd[UID_CHUNKS / 16];
	bool ours[UID_CHUNKS];
	uint8_t used[UID_CHUNKS][32]; /* a bit for each block of a chunk */
	unsigned next;
};

struct warden_config {
	const char *data; /* at most DATA_PATH_MAX bytes */
	const void *init_image;
	size_t init_size;
	struct warden_limits totals; /* of all sandboxes together, but their processor time */
};

struct warden {
	struct warden_config config;
	const char *opening; /* what warden_open was about when it failed */
	char data[DATA_PATH_MAX + 1];
	char instance[INSTANCE_SIZE];
	uid_t front_uid;
	struct uids uids;

	int data_fd;         /* the data directory */
	int run_fd;          /* data/run: the sockets of the inits */
	int empty_mounts_fd; /* a mount namespace with nothing in it */
	struct warden_disks disks;

	enum cgroup_mode cgroup_mode;
	int cgroup_v2_fd;                   /* our directory on v2 */
	int cgroup_v1_fd[CONTROLLER_COUNT]; /* our directories on v1; -1 on a pure v2 host */

	int init_fd; /* sealed copy of the static init */
	struct sock_fprog *filter;
	uint64_t netlink_number; /* with it init makes sockets; in the filter */

	/* A child that is neither the front nor a sandbox has ended; may be NULL. */
	void (*child_ended)(void *arg, pid_t pid);
	void *child_ended_arg;
};

/* Everything that is done once, before the first request: fails closed, with a sentence. The disks
 * are to be given before the first boot. */
int warden_open(struct warden *w, const struct warden_config *config, struct error *e);
/*
 * Serve requests on fd until the front closes it. When *stop becomes true the front is told to end;
 * the signals whose handlers set it must be blocked by the caller.
 */
void warden_serve(struct warden *w, int fd, pid_t front, const volatile bool *stop);
/* Give back the cgroups when nothing lives in them any more. */
void warden_close(struct warden *w);
/* After warden_close, for a trial: nothing of ours is mounted below the data directory any more. */
void warden_unmount(const char *data);

/* ---- host.c ---- */

int host_enter_private_mounts(struct warden *w, struct error *e);
/* What is below a sandbox's root: nothing. */
int host_make_empty_mounts(struct warden *w, struct error *e);

/* ---- uids.c ---- */

/* Takes the chunks of our living sandboxes, and a block for the front. */
int uids_open(struct warden *w, struct error *e);
/* A block that nobody uses: its first uid. -EUSERS when the host has no more. */
int uids_take(struct warden *w, uid_t *ret);
void uids_release(struct warden *w, uid_t first);
/* How many blocks are in use. */
unsigned uids_count(const struct warden *w);

/* ---- cgroup.c ---- */

/* The directory of this server's sandboxes. */
void cgroup_own_name(const struct warden *w, char out[CGROUP_NAME_SIZE]);
int cgroup_open(struct warden *w, struct error *e);
void cgroup_close(struct warden *w);
int cgroup_create(struct warden *w, const char *id, uid_t owner);
/* After that, and when its namespaces have been made: the parts for init and for the rest, with
 * their limits, and the descriptors of b that lead there. */
struct boot;
int cgroup_divide(struct warden *w, struct boot *b);
int cgroup_set_limits(struct warden *w, const char *id, const struct warden_limits *limits);
int cgroup_read_usage(struct warden *w, const char *id, struct warden_usage *usage);
/* Microseconds; 0 when it is not there any more. */
int64_t cgroup_read_cpu(struct warden *w, const char *id);
int64_t cgroup_read_oom_kills(struct warden *w, const char *id);
/* The v2 directory of one sandbox. */
int cgroup_dir(struct warden *w, const char *id);
/* Whether the controller of processor time is on v2. */
bool cgroup_has_cpu_on_v2(const struct warden *w);
/* Called in the new process: joins the v1 controllers, and hides what is above. */
int cgroup_join(struct warden *w, const struct boot *b);
/* Everything in it stops where it is; -EAGAIN when something has not done so yet. */
int cgroup_freeze(struct warden *w, const char *id, bool freeze);
/* Opens the file that reclaims the sandbox's page cache; writing to it may take long. */
int cgroup_reclaim_file(struct warden *w, const char *id);
/* WARDEN_FOUND_PROCESSES, WARDEN_FOUND_FROZEN. */
uint32_t cgroup_state(struct warden *w, const char *id);
/* Something that was killed: init's end is the end of its pid namespace, and so of everything
 * inside. */
struct dying {
	int pidfd;     /* -1: it is dead */
	int mounts_fd; /* keeps its mounts, or -1 */
};

/* Kills everything, without waiting; 0 also when there is nothing. The descriptors are the
 * caller's. */
int cgroup_kill(struct warden *w, const char *id, struct dying *d);
bool cgroup_is_dead(const struct dying *d, int wait_ms);
/* 0 when nothing is left, -EBUSY to try again later. */
int cgroup_remove(struct warden *w, const char *id);
/* One cgroup with those below, of which init has made most: no more levels than we know. */
int cgroup_remove_tree(int parent_fd, const char *name, int levels);

/* ---- spare.c: cpu_fd is our directory on v1, or -1 ---- */

/* Keeps a dead sandbox's processor cgroup, if there is nothing in it. */
void spare_keep(int cpu_fd, const char *id);
/* Gives one to a new sandbox; false: there is none. */
bool spare_take(int cpu_fd, const char *id);
void spare_remove_all(int cpu_fd);

/* ---- seccomp.c ---- */

int seccomp_build(struct warden *w, struct error *e);

/* ---- userns.c ---- */

/*
 * A user namespace whose 0..65535 are the host's base..base+65535; a descriptor or -errno. With a
 * v2 cgroup, also a cgroup namespace with that as its root.
 */
int userns_create(uid_t base, int cgroup_fd, int *cgroupns_fd);

/* ---- disk.c ---- */

int disk_make_directories(struct warden *w, struct error *e);
bool disk_exists(const struct warden *w, const char *id);
/* Out of sight at once; the sweeper frees the space. */
void disk_discard(struct warden *w, const char *id);
/* Takes the descriptor and has it written to by the sweeper, which may wait. */
void disk_reclaim(struct warden *w, int file_fd);
/* Takes the descriptor: unmounting syncs the whole file system below, and nobody shall wait for
 * that. */
void disk_release_mounts(struct warden *w, int mounts_fd);

/* ---- boot.c ---- */

struct boot {
	char id[ID_SIZE];
	char root[ID_SIZE]; /* "": that of `base` */
	const uint8_t *boot_id;
	const struct warden_volume *volumes; /* WARDEN_VOLUMES_MAX of them */
	struct warden_limits limits;
	uid_t uid_base;
	int userns_fd;
	int cgroupns_fd; /* -1: init makes its own */
	int listen_fd;
	int cgroup_fd;      /* where init makes a cgroup for each process */
	int quota_fd;       /* where a process that is not born under the quota writes 0 */
	int init_cgroup_fd; /* where init is born */
	int netlink_fd;     /* where others ask init for them */
	int report_fd;      /* each side's own end */
	enum warden_step step;
	int error;
	pid_t pid;
};

/*
 * A boot: first what has a name on the host and the clone, which then goes its own way; when it has
 * ended, what became of it. 0 with b->pid, or negative with b->step and b->error; on failure
 * nothing is left behind but the disk, which was there before.
 */
int boot_begin(struct warden *w, struct boot *b);
bool boot_has_ended(const struct boot *b);
/* Waits for its end. */
int boot_finish(struct warden *w, struct boot *b);
/* Closes what it holds, when it is dead. */
void boot_bury(struct warden *w, struct dying *d);
/* Ends it and removes every trace, of its disk only when that is not kept. */
int boot_end(struct warden *w, const char *id, bool keep_disk);
/* Cgroups that were left when their sandbox was destroyed: where removing them takes long, no more
 * than max. True while some are left. */
bool boot_retry_cleanups(struct warden *w, size_t max);

/* ---- inside.c: runs in the new namespaces, ends in init ---- */

void inside_main(struct warden *w, struct boot *b) __attribute__((noreturn));
