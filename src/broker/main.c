/*
 * The start of bunker-broker: `bunker-broker UID LEVEL TRUST-STORE`, with its listening socket as
 * descriptor 3. The trust store is the only file that it reads, and reads before it is confined.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/schedule.h"
#include "broker/broker.h"
#include "broker/tls.h"

#define LISTEN_FD 3

static loop_tick_fn *const ticks[] = {exchange_tick, broker_check_end, NULL};

int broker_main(int argc, char **argv)
{
	log_set_process("broker");
	prctl(PR_SET_NAME, BROKER_NAME, 0, 0, 0);
	if (argc != 4 || geteuid() != 0)
		return 2;
	log_set_level((enum log_level)atoi(argv[2]));
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	schedule_promptly();
	tzset(); /* reads a file the first time, which dates of certificates would cause later */
	int r = loop_open();
	if (r == 0)
		r = tls_open(argv[3]);
	if (r == 0)
		r = broker_confine((uid_t)strtoul(argv[1], NULL, 10));
	if (r == 0)
		r = broker_listen(LISTEN_FD);
	if (r < 0) {
		log_error("cannot start", "error", strerror(-r));
		return 1;
	}
	loop_run(ticks);
}
