/* Shared by the files about templates. */
#pragma once

#include "api/routes.h"
#include "model/build.h"

/* An object. */
void encode_build(struct json_writer *w, const struct build_view *v);
/* The build of OP_DONE is the answer. */
extern const struct answer_form build_form;
