/*
 * Archives that COPY steps take files from: one file each, named by the tenant and the hash that
 * the client gave. They are written aside and renamed when complete; what has not been used for a
 * while, and what an upload that was cut short left, goes when the next one comes.
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
#define PART_PREFIX        "part."

struct context_upload {
	struct box *box;
	int fd;
	bool verify;
	int64_t bytes, limit;
	char name[CONTEXT_NAME_SIZE];
	char part[sizeof PART_PREFIX + ID_SIZE];
	crypto_hash_sha256_state hash;
};

/* A tenant's name may hold anything, a file's may not. */
static void tenant_prefix(const char *tenant, char out[CONTEXT_TENANT_LEN + 1])
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

static void context_name(const char *tenant, const char *hash, char out[CONTEXT_NAME_SIZE])
{
	char prefix[CONTEXT_TENANT_LEN + 1];
	tenant_prefix(tenant, prefix);
	snprintf(out, CONTEXT_NAME_SIZE, "%s-%s", prefix, hash);
}

static void context_path(const struct box *b, const char *name, char out[256])
{
	snprintf(out, 256, "%s/%s", b->config.contexts_dir, name);
}

bool context_exists(struct box *b, const char *tenant, const char *hash)
{
	char name[CONTEXT_NAME_SIZE], path[256];
	if (!build_archive_is_hash(hash))
		return false;
	context_name(tenant, hash, name);
	context_path(b, name, path);
	/* Whoever asks is about to use it. */
	return utimensat(AT_FDCWD, path, NULL, 0) == 0;
}

int context_open(struct box *b, const char *tenant, const char *hash)
{
	char name[CONTEXT_NAME_SIZE], path[256];
	if (!context_exists(b, tenant, hash))
		return -ENOENT;
	context_name(tenant, hash, name);
	context_path(b, name, path);
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
		if (now - st.st_mtime > CONTEXT_KEEP_S) {
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

int context_begin(struct box *b, const char *tenant, const char *hash, bool verify,
	struct context_upload **ret, struct error *e)
{
	char prefix[CONTEXT_TENANT_LEN + 1], id[ID_SIZE], path[256];
	if (!build_archive_is_hash(hash))
		return error_set_field(e, ERROR_INVALID_FIELD, "hash",
			"the hash of a context is %d hexadecimal digits in lower case",
			CONTEXT_HASH_LEN);
	tenant_prefix(tenant, prefix);
	unsigned count;
	int64_t left = CONTEXT_TENANT_MAX - build_archive_sweep(b, prefix, &count);
	if (left <= 0 || count >= CONTEXT_COUNT_MAX)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"the archives of the last day are more than %lld GiB together, or %d",
			(long long)(CONTEXT_TENANT_MAX >> 30), CONTEXT_COUNT_MAX);
	struct context_upload *u = mem_new(sizeof *u);
	*u = (struct context_upload){.box = b, .verify = verify};
	u->limit = left < CONTEXT_MAX ? left : CONTEXT_MAX;
	context_name(tenant, hash, u->name);
	id_generate(id);
	snprintf(u->part, sizeof u->part, PART_PREFIX "%s", id);
	context_path(b, u->part, path);
	crypto_hash_sha256_init(&u->hash);
	u->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (u->fd < 0) {
		int error = errno;
		free(u);
		return error_set_errno(e, error, "cannot keep the archive");
	}
	*ret = u;
	return 0;
}

int context_write(struct context_upload *u, const char *data, size_t len, struct error *e)
{
	u->bytes += (int64_t)len;
	if (u->bytes > u->limit)
		return error_set(e, ERROR_BODY_TOO_LARGE,
			"the archive is larger than %lld bytes, the most that is allowed",
			(long long)u->limit);
	if (u->verify)
		crypto_hash_sha256_update(&u->hash, (const unsigned char *)data, len);
	int r = fd_write_all(u->fd, data, len);
	return r < 0 ? error_set_errno(e, r, "cannot keep the archive") : 0;
}

static bool hash_is_right(struct context_upload *u)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof hash + 1];
	if (!u->verify)
		return true;
	crypto_hash_sha256_final(&u->hash, hash);
	sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
	return strcmp(hex, u->name + CONTEXT_TENANT_LEN + 1) == 0;
}

int context_end(struct context_upload *u, struct error *e)
{
	char from[256], to[256];
	context_path(u->box, u->part, from);
	context_path(u->box, u->name, to);
	int r = 0;
	if (!hash_is_right(u))
		r = error_set_field(e, ERROR_DIGEST_MISMATCH, "hash",
			"the hash is not the SHA-256 of the archive");
	else if (rename(from, to) < 0)
		r = error_set_errno(e, errno, "cannot keep the archive");
	context_abort(u);
	return r;
}

void context_abort(struct context_upload *u)
{
	char path[256];
	context_path(u->box, u->part, path);
	unlink(path);
	close(u->fd);
	free(u);
}
