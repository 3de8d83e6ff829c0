/*
 * Volumes: their life by the control plane, with a key; their content with a token that opens one
 * volume, whoever shows it.
 */
#pragma once

#include "dialect/e2b/files.h"
#include "model/volume.h"

#define VOLUME_PATH_MAX  4095
#define VOLUME_OWNER_MAX 65535
#define VOLUME_MODE_MAX  07777

extern const struct route_table e2b_volume_table, e2b_volume_content_table, e2b_volume_write_table;

/* The token that opens a volume's content. */
void e2b_volume_token(const struct http_request *req, const char *id, char out[AUTH_TOKEN_SIZE]);

/* ---- volume_query.c ---- */

/* Of the content's routes: by the token in `Authorization: Bearer`. */
int e2b_admit_volume(struct http_request *req, struct error *e);
/*
 * Begins what a route is for, or answers with why it cannot be. The path is the query's, from the
 * volume's root, without "." and "..", as if no name on it were a link: what is above the root is
 * the root. The text is the request's.
 */
typedef int volume_begin_fn(struct http_request *req, const char *path, struct error *e);
void e2b_volume_serve(struct http_request *req, volume_begin_fn *begin);

/* An answer whose operation is about the volume that the path names. */
struct answer *e2b_volume_answer(struct http_request *req, const struct answer_form *form);

/* What is made, by the query: whose, with which mode, and over what. */
struct volume_make {
	char owner[16]; /* "uid:gid" */
	unsigned mode;
	bool force; /* directories above are made, and what is there already is no error */
};
int e2b_volume_make(
	struct http_request *req, unsigned default_mode, struct volume_make *ret, struct error *e);
/* The core's error in the words of E2B's. */
void e2b_volume_explain(const char *path, const struct error *why, struct error *e);

/* ---- volume_content.c ---- */

/* An answer that is what is at the path; with 204 it is empty. */
struct answer *volume_entry_answer(struct http_request *req, int status, const char *path);
