#include "model/execution.h"

#include <signal.h>
#include <string.h>

static const char *const status_names[EXECUTION_STATUS_COUNT] = {
	"queued", "running", "completed", "failed", "timeout", "cancelled"};

const char *execution_status_name(enum execution_status status)
{
	return status_names[status];
}

enum execution_status execution_status_of(const char *name)
{
	for (int i = 0; i < EXECUTION_STATUS_COUNT; i++)
		if (strcmp(status_names[i], name) == 0)
			return (enum execution_status)i;
	return EXECUTION_FAILED;
}

static const char *const kind_names[EXECUTION_KIND_COUNT] = {"command", "process", "job"};

const char *execution_kind_name(enum execution_kind kind)
{
	return kind_names[kind];
}

/* As the kernel numbers them, which init does, too. */
static const struct {
	const char *name;
	int number;
} signals[] = {{"HUP", SIGHUP}, {"INT", SIGINT}, {"QUIT", SIGQUIT}, {"ILL", SIGILL},
	{"TRAP", SIGTRAP}, {"ABRT", SIGABRT}, {"BUS", SIGBUS}, {"FPE", SIGFPE}, {"KILL", SIGKILL},
	{"USR1", SIGUSR1}, {"SEGV", SIGSEGV}, {"USR2", SIGUSR2}, {"PIPE", SIGPIPE},
	{"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"STKFLT", SIGSTKFLT}, {"CHLD", SIGCHLD},
	{"CONT", SIGCONT}, {"STOP", SIGSTOP}, {"TSTP", SIGTSTP}, {"TTIN", SIGTTIN},
	{"TTOU", SIGTTOU}, {"URG", SIGURG}, {"XCPU", SIGXCPU}, {"XFSZ", SIGXFSZ},
	{"VTALRM", SIGVTALRM}, {"PROF", SIGPROF}, {"WINCH", SIGWINCH}, {"IO", SIGIO},
	{"PWR", SIGPWR}, {"SYS", SIGSYS}};

int execution_signal_of(const char *name)
{
	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		if (strcmp(signals[i].name, name) == 0)
			return signals[i].number;
	return 0;
}
