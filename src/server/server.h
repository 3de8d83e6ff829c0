/* The commands that run on the server's side; src/cli forwards to them. */
#pragma once

#include "base/error.h"

/* argv[0] is the command's name. The exit status. */
int serve_main(int argc, char **argv);
int doctor_main(int argc, char **argv);

/* 0, or what is needed, in a sentence. */
int server_check_root(struct error *e);
