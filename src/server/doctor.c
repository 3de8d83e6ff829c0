/*
 * `bunker doctor`: what this host gives, found out by trying. The last line boots a sandbox in a
 * directory of its own and takes it down again, through the same code that the server uses.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/landlock.h"
#include "broker/tls.h"
#include "json/json.h"
#include "server/config.h"
#include "server/confine.h"
#include "server/network.h"
#include "server/privileged.h"
#include "server/server.h"
#include "server/totals.h"

#define CHECKS_MAX 24
#define TRIAL_POOL (INT64_C(1) << 30)

struct check {
	const char *name;
	bool ok;
	bool optional;
	char detail[640];
	const char *advice;
};

struct report {
	struct check checks[CHECKS_MAX];
	size_t count;
};

static struct check *doctor_add(struct report *r, const char *name, bool ok, const char *advice)
{
	struct check *c = &r->checks[r->count++];
	*c = (struct check){.name = name, .ok = ok, .advice = advice};
	return c;
}

/* ---- the checks ---- */

static void check_root(struct report *r)
{
	struct check *c =
		doctor_add(r, "root", geteuid() == 0, "start it as root: sudo bunker doctor");
	snprintf(c->detail, sizeof c->detail, "uid %d", (int)geteuid());
}

static void check_kernel(struct report *r)
{
	struct utsname u;
	int major = 0, minor = 0;
	uname(&u);
	sscanf(u.release, "%d.%d", &major, &minor);
	struct check *c = doctor_add(r, "kernel", major > 5 || (major == 5 && minor >= 19),
		"Linux 5.19 or newer is needed, for idmapped layers below overlayfs");
	snprintf(c->detail, sizeof c->detail, "%s", u.release);
}

static void check_landlock(struct report *r)
{
	int version = landlock_version();
	struct check *c = doctor_add(r, "landlock", version > 0,
		"the front and the readers of disks are confined by uid and seccomp only; a kernel with Landlock adds a layer");
	c->optional = true;
	snprintf(c->detail, sizeof c->detail, version ? "version %d" : "not in this kernel",
		version);
}

static void check_seccomp(struct report *r)
{
	struct check *c = doctor_add(r, "seccomp", prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0,
		"the kernel needs CONFIG_SECCOMP_FILTER");
	snprintf(c->detail, sizeof c->detail, "filter mode");
}

static const char *cgroup_mode_name(enum cgroup_mode mode)
{
	return mode == CGROUP_V2       ? "v2"
	       : mode == CGROUP_HYBRID ? "hybrid: limits on v1, kill and freeze on v2"
				       : "v1, with a v2 mount of our own for kill and freeze";
}

static void check_totals(struct report *r, const struct warden *w)
{
	struct totals_host host = totals_of_host();
	snprintf(doctor_add(r, "reserve", true, NULL)->detail, sizeof r->checks->detail,
		"all sandboxes together have at most %lld of %lld MiB memory and %lld of %lld processes",
		(long long)w->config.totals.memory >> 20, (long long)host.memory >> 20,
		(long long)w->config.totals.pids, (long long)host.pids);
}

static void check_disks(struct report *r, const struct keeper *k)
{
	static const char *const kinds[DISK_POOL_KIND_END] = {
		[DISK_POOL_BTRFS] = "btrfs: snapshots and forks take milliseconds",
		[DISK_POOL_LOOP] = "a btrfs in a file: snapshots and forks take milliseconds",
		[DISK_POOL_DIRECTORY] = "plain directories",
	};
	struct check *c = doctor_add(r, "disks",
		k->disk_pool != DISK_POOL_DIRECTORY && k->quota != QUOTA_NONE,
		"disk limits and quick copies need a btrfs: put the data directory on one, or install "
		"btrfs-progs and have loop devices");
	c->optional = true;
	snprintf(c->detail, sizeof c->detail, "%s%s%s%s", kinds[k->disk_pool],
		k->quota == QUOTA_NONE ? "" : "; disk limits are enforced",
		k->disk_pool_reason[0] ? "; " : "", k->disk_pool_reason);
}

static void check_boot(struct report *r, struct privileged *p)
{
	static const uint8_t boot_id[UUID_BYTES];
	struct boot b = {.limits = {256 << 20, 1000, 64}, .boot_id = boot_id};
	struct disk_name disk = {.kind = DISK_BOX}, none = {0};
	int64_t frozen_us;
	id_generate(b.id);
	memcpy(disk.id, b.id, ID_SIZE);
	int64_t began = clock_monotonic_us();
	int made = disk_make(&p->keeper, &disk, &none, 64 << 20, &frozen_us);
	if (made < 0) {
		b.step = WARDEN_STEP_DISK;
		b.error = -made;
	}
	int ok = made == 0 && boot_begin(&p->warden, &b) == 0 && boot_finish(&p->warden, &b) == 0;
	int64_t took = clock_monotonic_us() - began;
	struct check *c = doctor_add(r, "sandbox", ok, "the step that failed says what is missing");
	if (ok)
		snprintf(c->detail, sizeof c->detail,
			"user, mount, pid, net, ipc, uts and cgroup namespaces, idmapped overlay root and "
			"/usr, masked /proc, seccomp: booted in %.1f ms",
			(double)took / 1000);
	else
		snprintf(c->detail, sizeof c->detail, "%s: %s", warden_step_name(b.step),
			strerror(b.error));
	boot_end(&p->warden, b.id, false);
}

static void check_egress(struct report *r)
{
	enum network_step step;
	bool ok = netns_probe(&step) == 0;
	struct check *c = doctor_add(r, "egress", ok,
		"sandboxes can have no network but none, and E2B's get that where they ask for no list; it takes a kernel with CONFIG_BPF_SYSCALL and IPv6");
	c->optional = true;
	if (ok)
		snprintf(c->detail, sizeof c->detail,
			"sk_lookup: sandboxes can have a network; nothing of the host's is changed");
	else
		snprintf(c->detail, sizeof c->detail, "%s failed", network_step_name(step));
}

/* The second wall around bunker-egress, raised for a cgroup in which nobody is. */
static void check_guard(struct report *r, const struct warden *w, const struct config *config)
{
	static const char trial[] = "doctor";
	int error = mkdirat(w->cgroup_v2_fd, trial, 0755) < 0 && errno != EEXIST ? -errno : 0;
	autoclose int cgroup = openat(w->cgroup_v2_fd, trial, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (error == 0)
		error = cgroup < 0 ? -errno : netns_raise_wall(cgroup, &config->egress);
	unlinkat(w->cgroup_v2_fd, trial, AT_REMOVEDIR);
	struct check *c = doctor_add(r, "address guard", error == 0,
		"sandboxes can have no network but none; it takes a kernel with CONFIG_CGROUP_BPF");
	c->optional = true;
	if (error == 0)
		snprintf(c->detail, sizeof c->detail,
			"cgroup BPF: bunker-egress cannot reach this host or private networks, whatever it decides");
	else
		snprintf(c->detail, sizeof c->detail, "missing: %s", strerror(-error));
}

/* Who is asked for sandboxes' names. */
static void check_resolvers(struct report *r)
{
	struct egress_config egress = {0};
	size_t len = 0;
	network_find_resolvers(&egress);
	struct check *c = doctor_add(r, "resolver", egress.resolver_count > 0,
		"sandboxes with a network resolve no names: give one with --resolver");
	c->optional = true;
	snprintf(c->detail, sizeof c->detail, "none in /etc/resolv.conf");
	for (uint32_t i = 0; i < egress.resolver_count; i++) {
		char address[ADDRESS_TEXT_SIZE];
		address_format(&egress.resolvers[i].address, address);
		len += (size_t)snprintf(
			c->detail + len, sizeof c->detail - len, "%s%s", i ? ", " : "", address);
	}
}

/* Whom sandboxes trust beside whom their images do. */
static void check_sandbox_ca(struct report *r, struct config *config)
{
	struct error e = {0};
	const char *file = getenv("BUNKER_SANDBOX_CA");
	bool ok = sandbox_ca_load(&config->sandbox_ca, file, &e) == 0;
	struct check *c = doctor_add(r, "sandbox CA", ok,
		"the server does not start like this: give another file with --sandbox-ca");
	if (ok)
		snprintf(c->detail, sizeof c->detail,
			"%d certificates of %s are trusted in sandboxes", config->sandbox_ca.count,
			file ? file : SANDBOX_CA_DIRECTORY);
	else
		snprintf(c->detail, sizeof c->detail, "%s", e.message);
}

/* What the certificates of hosts with rules are checked against. */
static void check_trust_store(struct report *r, const struct config *config)
{
	int count = tls_count_trusted(config->upstream_ca);
	struct check *c = doctor_add(r, "trust store", count > 0,
		"requests to hosts with rules are answered with 502: install ca-certificates, or name a file with --upstream-ca");
	c->optional = true;
	if (count > 0)
		snprintf(c->detail, sizeof c->detail, "%s, %d certificates", config->upstream_ca,
			count);
	else
		snprintf(c->detail, sizeof c->detail, "%s: no certificates", config->upstream_ca);
}

/* One that is closed to others is opened by the server, not by us. */
static bool is_open_directory(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & S_IXOTH);
}

static void report_failure(struct report *r, const struct privileged *p, const struct error *e)
{
	const char *opening = p->warden.opening ? p->warden.opening : "data directory";
	const char *what = p->warden_open ? "disks" : opening;
	const char *advice = "the message says what is missing";
	if (strcmp(what, "uids") == 0)
		advice =
			"end a server that is not needed, with `bunker serve --drain`: sandboxes "
			"keep their uids as long as they live. Each /sys/fs/cgroup/bunker-NAME (or "
			"/sys/fs/cgroup/unified/bunker-NAME) is a server, by the name in the file "
			"`instance` of its data directory";
	snprintf(doctor_add(r, what, false, advice)->detail, sizeof r->checks->detail, "%s",
		e->message);
}

/*
 * Everything the server does at its start, in a directory in its data, which may have a file system
 * of its own, or beside the place where it will be.
 */
static void check_warden(struct report *r, const struct config *config)
{
	static struct privileged p;
	struct config trial = *config;
	struct error e = {0};
	char directory[WARDEN_PATH_MAX];
	snprintf(directory, sizeof directory, "%s%cdoctor-XXXXXX", config->data,
		is_open_directory(config->data) ? '/' : '.');
	if (!mkdtemp(directory)) {
		struct check *c =
			doctor_add(r, "data directory", false, "choose another one with --data");
		snprintf(c->detail, sizeof c->detail, "%s: %s", directory, strerror(errno));
		return;
	}
	trial.data = directory;
	bool ok = privileged_open(&p, &trial, &e) == 0;
	if (!ok)
		report_failure(r, &p, &e);
	if (ok) {
		struct check *c = doctor_add(r, "cgroups", true, NULL);
		snprintf(c->detail, sizeof c->detail, "%s", cgroup_mode_name(p.warden.cgroup_mode));
		check_totals(r, &p.warden);
		check_disks(r, &p.keeper);
		check_boot(r, &p);
		check_egress(r);
		check_guard(r, &p.warden, config);
		check_resolvers(r);
		check_trust_store(r, config);
		privileged_close(&p);
	}
	privileged_discard(&p, directory);
}

/* ---- the report ---- */

static void print_json(const struct report *r)
{
	autobuf out = {0};
	struct json_writer w = {.out = &out};
	json_begin_object(&w);
	json_key(&w, "checks");
	json_begin_array(&w);
	for (size_t i = 0; i < r->count; i++) {
		const struct check *c = &r->checks[i];
		json_begin_object(&w);
		json_put_string(&w, "name", c->name);
		json_put_bool(&w, "ok", c->ok);
		json_put_bool(&w, "required", !c->optional);
		json_put_string(&w, "detail", c->detail);
		if (!c->ok)
			json_put_string(&w, "advice", c->advice);
		json_end_object(&w);
	}
	json_end_array(&w);
	json_end_object(&w);
	printf("%.*s\n", (int)out.len, out.data);
}

static void print_text(const struct report *r)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct check *c = &r->checks[i];
		printf("%-8s %-15s %s\n",
			c->ok         ? "ok"
			: c->optional ? "absent"
				      : "MISSING",
			c->name, c->detail);
		if (!c->ok)
			printf("%-8s %-15s -> %s\n", "", "", c->advice);
	}
}

static bool all_well(const struct report *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (!r->checks[i].ok && !r->checks[i].optional)
			return false;
	return true;
}

static void print_help(void)
{
	printf("usage: bunker doctor [--json] [--data DIR]\n\n"
	       "Tries what the server needs of this host, boots a sandbox in or beside DIR\n"
	       "[/var/lib/bunker], and says which layers of isolation are active, what is missing and\n"
	       "what to do. Exits with 1 when something required is missing.\n");
}

int doctor_main(int argc, char **argv)
{
	struct report r = {0};
	const char *data = getenv("BUNKER_DATA"), *trusted = getenv("BUNKER_UPSTREAM_CA");
	struct config config = {
		.data = data ? data : "/var/lib/bunker",
		.upstream_ca = trusted ? trusted : "/etc/ssl/certs/ca-certificates.crt",
		.disk_pool = "auto",
		.disk_pool_size = TRIAL_POOL,
		.max_disk_pool_size = TRIAL_POOL,
	};
	bool json = false;
	for (int i = 1; i < argc && argv[i]; i++) {
		if (strcmp(argv[i], "--json") == 0) {
			json = true;
		} else if (strcmp(argv[i], "--data") == 0 && argv[i + 1]) {
			config.data = argv[++i];
		} else if (strncmp(argv[i], "--data=", 7) == 0) {
			config.data = argv[i] + 7;
		} else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			print_help();
			return 0;
		} else {
			fprintf(stderr,
				"bunker: there is no option '%s'; see bunker doctor --help\n",
				argv[i]);
			return 2;
		}
	}
	log_set_level(LOG_ERROR);
	check_root(&r);
	check_kernel(&r);
	check_seccomp(&r);
	check_landlock(&r);
	check_sandbox_ca(&r, &config);
	if (r.checks[0].ok && config.sandbox_ca.section)
		check_warden(&r, &config);
	sandbox_ca_finish(&config.sandbox_ca);
	if (json)
		print_json(&r);
	else
		print_text(&r);
	return all_well(&r) ? 0 : 1;
}
