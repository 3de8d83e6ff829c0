/*
 * What listens in a sandbox, and which processes hold it: read from the sandbox's /proc by its file
 * workers, one step after the other. Links of /proc/PID/fd can be read with the rights of the
 * process's own user only, so each user's are searched by a worker of that user.
 *
 * All of it comes from inside, and none of it is believed further than its form.
 */
#include "op/port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "op/op_core.h"

#define ROOT         "0"
#define TEXT_MAX     (256u * 1024) /* of one file of /proc/net */
#define LINKS_MAX    20000         /* descriptors of one user's processes that are looked at */
#define SEARCHES_MAX 8             /* users whose processes are searched */

enum port_list_step {
	PORT_LIST_TCP,
	PORT_LIST_TCP6,
	PORT_LIST_HOLDERS, /* of the sockets of one user, one user after the other */
	PORT_LIST_COMMANDS /* of the processes, one after the other */
};

struct port_list_op {
	struct op op;
	struct file_call *call; /* NULL: none is under way */
	enum port_list_step step;
	bool begun;
	unsigned searches;
	size_t row; /* whose holder or command is looked for */
	size_t count;
	struct buf text; /* of the file that is being read */
	struct port_listener rows[PORT_LISTENERS_MAX];
};

static void port_list_advance(struct port_list_op *p);

/* ---- answers of the workers ---- */

static void port_list_data(void *arg, struct buf *bytes)
{
	struct port_list_op *p = arg;
	if (p->text.len + bytes->len <= TEXT_MAX)
		buf_append(&p->text, bytes->data, bytes->len);
	bytes->len = 0;
}

/* An entry is /proc/PID/fd/N; its target, of a socket, "socket:[INODE]". */
static void port_list_entry(void *arg, const struct file_entry *entry)
{
	struct port_list_op *p = arg;
	unsigned long long inode;
	int pid;
	if (sscanf(entry->target, "socket:[%llu]", &inode) != 1 ||
		sscanf(entry->path, "/proc/%d/", &pid) != 1)
		return;
	for (size_t i = 0; i < p->count; i++) {
		struct port_listener *l = &p->rows[i];
		if (l->inode == inode && pid > 0 && (l->pid == 0 || pid < l->pid))
			l->pid = pid;
	}
}

/* The arguments have a NUL each behind them. */
static void port_list_keep_command(struct port_list_op *p)
{
	struct port_listener *l = &p->rows[p->row];
	size_t len = p->text.len < sizeof l->command - 1 ? p->text.len : sizeof l->command - 1;
	while (len > 0 && p->text.data[len - 1] == '\0')
		len--;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)p->text.data[i];
		l->command[i] = c == '\0' ? ' ' : (char)(c < ' ' || c >= 0x7f ? '?' : c);
	}
	l->command[len] = '\0';
}

static void port_list_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct port_list_op *p = arg;
	(void)result;
	p->call = NULL;
	/* A sandbox without IPv6 has no tcp6; a process may be gone, and a user may have none. */
	if (e && p->step == PORT_LIST_TCP) {
		op_fail(&p->op, OP_ERROR, e);
		return;
	}
	buf_append_char(&p->text, '\0');
	if (p->step == PORT_LIST_TCP || p->step == PORT_LIST_TCP6) {
		p->count = port_parse_listeners(p->text.data, p->rows, p->count);
		p->step++;
	} else {
		if (p->step == PORT_LIST_COMMANDS && !e)
			port_list_keep_command(p);
		p->row++;
	}
	p->text.len = 0;
	port_list_advance(p);
}

/* ---- questions ---- */

static int port_list_ask(struct port_list_op *p, const char *user,
	const struct file_request *request, struct error *e)
{
	static const struct file_events events = {
		.entry = port_list_entry, .data = port_list_data, .done = port_list_done};
	struct sandbox *s = op_sandbox(&p->op, e);
	return s ? file_begin(s, user, request, &events, p, &p->call, e) : -1;
}

static int port_list_read(struct port_list_op *p, const char *path, struct error *e)
{
	const struct file_request read = {
		.fixed = {.op = FILE_READ, .flags = FILE_FOLLOW, .length = TEXT_MAX},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = path}};
	return port_list_ask(p, ROOT, &read, e);
}

static int port_list_search(struct port_list_op *p, struct error *e)
{
	const struct file_request find = {.fixed = {.op = FILE_FIND, .limit = LINKS_MAX},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = "/proc", [FILE_PATTERN] = "*/fd/*"}};
	char user[24];
	snprintf(user, sizeof user, "%lld", (long long)p->rows[p->row].uid);
	p->searches++;
	return port_list_ask(p, user, &find, e);
}

/* Returns whether the row is the first of its user. */
static bool port_list_is_new_user(const struct port_list_op *p)
{
	for (size_t i = 0; i < p->row; i++)
		if (p->rows[i].uid == p->rows[p->row].uid)
			return false;
	return true;
}

static int port_list_compare(const void *a, const void *b)
{
	const struct port_listener *x = a, *y = b;
	return x->port != y->port ? (x->port > y->port) - (x->port < y->port)
				  : strcmp(x->address, y->address);
}

static void port_list_tell(struct port_list_op *p)
{
	struct sandbox_view view;
	struct error e;
	const struct sandbox *s = op_sandbox(&p->op, &e);
	if (!s) {
		op_fail(&p->op, OP_NO_SANDBOX, &e);
		return;
	}
	sandbox_view(s, &view);
	qsort(p->rows, p->count, sizeof p->rows[0], port_list_compare);
	for (size_t i = 0; i < p->count; i++) {
		struct port_listener *l = &p->rows[i];
		l->is_public = port_is_public(&view, l->port);
		if (!op_emit(&p->op, &(struct op_event){.kind = OP_ROW, .record = l}))
			return;
	}
	op_done(&p->op, &(struct op_event){.kind = OP_DONE});
}

/* Begins the next question, or tells what was found. */
static void port_list_advance(struct port_list_op *p)
{
	struct error e = {0};
	char path[64];
	int r = 1;
	if (p->step == PORT_LIST_TCP)
		r = port_list_read(p, "/proc/net/tcp", &e);
	else if (p->step == PORT_LIST_TCP6)
		r = port_list_read(p, "/proc/net/tcp6", &e);
	while (r > 0 && p->step == PORT_LIST_HOLDERS) {
		while (p->row < p->count && !port_list_is_new_user(p))
			p->row++;
		if (p->row < p->count && p->searches < SEARCHES_MAX) {
			r = port_list_search(p, &e);
		} else {
			p->row = 0;
			p->step = PORT_LIST_COMMANDS;
		}
	}
	while (r > 0 && p->row < p->count && p->rows[p->row].pid == 0)
		p->row++;
	if (r > 0 && p->row < p->count) {
		snprintf(path, sizeof path, "/proc/%lld/cmdline", (long long)p->rows[p->row].pid);
		r = port_list_read(p, path, &e);
	}
	if (r < 0)
		op_fail(&p->op, OP_ERROR, &e);
	else if (r > 0)
		port_list_tell(p);
}

static void port_list_resume(struct op *op)
{
	struct port_list_op *p = (struct port_list_op *)op;
	if (!p->begun) {
		p->begun = true;
		port_list_advance(p);
	}
}

static void port_list_release(struct op *op, enum op_end end)
{
	struct port_list_op *p = (struct port_list_op *)op;
	(void)end;
	if (p->call)
		file_cancel(take_ptr(p->call));
	buf_finish(&p->text);
}

struct op *op_port_list(const struct op_call *call)
{
	static const struct op_type type = {
		"port.list", .resume = port_list_resume, .release = port_list_release};
	struct sandbox *s;
	return op_new(call, &type, sizeof(struct port_list_op), &s);
}
