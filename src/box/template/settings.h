/*
 * The settings that a template gives to its sandboxes besides files, owned and in one piece. On
 * disk it is a list of strings, each with its NUL, whose first byte says what it is: the order of a
 * kind's strings counts, that of the kinds does not.
 */
#pragma once

#include "base/buf.h"
#include "box/template/build.h"

#define SETTINGS_PACKED_MAX (256u * 1024)

struct settings {
	char *user, *workdir, *ready; /* NULL: none */
	struct buf env, start, entrypoint, command, ports;
	int64_t ready_timeout_ms, memory, cpu;
};

void settings_finish(struct settings *s);
void settings_copy(struct settings *to, const struct settings *from);
void settings_config(const struct settings *s, struct template_config *out);

/* A variable takes the place of one with the same name. */
void settings_set_env(struct settings *s, const char *name_and_value);
/* NULL-terminated; the list that was there is gone. */
void settings_set_list(struct buf *list, const char *const *strings);
void settings_set_text(char **text, const char *value);

void settings_pack(const struct settings *s, struct buf *out);
/* Unknown kinds are skipped: a newer program may have written them. */
void settings_unpack(struct settings *s, const void *data, size_t len);
