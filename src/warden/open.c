/*
 * What the warden does once, before it serves: find its place, build what all sandboxes share.
 * Every step must work; there is no boot with a layer missing.
 */
#include "warden/warden.h"

#include <errno.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define LOCK_TRIES    100
#define LOCK_PAUSE_US 10000

/* ---- who we are ---- */

static int take_instance(struct warden *w, struct error *e)
{
	int r = instance_take(w->data_fd, w->instance);
	return r < 0 ? error_set_errno(e, r, "cannot write %s/instance", w->data) : 0;
}

/* One server a data directory. Of one that was killed this moment a child may still hold it, on its
 * way to exec. */
static int lock_data(struct warden *w, struct error *e)
{
	int r = -EWOULDBLOCK;
	for (int i = 0; i < LOCK_TRIES && r == -EWOULDBLOCK; i++) {
		if (i > 0)
			usleep(LOCK_PAUSE_US);
		r = flock(w->data_fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	}
	if (r == -EWOULDBLOCK)
		return error_set(e, ERROR_UNAVAILABLE,
			"another bunker server is running with the data directory %s", w->data);
	return r < 0 ? error_set_errno(e, r, "cannot lock %s", w->data) : 0;
}

/* ---- all of it ---- */

static int seal_init(struct warden *w, struct error *e)
{
	w->init_fd = fd_seal_copy("bunker-init", w->config.init_image, w->config.init_size);
	return w->init_fd < 0 ? error_set_errno(e, w->init_fd, "cannot make a sealed copy of init")
			      : 0;
}

static const struct {
	const char *what; /* as the doctor calls it */
	int (*run)(struct warden *w, struct error *e);
} steps[] = {
	{"mounts", host_enter_private_mounts},
	{"data directory", disk_make_directories},
	{"mounts", host_make_empty_mounts},
	{"data directory", lock_data},
	{"data directory", take_instance},
	{"init", seal_init},
	{"seccomp", seccomp_build},
	{"cgroups", cgroup_open},
	{"uids", uids_open},
};

int warden_open(struct warden *w, const struct warden_config *config, struct error *e)
{
	*w = (struct warden){.config = *config, .cgroup_v2_fd = -1};
	snprintf(w->data, sizeof w->data, "%s", config->data);
	umask(022); /* modes of files made for sandboxes must not depend on the caller's umask */
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		w->opening = steps[i].what;
		if (steps[i].run(w, e) < 0) {
			cgroup_close(w);
			return -1;
		}
	}
	return 0;
}

void warden_close(struct warden *w)
{
	/* No event tells of it, and nothing else is left to do. What the kernel has not let go of
	 * after this long is found by the next start. */
	for (int i = 0; i < 50 && boot_retry_cleanups(w, SIZE_MAX); i++)
		usleep(10000);
	cgroup_close(w);
}

void warden_unmount(const char *data)
{
	char path[WARDEN_PATH_MAX];
	snprintf(path, sizeof path, "%s/stage/cgroup2", data);
	umount2(path, MNT_DETACH);
}
