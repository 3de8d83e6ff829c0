/* Shared by the files about builds. */
#pragma once

#include "box/template/build.h"
#include "op/op.h"

/* OP_DONE with the build, which stays for the time of the event even if it has been deleted. */
void op_build_done(struct op *op, struct build *build);
