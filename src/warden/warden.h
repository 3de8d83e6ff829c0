/*
 * The warden: the only process with privilege. It boots, limits, measures and destroys sandboxes
 * for the front, which it does not trust: requests are fixed structs (wire/warden.h), checked
 * against the table in ops.c; names of files, cgroups and uids are made here, from nothing but a
 * validated id.
 *
 * It keeps no state that it could not find again in the kernel: a sandbox is a cgroup named by its
 * id under "bunker-RANGE-INSTANCE"; the cgroup's owner tells the uid block, its first process is
 * init.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/id.h"
#include "wire/warden.h"

#define UID_BLOCK       65536u
#define UID_BLOCKS      4096u /* sandboxes a server can have at once */
#define UID_RANGES      13u   /* servers a host can have at once */
#define UID_RANGE_SIZE  (UID_BLOCK * UID_BLOCKS)
#define DATA_PATH_MAX   72 /* so that a socket below it fits into sun_path */
#define WARDEN_PATH_MAX 256

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

struct warden {
	char data[DATA_PATH_MAX + 1];
	uid_t front_uid;
	unsigned uid_range;
	char instance[9];
	int lock_fd;

	int data_fd; /* the data directory */
	int run_fd;  /* data/run: the sockets of the inits */
	struct warden_disks disks;

	enum cgroup_mode cgroup_mode;
	int cgroup_v2_fd;                   /* our directory on v2 */
	int cgroup_v1_fd[CONTROLLER_COUNT]; /* our directories on v1; -1 on a pure v2 host */

	int init_fd; /* sealed copy of the static init */
	struct sock_fprog *filter;
	bool lends_network; /* a boot may ask for the host's */

	uint8_t slot_used[UID_BLOCKS / 8];
	unsigned slot_next;

	/* A child that is neither the front nor a sandbox has ended; may be NULL. */
	void (*child_ended)(void *arg, pid_t pid);
	void *child_ended_arg;
};

struct warden_config {
	const char *data;
	const void *init_image;
	size_t init_size;
	bool lends_network;
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

int host_enter_private_mounts(const char *data, struct error *e);

/* ---- cgroup.c ---- */

int cgroup_open(struct warden *w, struct error *e);
void cgroup_close(struct warden *w);
int cgroup_create(
	struct warden *w, const char *id, uid_t owner, const struct warden_limits *limits);
int cgroup_set_limits(struct warden *w, const char *id, const struct warden_limits *limits);
int cgroup_read_usage(struct warden *w, const char *id, struct warden_usage *usage);
/* Microseconds; 0 when it is not there any more. */
int64_t cgroup_read_cpu(struct warden *w, const char *id);
/* The v2 directory of one sandbox. */
int cgroup_dir(struct warden *w, const char *id);
/* The same for init: the root of a mount of its own, from which no `..` leads anywhere. */
int cgroup_detached_dir(struct warden *w, const char *id);
/* Called in the new process: join the v1 controllers. */
int cgroup_join_v1(struct warden *w, const char *id);
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
/* Find the uid blocks that living sandboxes use. */
int cgroup_scan_slots(struct warden *w);

/* ---- seccomp.c ---- */

int seccomp_build(struct warden *w, struct error *e);

/* ---- userns.c ---- */

/* A user namespace whose 0..65535 are the host's base..base+65535; a descriptor or -errno. */
int userns_create(uid_t base);

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
	bool host_network;
	const uint8_t *boot_id;
	const struct warden_volume *volumes; /* WARDEN_VOLUMES_MAX of them */
	struct warden_limits limits;
	uid_t uid_base;
	int userns_fd;
	int listen_fd;
	int cgroup_fd;
	int report_fd; /* each side's own end */
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
/* Cgroups that were still busy when their sandbox was destroyed; true while some are left. */
bool boot_retry_cleanups(struct warden *w);
unsigned slot_of_uid(const struct warden *w, uid_t uid);

/* ---- inside.c: runs in the new namespaces, ends in init ---- */

void inside_main(struct warden *w, struct boot *b) __attribute__((noreturn));
