/* 35, 64: priorities and limits that would put a sandbox above the host's own processes. */
#include "attempt.h"

#include <sched.h>
#include <sys/resource.h>

static enum outcome try_nice(const struct attempt *a)
{
	(void)a;
	return judge(setpriority(PRIO_PROCESS, 0, -20));
}

static enum outcome try_scheduler(const struct attempt *a)
{
	struct sched_param param = {.sched_priority = 10};
	/* Raw: musl's wrapper refuses without asking. */
	return judge(syscall(SYS_sched_setscheduler, 0, a->arg, &param));
}

static enum outcome try_deadline(const struct attempt *a)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {.size = sizeof attr,
		.policy = 6,
		.runtime = 1000000,
		.deadline = 10000000,
		.period = 10000000};
	(void)a;
	return judge(syscall(SYS_sched_setattr, 0, &attr, 0));
}

static enum outcome try_io_priority(const struct attempt *a)
{
	(void)a;
	return judge(syscall(SYS_ioprio_set, 1, 0, 1 << 13 | 0)); /* real time */
}

/* Above the hard limit; one that is infinite cannot be raised, and should not be infinite. */
static enum outcome try_limit(const struct attempt *a)
{
	struct rlimit limit;
	if (getrlimit((int)a->arg, &limit) < 0)
		return say(ERROR, "getrlimit: %s", strerror(errno));
	if (limit.rlim_max == RLIM_INFINITY)
		return say(ESCAPED, "it is infinite");
	limit.rlim_max++;
	return judge(setrlimit((int)a->arg, &limit));
}

static enum outcome try_limit_of_victim(const struct attempt *a)
{
	struct rlimit limit;
	(void)a;
	if (prlimit(victim(), RLIMIT_NOFILE, NULL, &limit) < 0)
		return judge(-1);
	limit.rlim_max++;
	return judge(prlimit(victim(), RLIMIT_NOFILE, &limit, NULL));
}

static enum outcome try_oom_score(const struct attempt *a)
{
	const char *path = a->arg ? victim_path("oom_score_adj") : "/proc/self/oom_score_adj";
	int fd = open(path, O_WRONLY);
	if (fd < 0)
		return judge(fd);
	return judge(write(fd, a->text, strlen(a->text)));
}

static const struct attempt attempts[] = {
	{35, "oom-score-of-self", try_oom_score, .text = "-1000", .needs = CAP_SYS_RESOURCE},
	{35, "oom-score-slightly", try_oom_score, .text = "-1", .needs = CAP_SYS_RESOURCE},
	{35, "oom-score-of-init", try_oom_score, .arg = 1, .text = "-1", .needs = CAP_SYS_RESOURCE},
	{64, "nice", try_nice, .needs = CAP_SYS_NICE},
	{64, "scheduler-fifo", try_scheduler, .arg = SCHED_FIFO, .needs = CAP_SYS_NICE},
	{64, "scheduler-rr", try_scheduler, .arg = SCHED_RR, .needs = CAP_SYS_NICE},
	{64, "scheduler-deadline", try_deadline, .needs = CAP_SYS_NICE},
	{64, "io-priority", try_io_priority, .needs = CAP_SYS_NICE},
	{64, "limit-core", try_limit, .arg = RLIMIT_CORE},
	{64, "limit-open-files", try_limit, .arg = RLIMIT_NOFILE, .needs = CAP_SYS_RESOURCE},
	{64, "limit-locked-memory", try_limit, .arg = RLIMIT_MEMLOCK, .needs = CAP_SYS_RESOURCE},
	{64, "limit-nice", try_limit, .arg = RLIMIT_NICE, .needs = CAP_SYS_RESOURCE},
	{64, "limit-realtime", try_limit, .arg = RLIMIT_RTPRIO, .needs = CAP_SYS_RESOURCE},
	{64, "limit-of-init", try_limit_of_victim, .needs = CAP_SYS_RESOURCE},
};

int main(int argc, char **argv)
{
	return attempts_main(argc, argv, attempts, COUNT(attempts));
}
