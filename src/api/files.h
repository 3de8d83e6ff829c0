/*
 * Shared by the routes for files: parsing of paths, users and options, encoding of entries.
 *
 * A name in a file system is any bytes. In a URL they are percent-encoded; in JSON a name that is
 * not UTF-8 has its twin ("pathBase64" beside "path"), in both directions.
 */
#pragma once

#include "api/decode.h"
#include "api/routes.h"
#include "model/file.h"

#define FILES_LIMIT_DEFAULT 1000
#define FILES_LIMIT_MAX     10000
#define FILES_ANSWER_MAX    (32u << 20) /* of JSON; what would be more is marked as truncated */
#define FILES_UPLOAD_MAX    (UINT64_C(1) << 40)

/* The user that does it, and the base of relative paths. */
struct files_actor {
	const char *user, *cwd;
};

/* From the query: user and cwd. A parameter that is none of `known`, which NULL ends, is refused.
 */
int files_query_actor(struct http_request *req, const char *const *known, struct files_actor *ret,
	struct error *e);
/*
 * Decodes the place and the path: the rest of the URL's path as an absolute one, or the query's
 * "path".
 */
int files_query_place(struct http_request *req, const char *const *known, struct files_actor *ret,
	const char **path, struct error *e);
int files_query_flag(struct http_request *req, const char *name, unsigned flag, unsigned *flags,
	struct error *e);

/* Decodes the end of an earlier answer; NULL: the beginning. *ret lives as long as the request. */
int files_parse_cursor(
	struct http_request *req, const char *text, const char **ret, struct error *e);

/*
 * Takes the one of a body's two fields that is there; neither is an error unless `or_else` is
 * given.
 */
int files_body_name(const char *text, const char *base64, const char *field, const char *or_else,
	struct scratch *memory, const char **ret, struct error *e);
/* Decodes a path, and refuses ".." in it. */
int files_body_path(const char *text, const char *base64, const char *field, const char *or_else,
	struct scratch *memory, const char **ret, struct error *e);

/* "path", and "pathBase64" where the first is not the whole truth. */
void files_put_name(struct json_writer *w, const char *key, const char *name);
/* The fields of an entry, with braces. */
void files_put_entry(struct json_writer *w, const struct file_entry *entry);
const char *files_type_name(unsigned mode);
/* "file" and so on, as the S_IFMT bits; NULL is 0. */
int files_parse_type(const char *text, unsigned *ret, struct error *e);

/* ---- files_answer.c: operations that end with one JSON answer ---- */

enum files_answer {
	FILES_ANSWER_ENTRY,
	FILES_ANSWER_NOTHING, /* 204 */
	FILES_ANSWER_EXISTS,
	FILES_ANSWER_ENTRIES,
	FILES_ANSWER_MATCHES,
	FILES_ANSWER_CHANGES,
	FILES_ANSWER_METADATA,
	FILES_ANSWER_COUNT
};

/*
 * Begins the operation. The caller gives it input, if it takes any, and runs the answer. An entry
 * that says it exists is FILES_ANSWER_ENTRY, and so on.
 */
struct answer *files_begin(struct http_request *req, const struct files_actor *place,
	const struct file_request *request, enum files_answer kind);
