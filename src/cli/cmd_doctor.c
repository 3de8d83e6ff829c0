#include "cli/commands.h"

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "check what this machine can isolate, and how",
	.forward = doctor_main,
};
