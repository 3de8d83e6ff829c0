/* File work for a request: in a sandbox by envd's rules, or in a volume. */
#pragma once

#include "dialect/e2b/entry.h"
#include "dialect/e2b/envd.h"
#include "answer/content.h"
#include "op/files.h"

/* For whom: the query's username counts before the header. NULL: nobody was named. */
int files_user(struct http_request *req, const char **ret, struct error *e);
/* The core's error in envd's words. */
void files_explain(const char *path, const char *user, const struct error *why, struct error *e);

/* ---- download.c ---- */

/* Words for errors, of the request's memory. */
struct download_target {
	const char *given; /* the path, as the client has it */
	const char *path, *cwd;
	const char *user; /* NULL: nobody was named */
};

extern const struct answer_form download_form;
/* Answers with the file's bytes, or with those of the header Range. */
void download_run(struct answer *a, const struct download_target *target);
void download_refuse(struct answer *a, const struct download_target *target, const struct error *e);

/* ---- listing.c ---- */

/* How entries are put for the client. */
struct listing_form {
	void (*begin)(struct json_writer *w);
	void (*entry)(struct entry_writer *w, const struct file_entry *entry);
	void (*end)(struct json_writer *w);
	void (*explain)(const char *path, const struct error *why, struct error *e);
};

extern const struct answer_form listing_answer;
/*
 * Answers with a directory's entries. A tree may have a million files, so that they go out as they
 * are found: nothing is looked for while the client does not read. Errors come before the first
 * entries, or the answer is cut short. given: the path, as the client has it.
 */
void listing_run(struct answer *a, const char *given, const struct op_files *request,
	const struct listing_form *form);

extern const struct route_table files_download_table, files_upload_table;
