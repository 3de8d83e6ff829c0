/* Variables that every command of a sandbox has, unless the client or the template sets them. */
#pragma once

#include <stddef.h>

struct sandbox;

#define DEFAULT_ENV_MAX 12

/* Fills the array with constant texts "NAME=VALUE", and returns how many there are. */
size_t default_env(const struct sandbox *s, const char *ret[DEFAULT_ENV_MAX]);
