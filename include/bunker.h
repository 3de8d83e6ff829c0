/*
 * libbunker: sandboxes on a Bunker server, from C.
 *
 *	struct bunker *b;
 *	struct bunker_error e;
 *	struct bunker_result result;
 *	const char *const argv[] = {"uname", "-a", NULL};
 *
 *	if (bunker_open(&b, "http://127.0.0.1:2468", key, &e) < 0)
 *		errx(1, "%s (%s)", e.message, e.code);
 *	if (bunker_run(b, NULL, &(struct bunker_exec_options){.argv = argv}, &result, &e) < 0)
 *		errx(1, "%s (%s)", e.message, e.code);
 *	fwrite(result.out, 1, result.out_size, stdout);
 *	bunker_result_finish(&result);
 *	bunker_close(b);
 *
 * Every call blocks until the server has answered in full. It returns 0, or -1 with *e filled; what
 *it would have returned through a pointer is untouched then. Options that are 0 or NULL are left to
 *the server. A struct bunker holds settings only, no connection: threads may share one.
 *
 * Results are filled in the caller's memory; their strings live until the matching _finish. Strings
 * that the server did not send are "", unless said otherwise.
 */
#ifndef BUNKER_H
#define BUNKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BUNKER_DEFAULT_URL "http://127.0.0.1:2468"

struct bunker;

/* The codes this library adds to those of the server. */
#define BUNKER_NO_SERVER        "no_server" /* nothing accepts connections there */
#define BUNKER_CONNECT_TIMEOUT  "connect_timeout"
#define BUNKER_CONNECTION_LOST  "connection_lost" /* the outcome of the request is not known */
#define BUNKER_INVALID_URL      "invalid_url"
#define BUNKER_INVALID_ARGUMENT "invalid_argument"
#define BUNKER_INVALID_RESPONSE "invalid_response"
#define BUNKER_TLS_UNSUPPORTED  "tls_unsupported"
#define BUNKER_STOPPED          "stopped" /* by the output callback */
#define BUNKER_OUT_OF_MEMORY    "out_of_memory"

struct bunker_error {
	int http_status; /* 0: the error did not come from the server */
	char code[48];
	char field[64]; /* of the request, when one is at fault */
	char message[400];
};

/* url: http://HOST[:PORT][/PREFIX]. api_key may be NULL; then only bunker_health is of use. */
int bunker_open(struct bunker **ret, const char *url, const char *api_key, struct bunker_error *e);
void bunker_close(struct bunker *b);

/* An answer as JSON; it owns the strings of the result that holds it. */
struct bunker_json;
/* The JSON text, for the caller to free. NULL: out of memory. */
char *bunker_json_text(const struct bunker_json *json);

struct bunker_health {
	const char *status;
	const char *version;
	struct bunker_json *json;
};
int bunker_health(struct bunker *b, struct bunker_health *ret, struct bunker_error *e);
void bunker_health_finish(struct bunker_health *health);

struct bunker_pair {
	const char *name;
	const char *value;
};

/* A file to put in the sandbox before anything runs. */
struct bunker_file {
	const char *path;
	const void *data;
	size_t size;
	unsigned mode; /* 0: the server's default */
};

struct bunker_create_options {
	const char *template_name;
	const char *name;
	const char *description;
	const char *memory; /* "512Mi" */
	const char *cpu;    /* "500m", "2" */
	const char *disk;   /* "2Gi" */
	int64_t pids;
	int64_t open_files;
	const char *idle_timeout;       /* "10m" */
	const char *execution_timeout;  /* for each execution; "30s" */
	const char *lease;              /* ends so long after its creation or last resume; "1h" */
	const char *paused_timeout;     /* ends when it was paused for so long */
	const char *on_idle, *on_lease; /* "destroy", "pause", "suspend" */
	bool auto_resume;               /* the next call wakes it */
	const char *user;
	const char *workdir;
	const char *project;
	const struct bunker_pair *env;
	size_t env_count;
	const struct bunker_pair *metadata;
	size_t metadata_count;
	const struct bunker_file *files;
	size_t file_count;
	const char *const *dependencies; /* apt packages to install first */
	size_t dependency_count;
	const char *const *packages; /* npm packages, in the same way */
	size_t package_count;
};

struct bunker_sandbox {
	const char *id;
	const char *name;
	const char *description;
	const char *status; /* creating idle running paused stopping suspended terminated failed
			       deleted */
	const char *status_reason;
	const char *template_name;
	const char *user;
	const char *workdir;
	const char *project;
	const char *isolation;
	const char *created_at; /* the times are RFC 3339 */
	const char *last_active_at;
	const char *expires_at;    /* when the next of its times is up */
	const char *terminates_at; /* when that ends it */
	const char *lease_ends_at;
	const char *paused_at;
	const char *ended_at;
	const char *ended_by;
	const char *boot_id;
	const char *on_idle, *on_lease;
	const char *memory;
	const char *cpu;
	const char *disk; /* "": not limited */
	const char *idle_timeout;
	const char *execution_timeout;
	const char *paused_timeout;
	const char *lease;
	bool auto_resume;
	int64_t pids;
	int64_t open_files;
	int64_t executions;
	double startup_ms;
	struct bunker_pair *env;
	size_t env_count;
	struct bunker_pair *metadata;
	size_t metadata_count;
	struct bunker_json *json;
};
void bunker_sandbox_finish(struct bunker_sandbox *sandbox);

int bunker_create(struct bunker *b, const struct bunker_create_options *options,
	struct bunker_sandbox *ret, struct bunker_error *e);
int bunker_get(
	struct bunker *b, const char *id, struct bunker_sandbox *ret, struct bunker_error *e);
int bunker_destroy(struct bunker *b, const char *id, struct bunker_error *e);

/*
 * With its memory every process stops where it is; without, processes end and the disk stays, and a
 * resume boots it anew.
 */
int bunker_pause(struct bunker *b, const char *id, bool keep_memory, struct bunker_sandbox *ret,
	struct bunker_error *e);
int bunker_resume(struct bunker *b, const char *id, bool keep_memory, struct bunker_sandbox *ret,
	struct bunker_error *e);
/* From now on, longer or shorter than before; "0s": no end. */
int bunker_set_lease(struct bunker *b, const char *id, const char *duration,
	struct bunker_sandbox *ret, struct bunker_error *e);

struct bunker_event {
	int64_t number; /* counted from 1 */
	const char *type;
	const char *cause;
	const char *created_at;
	struct bunker_pair *details;
	size_t detail_count;
	struct bunker_json *json;
};

/* The event is valid for the time of the call. Anything but 0 ends it with BUNKER_STOPPED. */
typedef int bunker_event_fn(void *arg, const struct bunker_event *event);
/* Those behind `after`, oldest first; with `follow` also those to come, until the sandbox's end. */
int bunker_events(struct bunker *b, const char *id, int64_t after, bool follow,
	bunker_event_fn *each, void *arg, struct bunker_error *e);

struct bunker_usage {
	int64_t cpu_ms; /* since its creation, as the next */
	int64_t memory_byte_seconds;
	int64_t network_in, network_out;
	int64_t memory, disk, pids; /* now */
	const char *ended_at;
	struct bunker_json *json;
};
/* Also of one that has ended. */
int bunker_usage(
	struct bunker *b, const char *id, struct bunker_usage *ret, struct bunker_error *e);
void bunker_usage_finish(struct bunker_usage *usage);

struct bunker_list_options {
	const char *status;
	const char *project;
	const char *name;
	const struct bunker_pair *metadata;
	size_t metadata_count;
	size_t limit; /* 0: all of them, however many pages that takes */
};

struct bunker_sandbox_list {
	struct bunker_sandbox *items;
	size_t count;
};
int bunker_list(struct bunker *b, const struct bunker_list_options *options,
	struct bunker_sandbox_list *ret, struct bunker_error *e);
void bunker_sandbox_list_finish(struct bunker_sandbox_list *list);
/* {"sandboxes":[...]}, for the caller to free. NULL: out of memory. */
char *bunker_sandbox_list_json(const struct bunker_sandbox_list *list);

enum bunker_stream {
	BUNKER_STDOUT,
	BUNKER_STDERR
};

/* Bytes exactly as the command wrote them. Anything but 0 ends the call with BUNKER_STOPPED. */
typedef int bunker_output_fn(void *arg, enum bunker_stream stream, const void *data, size_t size);

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

/* ---- processes: commands in the background ---- */

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

/* ---- files ---- */

/* Whose rights and where relative paths begin; NULL, also for the struct: the sandbox's. */
struct bunker_place {
	const char *user;
	const char *cwd;
};

/* Bytes as they come. Anything but 0 ends the call with BUNKER_STOPPED. */
typedef int bunker_data_fn(void *arg, const void *data, size_t size);
/* The next bytes to send, at most size; 0: that was all; negative: the call ends. */
typedef ptrdiff_t bunker_read_fn(void *arg, char *data, size_t size);

/* Paths are as the file system has them: any bytes. */
struct bunker_entry {
	char *path;       /* absolute */
	const char *name; /* its last part */
	char *target;     /* of a link; "" */
	const char *type; /* file directory symlink fifo socket characterDevice blockDevice */
	const char *mode; /* "0644" */
	const char *owner, *group;
	const char *modified_at; /* RFC 3339 */
	int64_t size, uid, gid, links;
	struct bunker_json *json; /* NULL of those that a callback gets */
};
void bunker_entry_finish(struct bunker_entry *entry);

int bunker_file_stat(struct bunker *b, const char *sandbox_id, const char *path, bool follow,
	const struct bunker_place *place, struct bunker_entry *ret, struct bunker_error *e);
/* depth 0: all levels. A list may be long: it comes in pages, each told as it is there. */
typedef int bunker_entry_fn(void *arg, const struct bunker_entry *entry);
int bunker_file_list(struct bunker *b, const char *sandbox_id, const char *path, unsigned depth,
	const struct bunker_place *place, bunker_entry_fn *each, void *arg, struct bunker_error *e);
int bunker_file_find(struct bunker *b, const char *sandbox_id, const char *path,
	const char *pattern, const struct bunker_place *place, bunker_entry_fn *each, void *arg,
	struct bunker_error *e);
int bunker_file_read(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_place *place, bunker_data_fn *data, void *arg, struct bunker_error *e);
/* mode NULL: 0644 for a new file. */
int bunker_file_write(struct bunker *b, const char *sandbox_id, const char *path, const char *mode,
	const struct bunker_place *place, bunker_read_fn *read, void *arg, struct bunker_error *e);
/* With the directories above it; one that is there is fine. */
int bunker_file_mkdir(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_place *place, struct bunker_error *e);
int bunker_file_remove(struct bunker *b, const char *sandbox_id, const char *path, bool recursive,
	const struct bunker_place *place, struct bunker_error *e);

struct bunker_grep_options {
	const char *pattern;
	const char *include; /* glob; NULL: all files */
	bool regex, ignore_case;
	struct bunker_place place;
};

struct bunker_match {
	const char *path;
	const char *text;
	int64_t line, column;
};
typedef int bunker_match_fn(void *arg, const struct bunker_match *match);
/* *truncated: there are more than the server tells at once. */
int bunker_file_grep(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_grep_options *options, bunker_match_fn *each, void *arg,
	bool *truncated, struct bunker_error *e);

struct bunker_file_event {
	const char *type; /* ready create write remove rename chmod overflow */
	const char *path; /* relative to what is watched */
	const char *to;   /* of a rename; "" */
	bool directory;
	const char *json;
};
typedef int bunker_file_event_fn(void *arg, const struct bunker_file_event *event);
/* Until what is watched is gone, or the callback says so. */
int bunker_file_watch(struct bunker *b, const char *sandbox_id, const char *path, bool recursive,
	const struct bunker_place *place, bunker_file_event_fn *each, void *arg,
	struct bunker_error *e);

/* A directory, or a file, as a tar archive; and one unpacked into a directory, which is made. */
int bunker_tar_get(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_place *place, bunker_data_fn *data, void *arg, struct bunker_error *e);
int bunker_tar_put(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_place *place, bunker_read_fn *read, void *arg, struct bunker_error *e);

/* ---- the environment of a sandbox ---- */

struct bunker_env {
	struct bunker_pair *items;
	size_t count;
	struct bunker_json *json;
};
void bunker_env_finish(struct bunker_env *env);
int bunker_env_get(
	struct bunker *b, const char *sandbox_id, struct bunker_env *ret, struct bunker_error *e);
/* A value of NULL takes the variable out. */
int bunker_env_change(struct bunker *b, const char *sandbox_id, const struct bunker_pair *changes,
	size_t count, struct bunker_env *ret, struct bunker_error *e);

/* ---- templates ---- */

struct bunker_template {
	const char *id;
	const char *name;
	const char *description;
	const char *status; /* waiting building ready failed cancelled */
	const char *tags;   /* separated by spaces */
	bool is_default;
	bool is_built_in;
	int64_t size;
};

struct bunker_template_list {
	struct bunker_template *items;
	size_t count;
	char *memory;
	struct bunker_json *json;
};
int bunker_templates(struct bunker *b, struct bunker_template_list *ret, struct bunker_error *e);
void bunker_template_list_finish(struct bunker_template_list *list);

/* What "name", "name:tag" or an id stands for: the variables that its sandboxes have. */
struct bunker_template_info {
	const char *name;
	const char *description;
	const char *build; /* "": it is built in */
	struct bunker_pair *env;
	size_t env_count;
	struct bunker_json *json;
};
int bunker_template_resolve(struct bunker *b, const char *ref, struct bunker_template_info *ret,
	struct bunker_error *e);
void bunker_template_info_finish(struct bunker_template_info *info);
/* One template with all its builds, as JSON. */
int bunker_template_get(
	struct bunker *b, const char *name, struct bunker_json **ret, struct bunker_error *e);
void bunker_json_free(struct bunker_json *json);
/* build: an id or another tag; NULL: what the name stands for. */
int bunker_template_tag(struct bunker *b, const char *name, const char *tag, const char *build,
	struct bunker_error *e);
int bunker_template_untag(
	struct bunker *b, const char *name, const char *tag, struct bunker_error *e);
int bunker_template_delete(struct bunker *b, const char *name, struct bunker_error *e);

struct bunker_build {
	const char *id;
	const char *template_name;
	const char *status;
	const char *reason;
	const char *failed_step;
	const char *digest;
	int64_t size;
	struct bunker_json *json;
};
void bunker_build_finish(struct bunker_build *build);

struct bunker_import_options {
	const char *name; /* "name" or "name:tag" */
	const char *description;
	const char *format;   /* auto root docker oci */
	const char *ref;      /* which image of several */
	const char *digest;   /* what it must have */
	const char *origin;   /* to be shown */
	bunker_read_fn *read; /* a tar archive */
	void *arg;
};
int bunker_template_import(struct bunker *b, const struct bunker_import_options *options,
	struct bunker_build *ret, struct bunker_error *e);

enum bunker_step_kind {
	BUNKER_STEP_RUN,
	BUNKER_STEP_COPY,
	BUNKER_STEP_ENV,
	BUNKER_STEP_WORKDIR,
	BUNKER_STEP_USER
};

struct bunker_build_step {
	enum bunker_step_kind kind;
	const char *const *argv; /* run; closed by NULL */
	const char *const *env;  /* NAME=VALUE, closed by NULL; of a run: its own */
	const char *user;
	const char *path; /* copy, workdir */
	const char *context, *source, *owner;
	int mode; /* copy; -1: as in the archive */
};

struct bunker_build_options {
	const char *name; /* "name" or "name:tag" */
	const char *description;
	const char *from; /* NULL: the default template */
	const struct bunker_build_step *steps;
	size_t step_count;
	/* Closed by NULL; NULL: as `from` has it. */
	const char *const *start, *const *entrypoint, *const *command, *const *ports;
	const char *ready;
	const char *timeout;
	bool no_cache;
};
int bunker_build_create(struct bunker *b, const struct bunker_build_options *options,
	struct bunker_build *ret, struct bunker_error *e);
int bunker_build_cancel(struct bunker *b, const char *id, struct bunker_error *e);

struct bunker_log_entry {
	const char *time, *level, *step, *message;
};
/* Anything but 0 ends the call with BUNKER_STOPPED. */
typedef int bunker_log_fn(void *arg, const struct bunker_log_entry *entry);
/* Until the build has ended. */
int bunker_build_follow(struct bunker *b, const char *id, bunker_log_fn *log, void *arg,
	struct bunker_build *ret, struct bunker_error *e);

/* Files for copy steps, by the SHA-256 of their archive. */
int bunker_context_exists(struct bunker *b, const char *hash, bool *ret, struct bunker_error *e);
int bunker_context_put(struct bunker *b, const char *hash, bunker_read_fn *read, void *arg,
	struct bunker_error *e);

#ifdef __cplusplus
}
#endif

#endif
