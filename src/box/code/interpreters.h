/* The programs of src/interpreter, inside the one binary; made by tools/embed-interpreters. */
#pragma once

#include <stddef.h>

struct interpreter_text {
	const char *name; /* NULL ends a list */
	const char *text;
	size_t len;
};

extern const char interpreter_python_boot[], interpreter_javascript_boot[], interpreter_bash_boot[];
extern const struct interpreter_text interpreter_python, interpreter_javascript, interpreter_bash;
extern const struct interpreter_text interpreter_python_parts[], interpreter_no_parts[];
