#include "cli/commands.h"

const struct command cmd_serve = {
	.name = "serve",
	.summary = "run the server",
	.forward = serve_main,
};
