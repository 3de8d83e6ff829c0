/*
 * What a sandbox's root filesystem starts from.
 *
 * A template is a name of one tenant. It has versions, which are builds (box/template/build.h):
 * each was made from an image or from steps. A tag is a name for one of them; "python" means
 * "python:latest". The built-in templates belong to everybody, and have one version that needs no
 * build.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define TEMPLATE_LATEST   "latest"
#define TEMPLATE_NAME_MAX 128
#define TEMPLATE_TAG_MAX  128
#define TEMPLATE_REF_MAX  (TEMPLATE_NAME_MAX + 1 + TEMPLATE_TAG_MAX)

struct box;
struct build;
struct template;

struct template_view {
	const char *id; /* of a built-in one: its name */
	const char *name, *description;
	bool built_in, is_default;
	int64_t created_ms; /* 0: built in */
	const struct build
		*latest; /* what the name alone stands for; NULL: nothing yet, or built in */
	const struct build *newest; /* the last one begun, whatever came of it; NULL: built in */
};

/*
 * A name: up to 128 of a-z, A-Z, 0-9, '.', '_', '-', and '/' between such parts; each part begins
 * with a letter or digit. A tag: the same without '/'.
 */
int template_check_name(const char *name, const char *field, struct error *e);
int template_check_tag(const char *tag, const char *field, struct error *e);
/* "name" or "name:tag" in its two parts; the tag is "" when there is none. */
int template_split(const char *ref, char name[TEMPLATE_NAME_MAX + 1],
	char tag[TEMPLATE_TAG_MAX + 1], struct error *e);

/* By id or name; NULL both for what does not exist and for what is somebody else's. */
struct template *template_find(struct box *b, const char *tenant, const char *id_or_name);
/* Built-in ones first, then the tenant's by their names. */
struct template *template_first(struct box *b, const char *tenant);
struct template *template_next(const struct template *t, const char *tenant);
void template_view(const struct template *t, struct template_view *out);

/*
 * What a sandbox or a build that says `ref` begins with: "name", "name:tag", "id:tag", or the id of
 * a template or build; NULL is the default template. *build is NULL for a built-in one. Refused
 * with template_not_found, also when there is the name but nothing ready to stand on.
 */
int template_resolve(struct box *b, const char *tenant, const char *ref, struct template **ret,
	struct build **build, struct error *e);

/* Newest first; NULL ends. */
struct build *template_build_at(const struct template *t, size_t index);

struct tag_view {
	const char *tag;
	const struct build *build;
	int64_t created_ms; /* or moved */
};
/* In the order of their names; false ends. */
bool template_tag_at(const struct template *t, size_t index, struct tag_view *out);

/* e: NULL when it is done and stored. */
typedef void template_done_fn(void *arg, const struct error *e);

/* A tag that another build has is moved. Only a build that is ready can have one. */
int template_tag(
	struct build *build, const char *tag, template_done_fn *done, void *arg, struct error *e);
int template_untag(
	struct template *t, const char *tag, template_done_fn *done, void *arg, struct error *e);
/*
 * With all its builds; one that is under way is cancelled. Refused with in_use while sandboxes,
 * snapshots or other templates stand on it.
 */
int template_delete(struct template *t, template_done_fn *done, void *arg, struct error *e);
