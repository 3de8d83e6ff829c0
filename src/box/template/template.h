/*
 * Templates: the origins of root file systems.
 *
 * A template is a name of one tenant. It has versions, which are builds (box/template/build.h):
 * each was made from an image or from steps. A tag is a name for one of them; "python" means
 * "python:latest". The built-in templates are shared by all tenants, and have one version that
 * needs no build.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/scratch.h"
#include "model/template.h"

struct box;
struct build;
struct template;

/* Finds a template by id or name. Returns NULL if it does not exist or belongs to another tenant.
 */
struct template *template_find(struct box *b, const char *tenant, const char *id_or_name);
/* Built-in ones first, then the tenant's by their names. */
struct template *template_first(struct box *b, const char *tenant);
struct template *template_next(const struct template *t, const char *tenant);
/* Fills a view whose lists are in the scratch, and whose texts are the template's. */
void template_view(const struct template *t, struct scratch *memory, struct template_view *out);

/*
 * Resolves the reference of a sandbox or a build: "name", "name:tag", "id:tag", or the id of a
 * template or build; NULL is the default template. *build is NULL for a built-in one. Refused with
 * template_not_found, also when there is the name but nothing ready to stand on.
 */
int template_resolve(struct box *b, const char *tenant, const char *ref, struct template **ret,
	struct build **build, struct error *e);

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
