#include "wire/warden.h"

#include <string.h>

static const char *const step_names[WARDEN_STEP_END] = {
	[WARDEN_STEP_NONE] = "none",
	[WARDEN_STEP_REQUEST] = "checking the request",
	[WARDEN_STEP_SLOT] = "finding a free uid block",
	[WARDEN_STEP_DISK] = "finding the sandbox's disk",
	[WARDEN_STEP_CGROUP] = "making the cgroups",
	[WARDEN_STEP_USERNS] = "making the user namespace",
	[WARDEN_STEP_LAYERS] = "idmapping the template's layers",
	[WARDEN_STEP_SOCKET] = "making init's socket",
	[WARDEN_STEP_CLONE] = "entering new namespaces",
	[WARDEN_STEP_JOIN_CGROUP] = "joining the cgroups",
	[WARDEN_STEP_NETWORK] = "bringing up loopback",
	[WARDEN_STEP_ROOT] = "mounting the root",
	[WARDEN_STEP_USR] = "mounting /usr",
	[WARDEN_STEP_DEV] = "mounting /dev",
	[WARDEN_STEP_PROC] = "mounting /proc",
	[WARDEN_STEP_MASK] = "masking /proc",
	[WARDEN_STEP_VOLUMES] = "mounting the volumes",
	[WARDEN_STEP_ENTER] = "entering the root",
	[WARDEN_STEP_IDENTITY] = "becoming the sandbox's root",
	[WARDEN_STEP_SECCOMP] = "loading the seccomp filter",
	[WARDEN_STEP_EXEC] = "starting init",
	[WARDEN_STEP_KILL] = "killing the sandbox's processes",
};

const char *warden_step_name(enum warden_step step)
{
	return step < WARDEN_STEP_END ? step_names[step] : "unknown step";
}

static bool warden_is_reserved(const char *path)
{
	static const char *const reserved[] = {"/proc", "/dev", "/sys"};
	for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
		size_t len = strlen(reserved[i]);
		if (strncmp(path, reserved[i], len) == 0 && (path[len] == '/' || path[len] == '\0'))
			return true;
	}
	return false;
}

bool warden_mount_is_valid(const char path[WARDEN_MOUNT_SIZE])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	if (strnlen(path, WARDEN_MOUNT_SIZE) == WARDEN_MOUNT_SIZE || path[0] != '/')
		return false;
	for (const char *at = path; *at;) {
		size_t len = strspn(++at, letters);
		if (len == 0 || (at[0] == '.' && (len == 1 || (len == 2 && at[1] == '.'))))
			return false;
		at += len;
		if (*at && *at != '/')
			return false;
	}
	return path[1] != '\0' && !warden_is_reserved(path);
}

bool warden_limits_are_valid(const struct warden_limits *l)
{
	return l->memory >= (4 << 20) && l->memory <= (INT64_C(1) << 46) && l->cpu >= 10 &&
	       l->cpu <= 1024000 && l->pids >= 2 && l->pids <= (1 << 22);
}

static bool warden_id_is_valid(const char id[ID_SIZE])
{
	return id[ID_SIZE - 1] == '\0' && (id[0] == '\0' || id_is_valid(id));
}

static bool warden_volume_is_valid(const struct warden_volume *v)
{
	if (v->id[0] == '\0')
		return true;
	return warden_id_is_valid(v->id) && v->read_only <= 1 && warden_mount_is_valid(v->path);
}

bool warden_request_is_valid(const struct warden_request *q)
{
	for (size_t i = 0; i < WARDEN_VOLUMES_MAX; i++)
		if (!warden_volume_is_valid(&q->volumes[i]))
			return false;
	return warden_id_is_valid(q->id) && warden_id_is_valid(q->root);
}
