/* Lists of sandboxes: filtered, sorted, in pages. */
#pragma once

#include "dialect/agentuity/routes.h"

/* Answers with the sandboxes that the query asks for; the form is made of ANSWER_LIST. */
void agentuity_list_sandboxes(struct http_request *req, const struct answer_form *form);
