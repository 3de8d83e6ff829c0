/* What the files about templates share. */
#pragma once

#include "api/routes.h"
#include "model/build.h"

/* An object. */
void encode_build(struct json_writer *w, const struct build_view *v);
/* For forms: the build of OP_DONE is the answer. */
int build_put(struct answer *a, const struct op_event *event, struct error *e);
