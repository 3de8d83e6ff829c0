/* The start of bunker-egress: `bunker-egress UID LEVEL`, with its listening socket as descriptor 3.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/schedule.h"
#include "egress/egress.h"

#define LISTEN_FD 3
/* Descriptors besides those of connections: three for each sandbox, pipes, questions. */
#define OTHER_DESCRIPTORS 3000

struct egress egress;

static loop_tick_fn *const ticks[] = {client_tick, connection_tick, lookup_tick, name_stream_tick,
	tell_tick, control_check_end, NULL};

/* A connection takes two descriptors, and up to four more while bytes wait in pipes. */
static unsigned connections_that_fit(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur < 2 * OTHER_DESCRIPTORS)
		return CONNECTIONS_PER_SANDBOX;
	rlim_t fit = (files.rlim_cur - OTHER_DESCRIPTORS) / 2;
	return fit < CONNECTIONS_MAX ? (unsigned)fit : CONNECTIONS_MAX;
}

int egress_main(int argc, char **argv)
{
	log_set_process("egress");
	prctl(PR_SET_NAME, EGRESS_NAME, 0, 0, 0);
	if (argc != 3 || geteuid() != 0)
		return 2;
	log_set_level((enum log_level)atoi(argv[2]));
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	schedule_promptly();
	egress.connection_max = connections_that_fit();
	int r = loop_open();
	if (r == 0)
		r = egress_confine((uid_t)strtoul(argv[1], NULL, 10));
	if (r == 0)
		r = control_open(LISTEN_FD);
	if (r < 0) {
		log_error("cannot start", "error", strerror(-r));
		return 1;
	}
	loop_run(ticks);
}
