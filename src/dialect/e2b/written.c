#include "dialect/e2b/written.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"

struct written_path {
	unsigned char hash[crypto_shorthash_siphashx24_BYTES];
	UT_hash_handle hh;
};

/* "/a/../b" is "/b", as envd has it: links are not looked at. */
static void written_resolve(const char *path, struct buf *out)
{
	for (const char *name = path; *name; name += strcspn(name, "/")) {
		name += strspn(name, "/");
		size_t len = strcspn(name, "/");
		if (len == 2 && strncmp(name, "..", 2) == 0) {
			while (out->len > 0 && out->data[--out->len] != '/')
				;
		} else if (len > 0) {
			buf_append_char(out, '/');
			buf_append(out, name, len);
		}
	}
}

static int written_check_room(const struct written *w, size_t answer_len, struct error *e)
{
	if (HASH_COUNT(w->paths) * sizeof *w->paths + answer_len < WRITTEN_MEMORY_MAX)
		return 0;
	return error_set(e, ERROR_INVALID_REQUEST,
		"these are too many files for one request: after %u of them send the rest in another",
		HASH_COUNT(w->paths));
}

int written_add(struct written *w, const char *path, size_t answer_len, struct error *e)
{
	unsigned char hash[crypto_shorthash_siphashx24_BYTES];
	struct written_path *p;
	autobuf resolved = {0};
	if (!w->paths)
		randombytes_buf(w->key, sizeof w->key);
	written_resolve(path, &resolved);
	crypto_shorthash_siphashx24(
		hash, (const unsigned char *)resolved.data, resolved.len, w->key);
	HASH_FIND(hh, w->paths, hash, sizeof hash, p);
	if (p)
		return error_set(e, ERROR_INVALID_REQUEST,
			"you cannot upload multiple files to the same path '%.*s' in one upload request",
			(int)(resolved.len < 200 ? resolved.len : 200), resolved.data);
	if (written_check_room(w, answer_len, e) < 0)
		return -1;
	p = mem_new(sizeof *p);
	memcpy(p->hash, hash, sizeof hash);
	HASH_ADD(hh, w->paths, hash, sizeof p->hash, p);
	return 0;
}

void written_finish(struct written *w)
{
	struct written_path *p, *next;
	HASH_ITER (hh, w->paths, p, next) {
		HASH_DELETE(hh, w->paths, p);
		free(p);
	}
}
