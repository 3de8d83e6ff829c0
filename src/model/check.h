/* Rules of texts that fields of several objects share. Each names the field in its error. */
#pragma once

#include "base/error.h"

/* Letters, digits, '-', '_' and '.', not beginning with a sign; "" is fine. */
int check_name(const char *text, const char *field, struct error *e);
/* The name or number of a user. */
int check_user(const char *text, const char *field, struct error *e);
/* No ".." in it. */
int check_path(const char *text, const char *field, struct error *e);
/* A host name or address, with or without a port; "${PORT}" may stand in it. */
int check_preview_host(const char *text, const char *field, struct error *e);
int check_absolute_path(const char *text, const char *field, struct error *e);
