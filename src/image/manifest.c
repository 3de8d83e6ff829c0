#include "image/manifest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "json/json.h"

#define ENTRIES_MAX 1000
#define STRING_MAX  (64 * 1024)
#define BLOB_MAX    (INT64_C(1) << 40)

static int manifest_broken(struct error *e, const char *what)
{
	return error_set(e, ERROR_INVALID_IMAGE, "the image is not valid: %s", what);
}

static int manifest_parse(const char *text, size_t len, cJSON **ret, struct error *e)
{
	struct error inner = {0};
	if (len > IMAGE_JSON_MAX)
		return manifest_broken(e, "its description is longer than 4 MiB");
	if (json_parse(text, len, ret, &inner) < 0)
		return error_set(
			e, ERROR_INVALID_IMAGE, "the image is not valid: %.200s", inner.message);
	return 0;
}

static void delete_tree(cJSON **tree)
{
	cJSON_Delete(*tree);
}

#define autotree __attribute__((cleanup(delete_tree))) cJSON

static const cJSON *manifest_member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const char *text_of(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(manifest_member(object, name));
	return text ? text : "";
}

static const char *manifest_keep(struct scratch *memory, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = scratch_alloc(memory, size);
	memcpy(copy, text, size);
	return copy;
}

/* ---- digests and paths ---- */

static int parse_digest(const char *text, struct image_digest *ret, struct error *e)
{
	static const char prefix[] = "sha256:";
	size_t prefix_len = sizeof prefix - 1;
	if (strlen(text) != prefix_len + IMAGE_HEX_LEN || strncmp(text, prefix, prefix_len) != 0 ||
		strspn(text + prefix_len, "0123456789abcdef") != IMAGE_HEX_LEN)
		return manifest_broken(e, "a digest is not sha256: and 64 hexadecimal digits");
	memcpy(ret->hex, text + prefix_len, IMAGE_HEX_LEN + 1);
	return 0;
}

/* Relative, and down only. */
static bool is_plain_path(const char *path)
{
	size_t len = strlen(path);
	if (len == 0 || len > IMAGE_PATH_MAX || path[0] == '/' || path[len - 1] == '/')
		return false;
	for (const char *part = path; part;) {
		size_t n = strcspn(part, "/");
		if (n == 0 || (n == 1 && part[0] == '.') ||
			(n == 2 && part[0] == '.' && part[1] == '.'))
			return false;
		part = part[n] ? part + n + 1 : NULL;
	}
	for (const char *c = path; *c; c++)
		if (iscntrl((unsigned char)*c))
			return false;
	return true;
}

static int parse_descriptor(
	const cJSON *item, struct scratch *memory, struct image_blob *ret, struct error *e)
{
	char path[sizeof "blobs/sha256/" + IMAGE_HEX_LEN];
	const cJSON *size = manifest_member(item, "size");
	if (!cJSON_IsObject(item) || parse_digest(text_of(item, "digest"), &ret->digest, e) < 0)
		return manifest_broken(e, "a descriptor has no SHA-256 digest");
	if (!cJSON_IsNumber(size) || size->valuedouble < 0 || size->valuedouble > (double)BLOB_MAX)
		return manifest_broken(e, "a descriptor has no sensible size");
	ret->size = (int64_t)size->valuedouble;
	snprintf(path, sizeof path, "blobs/sha256/%s", ret->digest.hex);
	ret->path = manifest_keep(memory, path);
	return 0;
}

/* ---- index and manifest ---- */

/* As images call this machine's processor. */
static const char *own_architecture(struct utsname *name)
{
	static const char *const names[][2] = {{"x86_64", "amd64"}, {"aarch64", "arm64"},
		{"armv7l", "arm"}, {"i686", "386"}, {"ppc64le", "ppc64le"}, {"s390x", "s390x"},
		{"riscv64", "riscv64"}};
	if (uname(name) < 0)
		return "";
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i][0], name->machine) == 0)
			return names[i][1];
	return name->machine;
}

static bool is_for_this_machine(const cJSON *entry)
{
	struct utsname name;
	const cJSON *platform = manifest_member(entry, "platform");
	return platform && strcmp(text_of(platform, "os"), "linux") == 0 &&
	       strcmp(text_of(platform, "architecture"), own_architecture(&name)) == 0;
}

static bool manifest_is_named(const cJSON *entry, const char *ref)
{
	return ref && strcmp(text_of(manifest_member(entry, "annotations"),
				     "org.opencontainers.image.ref.name"),
			      ref) == 0;
}

static const cJSON *manifest_choose(const cJSON *manifests, const char *ref)
{
	const cJSON *entry;
	cJSON_ArrayForEach(entry, manifests) if (manifest_is_named(entry, ref)) return entry;
	if (manifests && cJSON_GetArraySize(manifests) == 1 &&
		(!ref || !manifest_member(manifests->child, "annotations")))
		return manifests->child;
	cJSON_ArrayForEach(entry, manifests) if (!ref && is_for_this_machine(entry)) return entry;
	return NULL;
}

static int parse_index(const cJSON *manifests, const char *ref, struct scratch *memory,
	struct image_document *ret, struct error *e)
{
	int count = cJSON_GetArraySize(manifests);
	if (!cJSON_IsArray(manifests) || count == 0 || count > ENTRIES_MAX)
		return manifest_broken(e, "its index lists no manifests, or more than 1000");
	const cJSON *entry = manifest_choose(manifests, ref);
	if (!entry && ref)
		return error_set(e, ERROR_INVALID_IMAGE, "the archive has no image '%.128s'", ref);
	if (!entry)
		return error_set(e, ERROR_INVALID_IMAGE,
			"the archive has several images and none, or more than one name, for this machine; say which one");
	ret->kind = IMAGE_INDEX;
	return parse_descriptor(entry, memory, &ret->next, e);
}

static int parse_manifest(
	const cJSON *tree, struct scratch *memory, struct image_document *ret, struct error *e)
{
	const cJSON *layers = manifest_member(tree, "layers"), *layer;
	int count = cJSON_GetArraySize(layers);
	if (!cJSON_IsArray(layers) || count > IMAGE_LAYERS_MAX)
		return manifest_broken(e, "its manifest has no layers, or more than 256");
	if (parse_descriptor(manifest_member(tree, "config"), memory, &ret->config, e) < 0)
		return -1;
	if (ret->config.size > IMAGE_JSON_MAX)
		return manifest_broken(e, "its configuration is longer than 4 MiB");
	ret->kind = IMAGE_MANIFEST;
	ret->layers = scratch_alloc(memory, ((size_t)count + 1) * sizeof *ret->layers);
	cJSON_ArrayForEach(layer,
		layers) if (parse_descriptor(layer, memory, &ret->layers[ret->layer_count++], e) <
			    0) return -1;
	return 0;
}

int image_parse_document(const char *text, size_t len, const char *ref, struct scratch *memory,
	struct image_document *ret, struct error *e)
{
	autotree *tree = NULL;
	*ret = (struct image_document){0};
	if (manifest_parse(text, len, &tree, e) < 0)
		return -1;
	if (manifest_member(tree, "manifests"))
		return parse_index(manifest_member(tree, "manifests"), ref, memory, ret, e);
	return parse_manifest(tree, memory, ret, e);
}

/* ---- docker save ---- */

static bool manifest_has_tag(const cJSON *entry, const char *ref)
{
	const cJSON *tag;
	cJSON_ArrayForEach(
		tag, manifest_member(entry, "RepoTags")) if (cJSON_IsString(tag) &&
							     strcmp(tag->valuestring, ref) ==
								     0) return true;
	return false;
}

static const cJSON *choose_tagged(const cJSON *entries, const char *ref)
{
	const cJSON *entry;
	if (!ref)
		return entries && cJSON_GetArraySize(entries) == 1 ? entries->child : NULL;
	cJSON_ArrayForEach(entry, entries) if (manifest_has_tag(entry, ref)) return entry;
	return NULL;
}

/* "blobs/sha256/DIGITS" and "DIGITS.json" are named by what is in them. */
static void digest_of_name(const char *path, struct image_digest *ret)
{
	static const char blobs[] = "blobs/sha256/";
	bool is_blob = strncmp(path, blobs, sizeof blobs - 1) == 0;
	const char *hex = is_blob ? path + sizeof blobs - 1 : path;
	if (strspn(hex, "0123456789abcdef") == IMAGE_HEX_LEN &&
		strcmp(hex + IMAGE_HEX_LEN, is_blob ? "" : ".json") == 0)
		memcpy(ret->hex, hex, IMAGE_HEX_LEN);
}

static int manifest_parse_path(
	const cJSON *item, struct scratch *memory, struct image_blob *ret, struct error *e)
{
	const char *path = cJSON_GetStringValue(item);
	if (!path || !is_plain_path(path))
		return manifest_broken(e, "it names a file outside of its archive");
	ret->path = manifest_keep(memory, path);
	ret->size = -1;
	digest_of_name(path, &ret->digest);
	return 0;
}

int image_parse_docker(const char *text, size_t len, const char *ref, struct scratch *memory,
	struct image_document *ret, struct error *e)
{
	autotree *tree = NULL;
	*ret = (struct image_document){.kind = IMAGE_MANIFEST};
	if (manifest_parse(text, len, &tree, e) < 0)
		return -1;
	if (!cJSON_IsArray(tree))
		return manifest_broken(e, "manifest.json is not a list");
	const cJSON *entry = choose_tagged(tree, ref), *layer;
	if (!entry)
		return error_set(e, ERROR_INVALID_IMAGE,
			ref ? "the archive has no image '%.128s'"
			    : "the archive has no image, or several: say which one%.0s",
			ref ? ref : "");
	const cJSON *layers = manifest_member(entry, "Layers");
	int count = cJSON_GetArraySize(layers);
	if (!cJSON_IsArray(layers) || count > IMAGE_LAYERS_MAX)
		return manifest_broken(e, "its manifest has no layers, or more than 256");
	if (manifest_parse_path(manifest_member(entry, "Config"), memory, &ret->config, e) < 0)
		return -1;
	ret->layers = scratch_alloc(memory, ((size_t)count + 1) * sizeof *ret->layers);
	cJSON_ArrayForEach(
		layer, layers) if (manifest_parse_path(layer, memory,
					   &ret->layers[ret->layer_count++], e) < 0) return -1;
	return 0;
}

/* ---- configuration ---- */

static int parse_strings(const cJSON *list, struct scratch *memory, const char *const **ret,
	const char *what, struct error *e)
{
	int count = list && !cJSON_IsNull(list) ? cJSON_GetArraySize(list) : 0;
	if (list && !cJSON_IsNull(list) && !cJSON_IsArray(list))
		return manifest_broken(e, what);
	if (count > ENTRIES_MAX)
		return manifest_broken(e, "its configuration has a list of more than 1000 strings");
	const char **strings = scratch_alloc(memory, ((size_t)count + 1) * sizeof *strings);
	const cJSON *item;
	size_t n = 0;
	if (count)
		cJSON_ArrayForEach(item, list)
		{
			const char *text = cJSON_GetStringValue(item);
			if (!text || strlen(text) > STRING_MAX)
				return manifest_broken(e, what);
			strings[n++] = manifest_keep(memory, text);
		}
	*ret = strings;
	return 0;
}

static int check_env(const char *const *env, struct error *e)
{
	for (; *env; env++)
		if ((*env)[0] == '=' || !strchr(*env, '='))
			return manifest_broken(
				e, "a variable of its environment is not NAME=VALUE");
	return 0;
}

/* {"80/tcp":{}} */
static int parse_ports(
	const cJSON *object, struct scratch *memory, const char *const **ret, struct error *e)
{
	int count = cJSON_IsObject(object) ? cJSON_GetArraySize(object) : 0;
	if (count > ENTRIES_MAX)
		return manifest_broken(e, "it exposes more than 1000 ports");
	const char **ports = scratch_alloc(memory, ((size_t)count + 1) * sizeof *ports);
	const cJSON *item;
	size_t n = 0;
	if (count)
		cJSON_ArrayForEach(item, object) if (strlen(item->string) <= 32) ports[n++] =
			manifest_keep(memory, item->string);
	*ret = ports;
	return 0;
}

static int parse_plain_digests(const cJSON *tree, struct image_document *document, struct error *e)
{
	const cJSON *list = manifest_member(manifest_member(tree, "rootfs"), "diff_ids"), *item;
	size_t n = 0;
	if (!cJSON_IsArray(list) || (size_t)cJSON_GetArraySize(list) != document->layer_count)
		return manifest_broken(
			e, "its configuration does not list the digests of its layers");
	cJSON_ArrayForEach(item, list)
	{
		const char *text = cJSON_GetStringValue(item);
		if (parse_digest(text ? text : "", &document->layers[n++].plain, e) < 0)
			return -1;
	}
	return 0;
}

static int check_platform(const cJSON *tree, struct error *e)
{
	struct utsname name;
	const char *os = text_of(tree, "os"), *architecture = text_of(tree, "architecture");
	if ((os[0] && strcmp(os, "linux") != 0) ||
		(architecture[0] && strcmp(architecture, own_architecture(&name)) != 0))
		return error_set(e, ERROR_INVALID_IMAGE,
			"the image is for %.32s on %.32s, not for this machine", os, architecture);
	return 0;
}

int image_parse_config(const char *text, size_t len, struct scratch *memory,
	struct image_document *document, struct image_config *ret, struct error *e)
{
	autotree *tree = NULL;
	if (manifest_parse(text, len, &tree, e) < 0 || check_platform(tree, e) < 0 ||
		parse_plain_digests(tree, document, e) < 0)
		return -1;
	const cJSON *config = manifest_member(tree, "config");
	const char *user = text_of(config, "User"), *workdir = text_of(config, "WorkingDir");
	if (strlen(user) > 255 || strlen(workdir) > 4095 || (workdir[0] && workdir[0] != '/'))
		return manifest_broken(e, "its user or working directory makes no sense");
	ret->user = manifest_keep(memory, user);
	ret->workdir = manifest_keep(memory, workdir);
	if (parse_strings(manifest_member(config, "Env"), memory, &ret->env,
		    "its environment is not a list of strings", e) < 0 ||
		parse_strings(manifest_member(config, "Entrypoint"), memory, &ret->entrypoint,
			"its entrypoint is not a list of strings", e) < 0 ||
		parse_strings(manifest_member(config, "Cmd"), memory, &ret->command,
			"its command is not a list of strings", e) < 0)
		return -1;
	if (check_env(ret->env, e) < 0)
		return -1;
	return parse_ports(manifest_member(config, "ExposedPorts"), memory, &ret->ports, e);
}
