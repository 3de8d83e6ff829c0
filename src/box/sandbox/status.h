/* The table of allowed moves. */
#pragma once

#include <stdbool.h>

#include "model/sandbox.h"

struct sandbox;

void sandbox_set_status(struct sandbox *s, enum sandbox_status status);
/* Idle or running, by what goes on in it. */
void sandbox_set_awake(struct sandbox *s);
bool sandbox_is_awake(const struct sandbox *s);
