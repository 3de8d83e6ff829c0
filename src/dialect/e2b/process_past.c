/*
 * Connect to a process that has ended: its start, what is kept of its output, its end. E2B forgets
 * them after half a minute; here they stay as long as the server keeps results.
 */
#include <stdlib.h>
#include <string.h>

#include "dialect/e2b/process_events.h"

#define SEARCH_MAX 1000 /* of the latest ones */

struct past_process {
	struct http_request *req; /* NULL once the client has gone */
	const struct server *server;
	char tenant[64];
	int64_t pid;
	char *tag;
	char found[ID_SIZE]; /* "": not yet */

	/* once it was loaded: */
	int32_t loaded_pid;
	bool terminal;
	struct buf end; /* the last event */
	struct output_copy copies[EXECUTION_STREAMS];
	unsigned current;
	uint64_t position;
	bool announced;
};

static void past_free(struct past_process *p)
{
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		output_copy_finish(&p->copies[i]);
	buf_finish(&p->end);
	free(p->tag);
	free(p);
}

/* ---- the stream ---- */

static void past_closed(void *arg, bool client_left)
{
	(void)client_left;
	past_free(arg);
}

static enum connect_progress past_collect(void *arg, struct buf *out, struct error *e)
{
	struct past_process *p = arg;
	autobuf data = {0};
	(void)e;
	if (!p->announced)
		process_put_start(out, p->loaded_pid);
	p->announced = true;
	while (p->current < EXECUTION_STREAMS && p->position >= p->copies[p->current].length) {
		p->current++;
		p->position = 0;
	}
	if (p->current == EXECUTION_STREAMS) {
		buf_append(out, p->end.data, p->end.len);
		return CONNECT_DONE;
	}
	if (output_copy_read(&p->copies[p->current], &p->position, PROCESS_DATA_MAX, &data) < 0)
		return CONNECT_RESET;
	process_put_data(out, process_stream_name(p->terminal, p->current), &data);
	return CONNECT_MORE;
}

/* ---- finding it ---- */

static void refuse(struct past_process *p)
{
	struct error e;
	struct http_request *req = p->req;
	process_not_found(&(struct process_selector){p->pid, p->tag}, &e);
	past_free(p);
	if (req)
		connect_stream_refuse(req, &e);
}

static void past_loaded(void *arg, struct execution *x)
{
	struct past_process *p = arg;
	const struct connect_source source = {past_collect, PROCESS_KEEPALIVE, past_closed, p};
	struct execution_view view;
	if (!x || !p->req) {
		refuse(p);
		return;
	}
	execution_view(x, &view);
	execution_copy_output(x, p->copies);
	p->loaded_pid = view.pid;
	p->terminal = view.terminal;
	process_put_end(&p->end, &view);
	connect_stream_begin(take_ptr(p->req), p->server->loop, &source);
}

static bool is_wanted(const struct past_process *p, const struct execution_view *view)
{
	return p->tag ? strcmp(view->name, p->tag) == 0 : view->pid == p->pid;
}

static void past_listed(void *arg, const struct execution_view *view)
{
	struct past_process *p = arg;
	if (view && !p->found[0] && is_wanted(p, view))
		memcpy(p->found, view->id, ID_SIZE);
	if (view)
		return;
	if (p->found[0] && p->req)
		execution_load(p->server->box, p->tenant, NULL, p->found, past_loaded, p);
	else
		refuse(p);
}

static void past_aborted(void *arg)
{
	((struct past_process *)arg)->req = NULL;
}

void process_connect_past(
	struct http_request *req, const struct sandbox *s, const struct process_selector *selector)
{
	struct sandbox_view view;
	struct past_process *p = calloc(1, sizeof *p);
	if (!p || (selector->tag && !(p->tag = strdup(selector->tag))))
		abort();
	sandbox_view(s, &view);
	p->req = req;
	p->server = server_of(req);
	p->pid = selector->pid;
	memccpy(p->tenant, view.tenant, '\0', sizeof p->tenant - 1);
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		p->copies[i].fd = -1;
	http_on_abort(req, past_aborted, p);
	execution_list_ended(p->server->box,
		&(struct execution_filter){.tenant = view.tenant,
			.sandbox_id = view.id,
			.kinds = 1u << EXECUTION_PROCESS,
			.limit = SEARCH_MAX},
		past_listed, p);
}
