/*
 * Errors of previews: for a browser a small page, which asks again while the port may yet open; for
 * programs the native form, and beside it what E2B's clients look for.
 */
#pragma once

#include "http/http.h"

void preview_encode_error(
	struct http_request *req, const struct error *e, struct http_error_answer *answer);
