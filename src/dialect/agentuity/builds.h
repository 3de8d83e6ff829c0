/* A snapshot that is being made of an archive: a sandbox with a note in its metadata. */
#pragma once

#include "dialect/agentuity/routes.h"

#define BUILD_LIFE_MS (60 * 60 * 1000)
/* The key of the note: what the snapshot is to be called. */
#define BUILD_MARK "agentuitySnapshotBuild"

/*
 * An answer about a build; a sandbox without the note counts as missing. The id is borrowed until
 * the operation is begun; NULL is missing.
 */
struct answer *build_answer(
	struct http_request *req, const struct answer_form *form, const char *id);
/* For its form: says that there is no such build. */
enum answer_failure build_fail(struct answer *a, struct error *e, const struct op_event *event);
