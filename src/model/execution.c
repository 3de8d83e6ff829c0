#include "model/execution.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static const char *const status_names[] = {
	"queued", "running", "completed", "failed", "timeout", "cancelled", NULL};

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

static const char *const kind_names[] = {"command", "process", "job", NULL};

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

static void execution_signal_name(int64_t number, char out[FIELD_CODE_SIZE])
{
	const char *abbreviation = sigabbrev_np((int)number);
	if (abbreviation)
		snprintf(out, FIELD_CODE_SIZE, "SIG%s", abbreviation);
	else
		snprintf(out, FIELD_CODE_SIZE, "SIGRT%d", (int)number);
}

static const char *execution_job_status(enum execution_status status, int64_t exit_code)
{
	switch (status) {
	case EXECUTION_QUEUED:
		return "pending";
	case EXECUTION_RUNNING:
		return "running";
	case EXECUTION_COMPLETED:
		return exit_code == 0 ? "completed" : "failed";
	case EXECUTION_CANCELLED:
		return "cancelled";
	default:
		return "failed";
	}
}

const char *execution_shown_status(
	enum execution_kind kind, enum execution_status status, int64_t exit_code)
{
	return kind == EXECUTION_JOB ? execution_job_status(status, exit_code)
				     : execution_status_name(status);
}

/* The letters of /proc/PID/stat. */
static void execution_state_name(int64_t letter, char out[FIELD_CODE_SIZE])
{
	const char *name = letter == 'R'                    ? "running"
			   : letter == 'S' || letter == 'I' ? "sleeping"
			   : letter == 'D'                  ? "waiting" /* for a device */
			   : letter == 'T' || letter == 't' ? "stopped"
							    : "exited";
	snprintf(out, FIELD_CODE_SIZE, "%s", name);
}

/* ---- fields ---- */

bool execution_is_over(const void *view)
{
	return ((const struct execution_view *)view)->status > EXECUTION_RUNNING;
}

#define AT(KIND, member)    FIELD_AT(KIND, struct execution_view, member)
#define USAGE(KIND, member) FIELD_AT(KIND, struct execution_usage, member)

/* In the order of the answer. */
/* clang-format off */
static const struct field execution_fields[] = {
	{.name = "executionId", AT(TEXT, id), .flags = FIELD_SHOWN},
	{.name = "sandboxId", AT(TEXT, sandbox_id), .flags = FIELD_SHOWN},
	{.name = "status", AT(ENUM, status), .flags = FIELD_SHOWN, .names = status_names},
	{.name = "exitCode", AT(INTEGER, exit_code), .flags = FIELD_SHOWN,
		.shown_if = execution_is_over,
		.about = "124 on timeout, 128+n for signal n, 127 or 126 when the program could not be run"},
	{.name = "signal", AT(CODE, signal), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.shown_if = execution_is_over, .format = execution_signal_name,
		.about = "Of the signal that ended it"},
	{.name = "timedOut", AT(BOOL, timed_out), .flags = FIELD_SHOWN},
	{.name = "oomKilled", AT(BOOL, oom_killed), .flags = FIELD_SHOWN,
		.about = "The memory limit killed it"},
	{.name = "outputTruncated", AT(BOOL, truncated), .flags = FIELD_SHOWN,
		.about = "More was written than is kept"},
	{.name = "startedAt", AT(TIME, started_ms), .flags = FIELD_SHOWN},
	{.name = "durationMs", AT(MICROS, duration_us), .flags = FIELD_SHOWN},
};

static const struct field process_fields[] = {
	{.name = "id", AT(TEXT, id), .flags = FIELD_SHOWN},
	{.name = "sandboxId", AT(TEXT, sandbox_id), .flags = FIELD_SHOWN},
	{.name = "kind", AT(ENUM, kind), .flags = FIELD_SHOWN, .names = kind_names},
	{.name = "name", AT(TEXT, name), .flags = FIELD_SHOWN},
	{.name = "pid", AT(INTEGER, pid), .flags = FIELD_SHOWN, .about = "Inside the sandbox"},
	{.name = "status", AT(TEXT, shown_status), .flags = FIELD_SHOWN},
	{.name = "command", AT(LIST, command), .flags = FIELD_SHOWN,
		.about = "As many arguments as fit into 4,096 bytes"},
	{.name = "cwd", AT(TEXT, cwd), .flags = FIELD_SHOWN,
		.about = "That it began in; empty: the home of the user"},
	{.name = "user", AT(TEXT, user), .flags = FIELD_SHOWN},
	{.name = "pty", AT(BOOL, terminal), .flags = FIELD_SHOWN, .about = "It has a terminal"},
	{.name = "startedAt", AT(TIME, started_ms), .flags = FIELD_SHOWN},
	{.name = "durationMs", AT(MICROS, duration_us), .flags = FIELD_SHOWN},
	{.name = "endedAt", AT(TIME, ended_ms), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY},
	{.name = "exitCode", AT(INTEGER, exit_code), .flags = FIELD_SHOWN,
		.shown_if = execution_is_over},
	{.name = "signal", AT(CODE, signal), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.shown_if = execution_is_over, .format = execution_signal_name},
	{.name = "cpuMs", AT(MICROS, cpu_us), .flags = FIELD_SHOWN, .shown_if = execution_is_over,
		.about = "Of it and everything it started"},
	{.name = "peakMemory", AT(INTEGER, peak), .flags = FIELD_SHOWN,
		.shown_if = execution_is_over, .about = "Bytes resident in its largest process"},
	{.name = "timedOut", AT(BOOL, timed_out), .flags = FIELD_SHOWN},
	{.name = "oomKilled", AT(BOOL, oom_killed), .flags = FIELD_SHOWN},
	{.name = "outputTruncated", AT(BOOL, truncated), .flags = FIELD_SHOWN},
	{.name = "stdout.length", AT(COUNT, length[0]), .flags = FIELD_SHOWN},
	{.name = "stdout.kept", AT(COUNT, stored[0]), .flags = FIELD_SHOWN},
	{.name = "stderr.length", AT(COUNT, length[1]), .flags = FIELD_SHOWN},
	{.name = "stderr.kept", AT(COUNT, stored[1]), .flags = FIELD_SHOWN},
	{.name = "stdin.open", AT(BOOL, input_open), .flags = FIELD_SHOWN},
	{.name = "stdin.offset", AT(COUNT, input_offset), .flags = FIELD_SHOWN},
	/* For dialects: the native API has a status of its own for jobs. */
	{AT(ENUM, status), .names = status_names},
};

static const struct field usage_fields[] = {
	{.name = "state", USAGE(CODE, state), .flags = FIELD_SHOWN, .format = execution_state_name},
	{.name = "currentDirectory", USAGE(TEXT, cwd), .flags = FIELD_SHOWN},
	{.name = "cpuMs", USAGE(MICROS, cpu_us), .flags = FIELD_SHOWN},
	{.name = "memory", USAGE(INTEGER, memory), .flags = FIELD_SHOWN},
	{.name = "peakMemory", USAGE(INTEGER, peak), .flags = FIELD_SHOWN},
	{.name = "processes", USAGE(INTEGER, processes), .flags = FIELD_SHOWN},
};
/* clang-format on */

const struct field_table execution_model = {
	execution_fields, ARRAY_LEN(execution_fields), sizeof(struct execution_view)};
const struct field_table process_model = {
	process_fields, ARRAY_LEN(process_fields), sizeof(struct execution_view)};
const struct field_table execution_usage_model = {
	usage_fields, ARRAY_LEN(usage_fields), sizeof(struct execution_usage)};
