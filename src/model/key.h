/* An API key as it is stored and shown: who may do what with it, and never what opens it. */
#pragma once

#include <stdint.h>

#include "base/field.h"

#define KEYS_MAX         10000 /* of all tenants */
#define KEYS_PER_TENANT  100
#define KEY_NAME_MAX     63
#define KEY_TENANT_MAX   63
#define KEY_LIFE_MIN_MS  1000
#define KEY_LIFE_MAX_MS  (INT64_C(3650) * 24 * 3600 * 1000)
#define KEY_GRACE_MAX_MS (INT64_C(7) * 24 * 3600 * 1000)
/* The tenant of the server's operator: its admins manage the keys of all tenants. */
#define KEY_SERVER_TENANT "default"

/* Each includes those before it. */
enum key_scope {
	KEY_READ,
	KEY_USE,
	KEY_ADMIN
};

enum key_origin {
	KEY_CREATED, /* through the API */
	KEY_LOCAL,   /* the one of the file for the CLI on the server's machine */
	KEY_OPTION   /* given when the server was started, and not stored */
};

struct key_record {
	const char *id, *name, *tenant;
	enum key_scope scope;
	enum key_origin origin;
	int64_t created_ms;
	int64_t expires_ms;  /* 0: never */
	int64_t used_ms;     /* 0: never */
	int64_t rotated_ms;  /* 0: never */
	int64_t previous_ms; /* until when the text before the last rotation is good; 0: it is not
			      */
	int64_t life_ms;     /* of a request: how long from now on; 0: for ever */
	const char *text;    /* of an answer to whoever made it, this once; else NULL */
	struct strings hash, previous; /* of the text, and of the one before */
};

extern const struct field_table key_model;
