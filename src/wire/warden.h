/*
 * What the front may ask of the warden: one fixed-size request, one fixed-size reply, over a
 * SEQPACKET socket pair. No strings but ids, no paths, no descriptors: the warden decides where
 * everything is.
 *
 * Requests are answered in order, but for a KILL that takes its time. Sandboxes are named by id;
 * everything else about them (uid block, cgroups, directories, socket) follows from it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"

enum warden_op {
	WARDEN_BOOT =
		1, /* id, limits, boot id, root, flags → pid; its disk must be there; init listens
		    */
	WARDEN_LIMITS,  /* id, limits */
	WARDEN_USAGE,   /* id → usage */
	WARDEN_KILL,    /* id: kill every process, and wait for their end → usage before it */
	WARDEN_HALT,    /* the same, then remove every trace but the disk → its cpu time */
	WARDEN_DESTROY, /* the same, and the disk; fine if there is none */
	WARDEN_FREEZE,  /* id: stop every process where it is; EAGAIN: not all of them stand yet */
	WARDEN_RECLAIM, /* id: give its page cache back to the host, as far as that goes */
	WARDEN_THAW,    /* id */
	WARDEN_NEXT, /* id → the next id of which anything exists, enum warden_found, and what the
			kernel has killed of it; "" ends */
	WARDEN_OP_END
};

/* The parts of a sandbox that exist on the host. */
enum warden_found {
	WARDEN_FOUND_DISK = 1,
	WARDEN_FOUND_PROCESSES = 2,
	WARDEN_FOUND_FROZEN = 4 /* and it is stopped where it was */
};

struct warden_limits {
	int64_t memory; /* bytes */
	int64_t cpu;    /* millicores */
	int64_t pids;
};

struct warden_usage {
	int64_t memory;    /* bytes now */
	int64_t cpu_us;    /* used so far */
	int64_t pids;      /* now */
	int64_t oom_kills; /* so far */
};

#define WARDEN_VOLUMES_MAX 8
#define WARDEN_MOUNT_SIZE  128

/* A volume, and where it is mounted inside; without an id there is none. */
struct warden_volume {
	char id[ID_SIZE];
	char path[WARDEN_MOUNT_SIZE];
	uint8_t read_only;
};

/*
 * An absolute path of letters, digits and "._-", without "." and "..", that is neither the root nor
 * anything below what the system itself mounts.
 */
bool warden_mount_is_valid(const char path[WARDEN_MOUNT_SIZE]);

struct warden_request {
	uint32_t op;
	uint32_t sequence;
	char id[ID_SIZE];
	char root[ID_SIZE]; /* of a boot: the layer that holds its root; "": that of `base` */
	uint8_t boot_id[UUID_BYTES];
	struct warden_limits limits;
	struct warden_volume volumes[WARDEN_VOLUMES_MAX]; /* of a boot */
};

/* Whether each field is what it may be, whatever the operation; the limits, if it needs any. */
bool warden_request_is_valid(const struct warden_request *q);
bool warden_limits_are_valid(const struct warden_limits *l);

/* The step of a boot that failed, so that the API can say "mount of the root: No space left". */
enum warden_step {
	WARDEN_STEP_NONE,
	WARDEN_STEP_REQUEST, /* the request itself was refused */
	WARDEN_STEP_SLOT,
	WARDEN_STEP_DISK,
	WARDEN_STEP_CGROUP,
	WARDEN_STEP_USERNS,
	WARDEN_STEP_LAYERS,
	WARDEN_STEP_SOCKET,
	WARDEN_STEP_CLONE,
	WARDEN_STEP_JOIN_CGROUP,
	WARDEN_STEP_NETWORK,
	WARDEN_STEP_ROOT,
	WARDEN_STEP_USR,
	WARDEN_STEP_DEV,
	WARDEN_STEP_PROC,
	WARDEN_STEP_MASK,
	WARDEN_STEP_VOLUMES,
	WARDEN_STEP_ENTER,
	WARDEN_STEP_IDENTITY,
	WARDEN_STEP_SECCOMP,
	WARDEN_STEP_EXEC,
	WARDEN_STEP_KILL,
	WARDEN_STEP_END
};

const char *warden_step_name(enum warden_step step);

struct warden_reply {
	uint32_t op;
	uint32_t sequence;
	int32_t error; /* errno, 0 when done */
	uint32_t step; /* enum warden_step */
	int32_t pid;
	uint32_t flags;
	char id[ID_SIZE];
	struct warden_usage usage;
};
