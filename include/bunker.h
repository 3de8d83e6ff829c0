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
	const char *idle_timeout;      /* "10m" */
	const char *execution_timeout; /* for each execution; "30s" */
	const char *user;
	const char *workdir;
	const char *project;
	const struct bunker_pair *env;
	size_t env_count;
	const struct bunker_pair *metadata;
	size_t metadata_count;
	const struct bunker_file *files;
	size_t file_count;
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
	const char *expires_at;
	const char *memory;
	const char *cpu;
	const char *disk; /* "": not limited */
	const char *idle_timeout;
	const char *execution_timeout;
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

struct bunker_template {
	const char *name;
	const char *description;
	bool is_default;
};

struct bunker_template_list {
	struct bunker_template *items;
	size_t count;
	struct bunker_json *json;
};
int bunker_templates(struct bunker *b, struct bunker_template_list *ret, struct bunker_error *e);
void bunker_template_list_finish(struct bunker_template_list *list);

#ifdef __cplusplus
}
#endif

#endif
