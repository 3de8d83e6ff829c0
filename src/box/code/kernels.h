/* The programs of src/kernel, inside the one binary; made by tools/embed-kernels. */
#pragma once

#include <stddef.h>

struct kernel_text {
	const char *name; /* NULL ends a list */
	const char *text;
	size_t len;
};

extern const char kernel_python_boot[], kernel_javascript_boot[], kernel_bash_boot[];
extern const struct kernel_text kernel_python, kernel_javascript, kernel_bash;
extern const struct kernel_text kernel_python_parts[], kernel_no_parts[];
