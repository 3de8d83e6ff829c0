#pragma once

#include "base/error.h"
#include "warden/warden.h"

/* Makes the directory if it is not there; ret is its path without links. */
int data_directory_open(const char *data, char ret[DATA_PATH_MAX + 1], struct error *e);
