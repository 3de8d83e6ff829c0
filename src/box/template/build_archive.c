/*
 * Archives that COPY steps take files from: one file each, named by the tenant and the hash that
 * the client gave. They are written aside, by a thread that computes their digest too, and renamed
 * when complete.
 *
 * What is on the way is a file of the tenant's as well, as long as what was announced (or what has
 * come, in steps, if nothing was): so the sizes in the directory are all that counts against the
 * tenant's limit, and nothing has to be remembered. What has not been used for a while, and what an
 * upload that was cut short left, goes when the next one comes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/mem.h"
#include "box/template/catalogue.h"

#define CONTEXT_MAX        (INT64_C(2) << 30)
#define CONTEXT_TENANT_MAX (INT64_C(8) << 30)
#define CONTEXT_COUNT_MAX  1000 /* of a tenant: each upload looks at all of them */
#define CONTEXT_KEEP_S     (24 * 3600)
#define CONTEXT_TENANT_LEN 16
#define CONTEXT_NAME_SIZE  (CONTEXT_TENANT_LEN + 1 + CONTEXT_HASH_LEN + 1)
#define CONTEXT_WAITING    (1024u * 1024)
#define CONTEXT_STEP       (INT64_C(64) << 20) /* of one whose length was not announced */
#define PART_MARK          "-part."
#define PART_KEEP_S        600 /* after its last byte; a client has 60 s for the next */

struct build_archive {
	struct box *box;
	const struct build_archive_events *events;
	void *arg;
	uv_work_t work;
	int fd;
	bool verify;
	int64_t bytes, reserved; /* what has come; the file's length, which counts */
	struct buf waiting;      /* has come, and is not being written yet */
	bool full;               /* there was no room, and that there is some was not told */
	bool complete;           /* nothing comes behind `waiting` */
	bool refused;            /* *refusal is to be told */
	bool cancelled;          /* nothing is to be told */
	struct error refusal;
	char prefix[CONTEXT_TENANT_LEN + 1];
	char hash[CONTEXT_HASH_LEN + 1];
	char part[256], name[256]; /* paths */
	/* Owned by the thread while it works: */
	bool working, finishing, failed;
	struct buf writing;
	struct error failure;
	crypto_hash_sha256_state state;
};

/* A tenant's name may hold anything, a file's may not. */
static void build_archive_prefix(const char *tenant, char out[CONTEXT_TENANT_LEN + 1])
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof hash + 1];
	crypto_hash_sha256(hash, (const unsigned char *)tenant, strlen(tenant));
	sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
	memcpy(out, hex, CONTEXT_TENANT_LEN);
	out[CONTEXT_TENANT_LEN] = '\0';
}

static bool build_archive_is_hash(const char *text)
{
	return strlen(text) == CONTEXT_HASH_LEN &&
	       strspn(text, "0123456789abcdef") == CONTEXT_HASH_LEN;
}

static void build_archive_name(const char *tenant, const char *hash, char out[CONTEXT_NAME_SIZE])
{
	char prefix[CONTEXT_TENANT_LEN + 1];
	build_archive_prefix(tenant, prefix);
	snprintf(out, CONTEXT_NAME_SIZE, "%s-%s", prefix, hash);
}

static void build_archive_path(const struct box *b, const char *name, char out[256])
{
	snprintf(out, 256, "%s/%s", b->config.contexts_dir, name);
}

bool build_archive_exists(struct box *b, const char *tenant, const char *hash)
{
	char name[CONTEXT_NAME_SIZE], path[256];
	if (!build_archive_is_hash(hash))
		return false;
	build_archive_name(tenant, hash, name);
	build_archive_path(b, name, path);
	/* Renews its age: the caller is about to use it. */
	return utimensat(AT_FDCWD, path, NULL, 0) == 0;
}

int build_archive_open(struct box *b, const char *tenant, const char *hash)
{
	char name[CONTEXT_NAME_SIZE], path[256];
	if (!build_archive_exists(b, tenant, hash))
		return -ENOENT;
	build_archive_name(tenant, hash, name);
	build_archive_path(b, name, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Removes what is too old; returns how many bytes of the tenant's are left, in how many archives.
 */
static int64_t build_archive_sweep(struct box *b, const char *prefix, unsigned *count)
{
	DIR *dir = opendir(b->config.contexts_dir);
	struct dirent *entry;
	int64_t bytes = 0;
	time_t now = time(NULL);
	*count = 0;
	while (dir && (entry = readdir(dir)) != NULL) {
		struct stat st;
		if (entry->d_name[0] == '.' ||
			fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		bool is_part = strstr(entry->d_name, PART_MARK) != NULL;
		if (now - st.st_mtime > (is_part ? PART_KEEP_S : CONTEXT_KEEP_S)) {
			unlinkat(dirfd(dir), entry->d_name, 0);
		} else if (strncmp(entry->d_name, prefix, CONTEXT_TENANT_LEN) == 0) {
			bytes += st.st_size;
			(*count)++;
		}
	}
	if (dir)
		closedir(dir);
	return bytes;
}

/* Makes room for `upto` bytes of this upload among those of its tenant. */
static int build_archive_reserve(struct build_archive *u, int64_t upto, struct error *e)
{
	unsigned count;
	if (upto > CONTEXT_MAX)
		return error_set(e, ERROR_BODY_TOO_LARGE,
			"the archive is larger than %lld bytes, the most that is allowed",
			(long long)CONTEXT_MAX);
	int64_t others = build_archive_sweep(u->box, u->prefix, &count) - u->reserved;
	if (others + upto > CONTEXT_TENANT_MAX || count > CONTEXT_COUNT_MAX)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"the archives of the last day and those on the way are more than %lld GiB together, or %d",
			(long long)(CONTEXT_TENANT_MAX >> 30), CONTEXT_COUNT_MAX);
	if (ftruncate(u->fd, upto) < 0)
		return error_set_errno(e, errno, "cannot keep the archive");
	u->reserved = upto;
	return 0;
}

static void build_archive_free(struct build_archive *u)
{
	unlink(u->part);
	close(u->fd);
	buf_finish(&u->waiting);
	buf_finish(&u->writing);
	free(u);
}

/* ---- in a thread ---- */

static bool build_archive_hash_matches(struct build_archive *u)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof hash + 1];
	if (!u->verify)
		return true;
	crypto_hash_sha256_final(&u->state, hash);
	sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
	return strcmp(hex, u->hash) == 0;
}

static int build_archive_keep(struct build_archive *u, struct error *e)
{
	if (!build_archive_hash_matches(u))
		return error_set_field(e, ERROR_DIGEST_MISMATCH, "hash",
			"the hash is not the SHA-256 of the archive");
	if (ftruncate(u->fd, u->bytes) < 0 || rename(u->part, u->name) < 0)
		return error_set_errno(e, errno, "cannot keep the archive");
	return 0;
}

static int build_archive_write_piece(struct build_archive *u, struct error *e)
{
	const struct buf *piece = &u->writing;
	if (u->verify)
		crypto_hash_sha256_update(
			&u->state, (const unsigned char *)piece->data, piece->len);
	int r = fd_write_all(u->fd, piece->data, piece->len);
	return r < 0 ? error_set_errno(e, r, "cannot keep the archive") : 0;
}

static void build_archive_do_work(uv_work_t *work)
{
	struct build_archive *u = work->data;
	u->failed = (u->writing.len > 0 && build_archive_write_piece(u, &u->failure) < 0) ||
		    (u->finishing && build_archive_keep(u, &u->failure) < 0);
}

/* ---- on the loop ---- */

static void build_archive_worked(uv_work_t *work, int status);

static void build_archive_work(struct build_archive *u)
{
	if (u->working)
		return;
	u->working = true;
	u->writing = buf_take(&u->waiting);
	u->finishing = u->complete && !u->refused;
	uv_queue_work(u->box->loop, &u->work, build_archive_do_work, build_archive_worked);
}

static void build_archive_tell_end(struct build_archive *u, const struct error *e)
{
	const struct build_archive_events *events = u->events;
	void *arg = u->arg;
	struct error why = e ? *e : (struct error){0};
	build_archive_free(u);
	events->done(arg, e ? &why : NULL);
}

static void build_archive_worked(uv_work_t *work, int status)
{
	struct build_archive *u = work->data;
	(void)status; /* it cannot be cancelled */
	u->working = false;
	buf_finish(&u->writing);
	if (u->cancelled) {
		build_archive_free(u);
		return;
	}
	if (u->refused || u->failed || u->finishing) {
		build_archive_tell_end(u, u->refused  ? &u->refusal
					  : u->failed ? &u->failure
						      : NULL);
		return;
	}
	if (u->waiting.len > 0 || u->complete)
		build_archive_work(u);
	if (!u->full || u->complete)
		return;
	u->full = false;
	u->events->room(u->arg);
}

int build_archive_begin(struct box *b, const struct build_archive_spec *spec,
	const struct build_archive_events *events, void *arg, struct build_archive **ret,
	struct error *e)
{
	char id[ID_SIZE], part[sizeof id + CONTEXT_TENANT_LEN + sizeof PART_MARK];
	char name[CONTEXT_NAME_SIZE];
	if (!build_archive_is_hash(spec->hash))
		return error_set_field(e, ERROR_INVALID_FIELD, "hash",
			"the hash of a context is %d hexadecimal digits in lower case",
			CONTEXT_HASH_LEN);
	struct build_archive *u = mem_new(sizeof *u);
	*u = (struct build_archive){.box = b, .events = events, .arg = arg, .verify = spec->verify};
	u->work.data = u;
	memcpy(u->hash, spec->hash, CONTEXT_HASH_LEN);
	build_archive_prefix(spec->tenant, u->prefix);
	build_archive_name(spec->tenant, spec->hash, name);
	build_archive_path(b, name, u->name);
	id_generate(id);
	snprintf(part, sizeof part, "%s" PART_MARK "%s", u->prefix, id);
	build_archive_path(b, part, u->part);
	crypto_hash_sha256_init(&u->state);
	u->fd = open(u->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (u->fd < 0) {
		int error = errno;
		free(u);
		return error_set_errno(e, error, "cannot keep the archive");
	}
	if (build_archive_reserve(u, spec->announced > 0 ? spec->announced : 0, e) < 0) {
		build_archive_free(u);
		return -1;
	}
	*ret = u;
	return 0;
}

size_t build_archive_room(const struct build_archive *u)
{
	return u->waiting.len < CONTEXT_WAITING ? CONTEXT_WAITING - u->waiting.len : 0;
}

void build_archive_write(struct build_archive *u, const char *data, size_t len)
{
	if (u->refused)
		return;
	u->bytes += (int64_t)len;
	/*
	 * An upload of unknown size is reserved in steps, because each reservation scans all
	 * archives.
	 */
	int64_t step = u->bytes + CONTEXT_STEP;
	u->refused = u->bytes > u->reserved &&
		     build_archive_reserve(u,
			     step < CONTEXT_MAX || u->bytes > CONTEXT_MAX ? step : CONTEXT_MAX,
			     &u->refusal) < 0;
	buf_append(&u->waiting, data, len);
	u->full |= build_archive_room(u) == 0;
	build_archive_work(u);
}

void build_archive_end(struct build_archive *u)
{
	u->complete = true;
	build_archive_work(u);
}

void build_archive_cancel(struct build_archive *u)
{
	if (u->working)
		u->cancelled = true;
	else
		build_archive_free(u);
}
