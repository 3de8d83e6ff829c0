/* Lists of sandboxes: filtered, sorted, in pages. */
#pragma once

#include "dialect/agentuity/routes.h"

typedef void agentuity_put_fn(struct json_writer *w, const struct sandbox_view *view);
/* Answers with {"sandboxes": […], "total"}, each of them as `put` writes it. */
void agentuity_list_sandboxes(struct http_request *req, agentuity_put_fn *put);
