/*
 * A directory of a sandbox as an archive in an answer, and a body that is one into a directory.
 * Both flow: neither the archive nor what is in it is ever held. Compression is done by threads, a
 * step at a time.
 */
#pragma once

#include <uv.h>

#include "box/files/codec.h"
#include "box/files/files.h"
#include "http/http.h"

/* What becomes of the archive that init gives. */
struct archive_form {
	const char *type; /* of the answer */
	bool coded;       /* by the codec of this kind; else it is sent as it is */
	enum codec_kind kind;
};

/* Whose rights, where, and what: a PACK or an UNPACK. */
struct archive_job {
	struct sandbox *sandbox;
	const char *user; /* NULL: the sandbox's */
	struct file_request request;
	uv_loop_t *loop;
};

/* On failure nothing was answered. */
int handler_send_archive(struct http_request *req, const struct archive_job *job,
	const struct archive_form *form, struct error *e);

typedef void archive_taken_fn(struct http_request *req, const struct file_result *result);
/*
 * Of a request whose body streams. `taken` answers; what goes wrong on the way is answered here. On
 * failure nothing was.
 */
int handler_take_archive(struct http_request *req, const struct archive_job *job,
	archive_taken_fn *taken, struct error *e);
