/*
 * Metadata of images: the index, manifest and configuration of an OCI layout, and the manifest.json
 * of a `docker save` archive. All of it comes from strangers: it is bounded, and names of files are
 * refused that could lead anywhere else.
 *
 * Results live in the scratch that was given.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/scratch.h"

#define IMAGE_JSON_MAX   (4u << 20)
#define IMAGE_LAYERS_MAX 256
#define IMAGE_PATH_MAX   255
#define IMAGE_HEX_LEN    64

/* "sha256:" and the digits; "": none. */
struct image_digest {
	char hex[IMAGE_HEX_LEN + 1];
};

struct image_blob {
	struct image_digest digest; /* of the bytes as they are stored; of docker's often none */
	struct image_digest plain;  /* of the bytes without compression; from the configuration */
	int64_t size;               /* -1: not said */
	const char *path;           /* in the archive */
};

enum image_kind {
	IMAGE_INDEX,   /* next: the document to read instead */
	IMAGE_MANIFEST /* config and layers */
};

struct image_document {
	enum image_kind kind;
	struct image_blob next;
	struct image_blob config;
	struct image_blob *layers;
	size_t layer_count;
};

/*
 * An index or a manifest. Of an index the entry is taken whose name is `ref`, or the only one, or
 * the one for Linux on this machine's processor; ref may be NULL.
 */
int image_parse_document(const char *text, size_t len, const char *ref, struct scratch *memory,
	struct image_document *ret, struct error *e);
/* manifest.json of `docker save`; ref is one of its RepoTags, or NULL when there is one image. */
int image_parse_docker(const char *text, size_t len, const char *ref, struct scratch *memory,
	struct image_document *ret, struct error *e);

/* Lists are NULL-terminated; strings that are not there are "". */
struct image_config {
	const char *user, *workdir;
	const char *const *env, *const *entrypoint, *const *command, *const *ports;
};

/*
 * Parses the configuration, and tells the document's layers the digests of their uncompressed data.
 */
int image_parse_config(const char *text, size_t len, struct scratch *memory,
	struct image_document *document, struct image_config *ret, struct error *e);
