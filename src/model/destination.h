/* A place on the internet as a sandbox used it, as data. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/field.h"

#define DESTINATIONS_SHOWN_MAX 256 /* of a sandbox, besides the one that stands for the others */

struct destination_view {
	const char *host;                /* the name that decided, else the address */
	char address[ADDRESS_TEXT_SIZE]; /* that was used last; "": none was */
	int64_t port;                    /* 0: its name was asked for, and refused */
	bool is_other;                   /* stands for all that were too many: without a host */
	uint64_t connections;
	uint64_t failed; /* were allowed, and could not be opened */
	uint64_t refused;
	uint64_t bytes_in, bytes_out;
	int64_t used_ms; /* wall clock */
};

extern const struct field_table destination_model;
