#pragma once

struct sandbox;

/* Fails a sandbox: its processes are lost, because its init is gone or talks nonsense. */
void sandbox_fail(struct sandbox *s, const char *reason);
