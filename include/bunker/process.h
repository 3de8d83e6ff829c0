/* Commands that are waited for, and processes in the background. Comes with bunker.h. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

enum bunker_stream {
	BUNKER_STDOUT,
	BUNKER_STDERR
};

/* Bytes exactly as the command wrote them. Anything but 0 ends the call with BUNKER_STOPPED. */
typedef int bunker_output_fn(void *arg, enum bunker_stream stream, const void *data, size_t size);

/* A command that is waited for runs now. */
typedef void bunker_started_fn(void *arg, const char *sandbox_id, const char *id, int64_t pid);

struct bunker_exec_options {
	const char *const *argv; /* closed by NULL; or else */
	const char *shell;       /* a line for the sandbox's shell */
	const struct bunker_pair *env;
	size_t env_count;
	const char *cwd;
	const char *user;
	const char *timeout;
	const void *input; /* the command's standard input */
	size_t input_size;
	const struct bunker_file *files;
	size_t file_count;
	bunker_output_fn *output; /* NULL: the result holds the output */
	void *output_arg;
	bunker_started_fn *started; /* NULL: need not be told */
	void *started_arg;
};

/* What is collected of each stream when there is no callback; the rest is dropped. */
#define BUNKER_COLLECT_MAX ((size_t)64 << 20)

struct bunker_result {
	const char *execution_id;
	const char *sandbox_id;
	const char *status; /* completed failed timeout cancelled */
	int exit_code;      /* -1: it did not exit by itself */
	int signal;         /* 0: none */
	bool timed_out;
	bool oom_killed;
	bool output_truncated;
	double duration_ms;
	char *out; /* NUL-terminated; "" when a callback took it */
	size_t out_size;
	char *err;
	size_t err_size;
	struct bunker_json *json; /* without the output; see bunker_result_json */
};
void bunker_result_finish(struct bunker_result *result);
/* With "stdout" and "stderr" as text, where bytes that are not UTF-8 became U+FFFD. */
char *bunker_result_json(const struct bunker_result *result);

int bunker_exec(struct bunker *b, const char *sandbox_id, const struct bunker_exec_options *options,
	struct bunker_result *ret, struct bunker_error *e);
/* A sandbox for one command: it is gone when the call returns, and when the connection breaks. */
int bunker_run(struct bunker *b, const struct bunker_create_options *sandbox,
	const struct bunker_exec_options *options, struct bunker_result *ret,
	struct bunker_error *e);

struct bunker_process_options {
	struct bunker_exec_options command; /* without files and output */
	const char *name;
	bool job;
	bool open_stdin; /* more than `input` is written later */
	bool terminal;
	unsigned rows, columns; /* of the terminal; 0: 24 and 80 */
};

struct bunker_process {
	const char *id;
	const char *sandbox_id;
	const char *kind; /* command process job */
	const char *name;
	const char *status; /* queued running completed failed timeout cancelled; of a job pending
			       running completed failed cancelled */
	const char *user;
	const char *cwd;   /* that it began in; "": the user's home */
	const char **argv; /* closed by NULL */
	const char *started_at;
	const char *ended_at;
	const char *state; /* of its main process, now: running sleeping waiting stopped exited */
	bool terminal;
	bool timed_out;
	bool oom_killed;
	bool output_truncated;
	int64_t pid;
	int exit_code;  /* -1: it has not ended */
	int signal;     /* 0: none */
	int64_t memory; /* bytes, of it and everything it started; 0: not known */
	int64_t peak_memory;
	double cpu_ms;
	double duration_ms;
	struct bunker_json *json;
};
void bunker_process_finish(struct bunker_process *process);

/* Returns when it runs, or has ended without having run. */
int bunker_process_start(struct bunker *b, const char *sandbox_id,
	const struct bunker_process_options *options, struct bunker_process *ret,
	struct bunker_error *e);
/* process: its id, pid or name. wait: as long as this for its end, such as "30s"; NULL: not at all.
 */
int bunker_process_get(struct bunker *b, const char *sandbox_id, const char *process,
	const char *wait, struct bunker_process *ret, struct bunker_error *e);
/* signal: "INT". To its main process, or to everything it started, too. */
int bunker_process_signal(struct bunker *b, const char *sandbox_id, const char *process,
	const char *signal, bool tree, struct bunker_error *e);
/* SIGKILL, with everything it started; returns when it has ended. */
int bunker_process_kill(
	struct bunker *b, const char *sandbox_id, const char *process, struct bunker_error *e);
/* SIGTERM to everything the job started, SIGKILL after `grace` (NULL: 10s), or with force at once.
 */
int bunker_job_stop(struct bunker *b, const char *sandbox_id, const char *job, const char *grace,
	bool force, struct bunker_process *ret, struct bunker_error *e);

struct bunker_process_list {
	struct bunker_process *items;
	size_t count;
};

enum bunker_process_filter {
	BUNKER_RUNNING,
	BUNKER_ENDED, /* the newest first */
	BUNKER_JOBS   /* those that run, then those that have ended */
};
/* limit 0: all of them. */
int bunker_process_list(struct bunker *b, const char *sandbox_id, enum bunker_process_filter filter,
	size_t limit, struct bunker_process_list *ret, struct bunker_error *e);
void bunker_process_list_finish(struct bunker_process_list *list);
/* {"processes":[...]}, for the caller to free. NULL: out of memory. */
char *bunker_process_list_json(const struct bunker_process_list *list);

struct bunker_output_options {
	int64_t offset; /* the first byte of both streams; negative: so many of the last ones */
	bool follow;    /* until the process ends */
	bunker_output_fn *output;
	void *output_arg;
};
/* sandbox_id NULL: `process` is an id, and its sandbox may be gone. */
int bunker_process_output(struct bunker *b, const char *sandbox_id, const char *process,
	const struct bunker_output_options *options, struct bunker_error *e);

/* ---- attached to a process: its output, stdin and terminal ---- */

struct bunker_attachment;

/*
 * What the process writes comes by the callback; an attachment that goes away leaves the process
 * alone. offset: see bunker_output_options, with a place for each stream.
 */
int bunker_attach(struct bunker *b, const char *sandbox_id, const char *process,
	const int64_t offset[2], bunker_output_fn *output, void *output_arg,
	struct bunker_attachment **ret, struct bunker_error *e);
void bunker_attachment_close(struct bunker_attachment *a);
/* To wait on: for input, and for output while bunker_attachment_queued is not 0. */
int bunker_attachment_fd(const struct bunker_attachment *a);
/*
 * Takes what has come and sends what is queued, without waiting. 1 while the process goes on, 0
 * when it has ended, -1 when the connection is lost or the callback wants no more.
 */
int bunker_attachment_step(struct bunker_attachment *a, struct bunker_error *e);
/* Bytes that are not sent yet: whoever has much to write waits until they are few. */
size_t bunker_attachment_queued(const struct bunker_attachment *a);
/* Each queues, and fails only without memory or after the end. */
int bunker_attachment_write(struct bunker_attachment *a, const void *data, size_t size);
int bunker_attachment_end_input(struct bunker_attachment *a);
int bunker_attachment_resize(struct bunker_attachment *a, unsigned rows, unsigned columns);
int bunker_attachment_signal(struct bunker_attachment *a, const char *signal);
/* The next byte of a stream: where to attach again. */
int64_t bunker_attachment_offset(const struct bunker_attachment *a, enum bunker_stream stream);
/* Once step has answered 0; without output. */
int bunker_attachment_result(
	struct bunker_attachment *a, struct bunker_result *ret, struct bunker_error *e);

#ifdef __cplusplus
}
#endif
