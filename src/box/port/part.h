#pragma once

#include "box/port/port.h"
#include "box/sandbox/part.h"

extern const struct sandbox_part port_part;
