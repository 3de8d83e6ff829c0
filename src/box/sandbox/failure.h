#pragma once

struct sandbox;

/* Its processes are lost: its init is gone, or makes no sense. */
void sandbox_fail(struct sandbox *s, const char *reason);
