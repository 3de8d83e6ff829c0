#include "server/secret_key.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"

#define FILE_MAX 4096

static void secret_key_wipe(struct buf *b)
{
	if (b->data)
		sodium_memzero(b->data, b->cap);
	buf_finish(b);
}

/* Returns 0 or a negative errno: -EINVAL if the file has no key. */
static int secret_key_read(const char *path, uint8_t key[SEAL_KEY_SIZE])
{
	__attribute__((cleanup(secret_key_wipe))) struct buf text = {0};
	int r = fd_read_file_at(AT_FDCWD, path, &text, FILE_MAX);
	if (r < 0)
		return r;
	buf_append_char(&text, '\0');
	return text.failed ? -ENOMEM : seal_key_parse(text.data, key);
}

/* A key that is there at last is complete: it gets its name when it is on the disk. */
static int secret_key_make(const char *data, const char *path, uint8_t key[SEAL_KEY_SIZE])
{
	char text[SEAL_KEY_TEXT_SIZE], new_path[264];
	snprintf(new_path, sizeof new_path, "%.255s.new", path);
	autoclose int dir = open(data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autoclose int fd =
		open(new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (dir < 0 || fd < 0)
		return -errno;
	seal_key_generate(key, text);
	int r = fd_write_all(fd, text, strlen(text));
	sodium_memzero(text, sizeof text);
	if (r < 0 || fd_write_all(fd, "\n", 1) < 0 || fsync(fd) < 0 || rename(new_path, path) < 0 ||
		fsync(dir) < 0) {
		r = -errno;
		unlink(new_path);
		return r;
	}
	log_info("made the key under which secrets are stored; keep a copy apart from the data",
		"file", path);
	return 0;
}

static bool secret_key_say(int r, const char *path)
{
	if (r == 0)
		return true;
	log_error(
		"the key for secrets cannot be had: secrets and rules are refused until the server "
		"is started with it",
		"file", path, "error",
		r == -EINVAL ? "it must be 64 hexadecimal digits" : strerror(-r));
	return false;
}

bool secret_key_load(const char *data, const char *file, uint8_t key[SEAL_KEY_SIZE])
{
	char path[256];
	const char *credentials = getenv("CREDENTIALS_DIRECTORY");
	if (file)
		return secret_key_say(secret_key_read(file, key), file);
	if (credentials) {
		snprintf(path, sizeof path, "%s/" SECRET_KEY_CREDENTIAL, credentials);
		int r = secret_key_read(path, key);
		if (r != -ENOENT)
			return secret_key_say(r, path);
	}
	snprintf(path, sizeof path, "%s/" SECRET_KEY_FILE, data);
	int r = secret_key_read(path, key);
	if (r == -ENOENT)
		r = secret_key_make(data, path, key);
	return secret_key_say(r, path);
}
