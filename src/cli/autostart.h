/* A server in the background for those who have none yet, as tmux does it. */
#pragma once

/* Returns once it listens, having said so on stderr; or -1, having said what is in the way. */
int cli_autostart_server(const char *url);
