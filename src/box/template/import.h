/* Builds from archives, as build_job.c runs them. */
#pragma once

#include "box/template/build_job.h"

void import_begin(struct build_job *job);
/* Whatever is under way ends, without another word; frees job->import. */
void import_stop(struct build_job *job);
