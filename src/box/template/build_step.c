#include "box/template/build_step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "box/files/archive.h"
#include "box/process/execution.h"
#include "box/sandbox/sandbox.h"

#define CHUNK        (256u * 1024)
#define LINE_MAX_LEN 4096

struct step_run {
	struct build_job *job;
	int step;
	sandbox_done_fn *done;
	/* RUN; the texts are the job's */
	const struct build_step *what;
	const char *user;
	struct execution *execution;
	struct execution_watcher watcher;
	struct buf lines[EXECUTION_STREAMS]; /* the beginning of a line */
	/* COPY, WORKDIR */
	struct file_call *call;
	struct archive *archive;
	int context_fd;
	char *chunk; /* of the context, as it is in the file */
};

/* ---- the end ---- */

static void run_free(struct step_run *run)
{
	for (int i = 0; i < EXECUTION_STREAMS; i++)
		buf_finish(&run->lines[i]);
	if (run->context_fd >= 0)
		close(run->context_fd);
	free(run->chunk);
	free(run);
}

static void run_end(struct step_run *run, const struct error *e)
{
	struct build_job *job = run->job;
	sandbox_done_fn *done = run->done;
	run_free(run);
	done(job, e);
}

void build_step_cancel(struct step_run *run)
{
	if (run->execution) {
		if (!execution_has_ended(run->execution))
			execution_cancel(run->execution);
		execution_unwatch(run->execution, &run->watcher);
	}
	if (run->call)
		file_cancel(run->call);
	if (run->archive)
		archive_cancel(run->archive);
	run_free(run);
}

/* ---- paths ---- */

char *build_step_path(const struct settings *s, const char *path)
{
	autobuf out = {0};
	if (path[0] != '/') {
		buf_append_str(&out, s->workdir ? s->workdir : "/");
		if (out.data[out.len - 1] != '/')
			buf_append_char(&out, '/');
	}
	buf_append_str(&out, path);
	buf_require(&out);
	return buf_take_str(&out);
}

/* ---- RUN ---- */

/* An incomplete line waits for more, unless it is long or the stream has ended. */
static void log_lines(struct step_run *run, unsigned stream, bool all)
{
	struct buf *text = &run->lines[stream];
	struct build *build = run->job->build;
	const char *level = stream == 0 ? "info" : "warn";
	buf_consume(text, build_log_lines(build, level, run->step, text->data, text->len));
	if (text->len == 0 || (text->len < LINE_MAX_LEN && !all))
		return;
	build_log_text(build, level, run->step, text->data, text->len);
	text->len = 0;
}

static void read_output(struct step_run *run)
{
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		size_t before;
		do {
			before = run->lines[i].len;
			if (!execution_read(
				    run->execution, &run->watcher, i, CHUNK, &run->lines[i]))
				return;
			bool more = run->lines[i].len > before;
			log_lines(run, i, false);
			if (!more)
				break;
		} while (true);
	}
}

const char *build_step_command(const struct build_step *step)
{
	for (int i = 1; i < 3 && step->argv[i]; i++)
		if (strcmp(step->argv[i], "-c") == 0 && step->argv[i + 1])
			return step->argv[i + 1];
	return step->argv[0];
}

/* Why the command did not end well; "": it did. */
static void build_step_describe_end(const struct step_run *run, char *out, size_t size)
{
	struct execution_view view;
	const struct error *refusal = execution_refusal(run->execution);
	execution_view(run->execution, &view);
	out[0] = '\0';
	if (refusal && strcmp(refusal->field, "user") == 0)
		snprintf(out, size, "invalid username: '%s'", run->user);
	else if (refusal)
		snprintf(out, size, "%.110s", refusal->message);
	else if (view.oom_killed)
		snprintf(out, size, "it needed more memory than it may have, and was killed");
	else if (view.status == EXECUTION_COMPLETED && view.exit_code != 0)
		snprintf(out, size, "exit status %d%s", (int)view.exit_code,
			run->job->network.mode == NETWORK_NONE ? " (this build has no network)"
							       : "");
	else if (view.status != EXECUTION_COMPLETED && view.signal)
		snprintf(out, size, "ended by signal %d", (int)view.signal);
	else if (view.status != EXECUTION_COMPLETED)
		snprintf(out, size, "the build's sandbox was lost");
}

static int exit_error(const struct step_run *run, struct error *e)
{
	char why[112];
	build_step_describe_end(run, why, sizeof why);
	if (!why[0])
		return 0;
	return error_set(e, ERROR_BUILD_FAILED,
		"failed to run command '%.160s': command failed: %s", build_step_command(run->what),
		why);
}

static void build_step_command_changed(void *arg)
{
	struct step_run *run = arg;
	struct execution *x = run->execution;
	struct error e = {0};
	if (!execution_refusal(x))
		read_output(run);
	if (!execution_refusal(x) && !execution_has_ended(x))
		return;
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		log_lines(run, i, true);
	int r = exit_error(run, &e);
	run->execution = NULL;
	execution_unwatch(x, &run->watcher);
	run_end(run, r < 0 ? &e : NULL);
}

/* The template's variables, then the step's own. */
static const char **build_step_environment(const struct settings *s, const char *const *own)
{
	size_t count = 0, n = 0;
	for (size_t i = 0; i < s->env.len; i++)
		count += s->env.data[i] == '\0';
	for (size_t i = 0; own && own[i]; i++)
		count++;
	const char **env = mem_new_array(count + 1, sizeof *env);
	for (size_t at = 0; at < s->env.len; at += strlen(s->env.data + at) + 1)
		env[n++] = s->env.data + at;
	for (size_t i = 0; own && own[i]; i++)
		env[n++] = own[i];
	return env;
}

static int begin_run(struct step_run *run, const struct build_step *step, struct error *e)
{
	const struct settings *s = &run->job->build->settings;
	autofree const char **env = build_step_environment(s, step->env);
	run->what = step;
	run->user = step->user ? step->user : s->user ? s->user : "root";
	struct execution_spec spec = {
		.argv = step->argv,
		.env = env,
		.user = run->user,
		.cwd = s->workdir ? s->workdir : "/",
		.unlisted = true,
	};
	if (execution_start(run->job->builder, &spec, &run->execution, e) < 0)
		return -1;
	run->watcher = (struct execution_watcher){
		.changed = build_step_command_changed, .arg = run, .paced = true};
	execution_watch(run->execution, &run->watcher);
	return 0;
}

/* ---- WORKDIR and COPY: work of init's own ---- */

static void build_step_call_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct step_run *run = arg;
	(void)result;
	run->call = NULL;
	run_end(run, e);
}

static void build_step_ignore_entry(void *arg, const struct file_entry *entry)
{
	(void)arg;
	(void)entry;
}

static int begin_workdir(struct step_run *run, const struct build_step *step, struct error *e)
{
	static const struct file_events events = {
		.entry = build_step_ignore_entry, .done = build_step_call_done};
	autofree char *path = build_step_path(&run->job->build->settings, step->path);
	struct file_request request = {
		.fixed = {.op = FILE_MKDIR,
			.flags = FILE_PARENTS | FILE_EXIST_OK | FILE_HAS_MODE,
			.mode = 0755},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = path},
	};
	return file_begin(run->job->builder, "root", &request, &events, run, &run->call, e);
}

static void build_step_unpacked(void *arg, const struct error *e)
{
	struct step_run *run = arg;
	run->archive = NULL;
	run_end(run, e);
}

/* From the file into the archive, as it is taken. */
static void send_context(void *arg)
{
	struct step_run *run = arg;
	struct error e;
	while (archive_room(run->archive) > 0) {
		ssize_t n = read(run->context_fd, run->chunk, CHUNK);
		if (n > 0) {
			archive_write(run->archive, run->chunk, (size_t)n);
			continue;
		}
		error_set_errno(&e, n < 0 ? errno : 0, "the uploaded files cannot be read");
		if (n < 0)
			archive_fail(run->archive, &e);
		else
			archive_end(run->archive);
		return;
	}
}

static int begin_copy(struct step_run *run, const struct build_step *step, struct error *e)
{
	static const struct archive_events events = {send_context, build_step_unpacked};
	struct build_job *job = run->job;
	autofree char *path = build_step_path(&job->build->settings, step->path);
	struct file_request request = {
		.fixed = {.op = FILE_UNPACK,
			.flags = FILE_PARENTS | FILE_OVERWRITE |
				 (step->mode >= 0 ? FILE_HAS_MODE : 0u),
			.mode = step->mode >= 0 ? (uint32_t)step->mode : 0},
		.text = {[FILE_CWD] = "/",
			[FILE_PATH] = path,
			[FILE_OWNER] = step->user ? step->user : "0:0",
			[FILE_EXTRA] = step->source ? step->source : "."},
	};
	run->context_fd =
		build_archive_open(job->catalogue->box, job->build->tenant, step->context);
	if (run->context_fd < 0)
		return error_set(e, ERROR_NOT_FOUND, "the uploaded files are gone");
	run->chunk = mem_new(CHUNK);
	run->archive = archive_begin(job->builder, &request, NULL, &events, run, e);
	if (!run->archive)
		return -1;
	send_context(run);
	return 0;
}

struct step_run *build_step_run(struct build_job *job, const struct build_step *step,
	sandbox_done_fn *done, struct error *e)
{
	struct step_run *run = mem_new(sizeof *run);
	*run = (struct step_run){
		.job = job, .step = (int)job->step, .done = done, .context_fd = -1};
	int r = step->kind == BUILD_RUN    ? begin_run(run, step, e)
		: step->kind == BUILD_COPY ? begin_copy(run, step, e)
					   : begin_workdir(run, step, e);
	if (r < 0) {
		run_free(run);
		return NULL;
	}
	return run;
}
