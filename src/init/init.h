/*
 * Init: PID 1 of a sandbox. It starts processes, owns their pipes, does file work on the inside,
 * and keeps what the front has not yet read. One thread, one epoll loop, no libraries.
 *
 * What it holds, from the warden: descriptor 3, a listening socket that only the front can reach,
 * descriptor 4, the sandbox's own cgroup (v2), in which every process gets a child cgroup, so that
 * "the process and everything it started" is something the kernel knows, and descriptor 5, where
 * each process writes 0 before it becomes somebody else's: that puts it under the quota of
 * processor time, which does not hold for init and its workers. Where v2 limits the time, its
 * cgroup does that already, and descriptor 5 is /dev/null. Descriptor 6 has the requests for
 * sockets of netlink.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/frame.h"

#define INIT_LISTEN_FD     3
#define INIT_CGROUP_FD     4
#define INIT_QUOTA_FD      5
#define INIT_NETLINK_FD    6
#define INIT_MAX_PROCESSES FRAME_MAX_RECORDS

/* ---- main.c ---- */

/* Has a bit for each capability that a process inside can ever hold. */
extern const uint64_t init_kept_capabilities;

/* ---- loop.c: descriptors that call back ---- */

struct source {
	int fd;
	uint32_t events;
	void (*ready)(struct source *s, uint32_t events);
};

void loop_open(void);
/* Wait for events until deadline (monotonic µs, 0: none) and run their callbacks. */
void loop_run_once(int64_t deadline_us);
int loop_watch(struct source *s, uint32_t events);
/* Takes the source out of the loop and closes its descriptor; pending events are dropped. */
void loop_close(struct source *s);

/* ---- cgroup.c: a process and everything it started ---- */

struct cgroup {
	unsigned number;
	bool killed;            /* it cannot be used again */
	uint64_t cpu_before_us; /* used by earlier owners of this cgroup */
};

/* Makes the next process's cgroup in advance, while the loop is idle. */
void cgroup_prepare(void);
/* Returns the descriptor of an empty cgroup; the caller owns it. */
int cgroup_take(struct cgroup *ret);
void cgroup_kill(struct cgroup *c);
/* Signals every process in it, including those forked meanwhile. */
void cgroup_signal(const struct cgroup *c, int signal);
size_t cgroup_pids(const struct cgroup *c, pid_t *pids, size_t max);
uint64_t cgroup_cpu_us(const struct cgroup *c);
bool cgroup_is_empty(const struct cgroup *c);
/* Takes a process's cgroup back, now or when its last process has exited. */
void cgroup_release(struct cgroup *c);
void cgroup_retry_releases(void);

/* ---- process.c: the table of processes ---- */

struct process;

struct stream {
	struct source source;
	struct process *process;
	char *ring;     /* mapped with the first byte of output */
	size_t size;    /* of the ring: FRAME_RING, or more once the main process is gone */
	uint64_t acked; /* the ring holds [acked, end) */
	uint64_t sent;  /* [acked, sent) was sent to the front */
	uint64_t end;
	bool terminal;
	bool done; /* no byte of the main process is left to read */
};

struct process {
	struct process *next;
	uint64_t tag;
	char execution[FRAME_EXECUTION_LEN];
	uint32_t start_flags, kind;
	struct buf description; /* the strings of its PROCESS */
	pid_t pid;
	struct cgroup cgroup;
	int64_t started_us;
	int64_t started_wall_ms;
	uint64_t timeout_ms;
	int64_t deadline_us; /* 0: none */
	int64_t kill_at_us;  /* after a stop; 0: none */
	struct stream streams[FRAME_STREAMS];
	struct source input;
	struct buf input_buf;
	uint64_t input_received;
	uint64_t input_taken;
	bool input_ended;
	bool exited;
	bool exit_sent;
	bool forgotten;
	struct frame_exit exit;
};

void process_start(uint64_t tag, const struct start_request *request);
/* Negative: the frame made no sense, and the connection should end. */
int process_input(uint64_t tag, uint64_t offset, const char *data, size_t len);
void process_input_end(uint64_t tag);
int process_ack(uint64_t tag, unsigned stream, uint64_t offset);
int process_resize(uint64_t tag, uint64_t size);
void process_signal(uint64_t tag, int signal, unsigned scope);
void process_stop(uint64_t tag, uint64_t grace_ms);
void process_kill(uint64_t tag);
void process_inspect(uint64_t tag);
void process_forget(uint64_t tag);

/* Everything that ended: fill in results, reap orphans. */
void process_reap(void);
/* Kills processes past their deadline. Returns the next deadline, 0 if there is none. */
int64_t process_check_deadlines(void);
/* The sandbox is about to be frozen, or goes on: that time does not count. */
void process_pause_deadlines(void);
void process_resume_deadlines(void);
/* Frees forgotten processes; called when no callback is on the stack. */
void process_sweep(void);

/* Describes every process to a new front, then resends output from the acknowledged position. */
void process_announce_all(struct buf *out);
/* Append output and exits until out holds about limit bytes. */
void process_collect(struct buf *out, size_t limit);

/* ---- output.c: a process's stdout and stderr ---- */

/* A negative fd is a stream that has ended already. */
void stream_open(struct process *p, unsigned index, int fd);
int stream_ack(struct stream *s, uint64_t offset);
/* Appends one frame, if there is something to send. */
bool stream_collect(struct stream *s, unsigned index, struct buf *out);
/* Whether stream_collect has something to send now. */
bool stream_can_send(const struct stream *s);
/*
 * The main process has exited: only what it left belongs to the stream, which is done with that.
 */
void stream_main_exited(struct stream *s);
void stream_destroy(struct stream *s);

/* ---- input.c: a process's stdin ---- */

void input_open(struct process *p, int fd);
int input_receive(struct process *p, uint64_t offset, const char *data, size_t len);
void input_end(struct process *p);
void input_close(struct process *p);

/* ---- inspect.c ---- */

/* Appends the payload of a STATUS. */
void inspect_process(const struct process *p, struct buf *out);

/* ---- terminal.c ---- */

int terminal_open(unsigned rows, unsigned columns, uid_t owner, int *master, int *slave);
void terminal_resize(int master, unsigned rows, unsigned columns);
/* The key that means the end of input. */
char terminal_end_character(int master);

/* ---- spawn.c: one new process ---- */

struct spawn_result {
	pid_t pid;
	enum frame_stage stage;
	int error;
	int stdin_fd; /* init's ends; -1 if not open */
	int output_fd[FRAME_STREAMS];
	struct cgroup cgroup;
};

int spawn_process(const struct start_request *request, struct spawn_result *ret);

/* ---- user.c: users of the sandbox ---- */

#define USER_MAX_GROUPS 32

struct user {
	uid_t uid;
	gid_t gid;
	char name[64];
	char home[256];
	char shell[128];
	gid_t groups[USER_MAX_GROUPS];
	int group_count;
};

/*
 * Looks a user up by name or number in the sandbox's /etc/passwd and /etc/group. Returns -ENOENT if
 * unknown.
 */
int user_lookup(const char *name, struct user *ret);

/* ---- netlink.c: sockets that are counted ---- */

/* Takes the number for making them out of the environment. */
void netlink_open(char *const *environment);

/* ---- warm.c: before the first command ---- */

void warm_up(void);

/* ---- connection.c: the front ---- */

void connection_open(void);
/*
 * Sends pending output as far as the socket takes it. Returns 0, or the time (monotonic µs) by
 * which output held back for batching must be sent.
 */
int64_t connection_flush(void);
void connection_send(
	enum frame_type type, uint64_t tag, uint64_t offset, const void *payload, size_t size);
/* Queues a frame without urgency: most commands end before the front reads that they began. */
void connection_send_later(
	enum frame_type type, uint64_t tag, uint64_t offset, const void *payload, size_t size);
