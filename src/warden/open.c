/*
 * What the warden does once, before it serves: find its place, build what all sandboxes share.
 * Every step must work; there is no boot with a layer missing.
 */
#include "warden/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"

#define PLACE_SIZE    40
#define LOCK_TRIES    100
#define LOCK_PAUSE_US 10000

/* ---- who we are ---- */

/*
 * The file data/instance has "PLACE NAME": where the data is, and the name of its cgroups for as
 * long as it stays there. A copy is at another place and gets another name, so that it never finds,
 * and never ends, sandboxes of the original. Version 0.2 wrote "RANGE NAME", and its cgroups have
 * both in their name.
 */
static bool read_instance(struct warden *w, const char *place)
{
	autobuf text = {0};
	char where[PLACE_SIZE], name[sizeof w->instance];
	if (fd_read_file_at(w->data_fd, "instance", &text, 64) < 0)
		return false;
	buf_append_char(&text, '\0');
	if (text.failed || sscanf(text.data, "%39s %15s", where, name) != 2 || strlen(name) < 8 ||
		strspn(name, "-abcdefghijklmnopqrstuvwxyz0123456789") != strlen(name))
		return false;
	bool old = strspn(where, "0123456789") == strlen(where);
	snprintf(w->instance, sizeof w->instance, "%.3s%s%.11s", old ? where : "", old ? "-" : "",
		name);
	return old || strcmp(where, place) == 0;
}

static int take_instance(struct warden *w, struct error *e)
{
	struct stat st = {0};
	char place[PLACE_SIZE], text[64], id[ID_SIZE];
	fstat(w->data_fd, &st);
	snprintf(place, sizeof place, "%jx:%jx", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	if (!read_instance(w, place)) {
		id_generate(id);
		snprintf(w->instance, sizeof w->instance, "%.8s", id);
	}
	snprintf(text, sizeof text, "%s %s\n", place, w->instance);
	int r = fd_keep_file_at(w->data_fd, "instance", text);
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
