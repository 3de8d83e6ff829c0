/*
 * A template as data: what it is called, and what there is of it. A template is a name of one
 * tenant with versions, which are builds (model/build.h); a tag is a name for one of them, and
 * "python" means "python:latest".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/sandbox.h"

#define TEMPLATE_LATEST   "latest"
#define TEMPLATE_NAME_MAX 128
#define TEMPLATE_TAG_MAX  128
#define TEMPLATE_REF_MAX  (TEMPLATE_NAME_MAX + 1 + TEMPLATE_TAG_MAX)

struct build_view;

struct tag_view {
	const char *tag;
	const char *build;  /* an id */
	int64_t created_ms; /* or moved */
};

struct template_view {
	const char *id; /* of a built-in one: its name */
	const char *name, *description;
	bool built_in, is_default;
	int64_t created_ms;              /* 0: built in */
	const struct build_view *builds; /* newest first, in any state; none: built in */
	size_t build_count;
	const struct build_view *latest; /* what the name alone stands for; NULL: nothing yet */
	const struct tag_view *tags;     /* in the order of their names */
	size_t tag_count;
	/* From its build tagged latest, or else from its newest build. */
	unsigned status; /* enum build_status */
	int64_t bytes;
	struct resources resources; /* of its sandboxes, unless they ask for their own */
};

/* The API writes a template's tags, which are a row of kind FIELD_OWN. */
extern const struct field_table template_model, tag_model;

/*
 * A name: up to 128 of a-z, A-Z, 0-9, '.', '_', '-', and '/' between such parts; each part begins
 * with a letter or digit. A tag: the same without '/'.
 */
int template_check_name(const char *name, const char *field, struct error *e);
int template_check_tag(const char *tag, const char *field, struct error *e);
/* "name" or "name:tag" in its two parts; the tag is "" when there is none. */
int template_split(const char *ref, char name[TEMPLATE_NAME_MAX + 1],
	char tag[TEMPLATE_TAG_MAX + 1], struct error *e);
