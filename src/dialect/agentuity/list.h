/* Lists of sandboxes: filtered, sorted, in pages. */
#pragma once

#include "dialect/agentuity/routes.h"

/* Answers with {"sandboxes": […], "total"}, each of them as `put` writes it. */
void agentuity_list_sandboxes(struct http_request *req,
	void (*put)(struct json_writer *w, const struct sandbox_view *view));
