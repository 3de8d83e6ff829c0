/* What a sandbox's root filesystem starts from. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct template_info {
	const char *name;
	const char *description;
	bool is_default;
};

const struct template_info *template_at(size_t index); /* NULL ends */
const struct template_info *template_find(const char *name);
