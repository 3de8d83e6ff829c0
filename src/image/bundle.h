/*
 * The file that a snapshot is exported as: a tar.zst, readable by any tool, between two frames that
 * zstd passes over.
 *
 *     frame 184D2A5B   the manifest, JSON
 *     zstd frames      a tar: what the disk has over its template's root, with whiteouts
 *     frame 184D2A5E   "BNKEND1" and a NUL, the SHA-256 of every byte before it, their number
 *
 * All numbers are little-endian. A file without its end, or with another one, is refused whole.
 */
#pragma once

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/scratch.h"

#define BUNDLE_HEAD_SIZE    8u
#define BUNDLE_MANIFEST_MAX (64u * 1024)
#define BUNDLE_END_SIZE     (BUNDLE_HEAD_SIZE + 8 + 32 + 8)

struct bundle_manifest {
	const char *id, *name, *tag, *description, *template_name;
	int64_t created_ms;
	int64_t bytes, files; /* -1: not counted */
	const char *env;      /* to be written: NAME=VALUE strings, each with its NUL */
	size_t env_len;
	const char *const *env_list; /* as it was read; NULL: none */
	const char *metadata;        /* JSON; NULL or "": none */
};

void bundle_append_manifest(struct buf *out, const struct bundle_manifest *m);
/* Returns in *ret how long the first frame is, from its first BUNDLE_HEAD_SIZE bytes. */
int bundle_manifest_size(const char *head, size_t *ret, struct error *e);
/* The frame without its head. Strings live in the scratch. */
int bundle_parse_manifest(const char *text, size_t len, struct scratch *memory,
	struct bundle_manifest *ret, struct error *e);

/* Every byte of the file but the end. */
struct bundle_sum {
	crypto_hash_sha256_state state;
	uint64_t bytes;
};

void bundle_sum_begin(struct bundle_sum *s);
void bundle_sum_add(struct bundle_sum *s, const void *data, size_t len);
void bundle_append_end(struct buf *out, struct bundle_sum *s);
int bundle_check_end(const char end[BUNDLE_END_SIZE], struct bundle_sum *s, struct error *e);
