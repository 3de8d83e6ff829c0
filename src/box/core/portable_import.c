/*
 *     head read → sandbox made → its init unpacks what comes → variables set → done
 *
 * With a root the entries are root's to unpack, with their owners, and deletions are carried out;
 * without, they are the sandbox's user's, in its working directory.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/scratch.h"
#include "box/core/creation.h"
#include "box/core/portable.h"
#include "box/files/files.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"
#include "image/portable.h"

#define WINDOW (256u * 1024)

struct portable_import {
	struct box *box;
	struct scratch memory;
	struct sandbox_spec spec; /* its strings are in the memory */
	struct portable_reader *reader;
	struct buf tar; /* not taken by init yet */
	char sandbox_id[ID_SIZE];
	bool asked, made; /* the sandbox */
	struct file_call *call;
	bool read_all, sent_all, has_env;
	bool failed; /* that is told when nothing is left */
	struct error failure;
	bool over;        /* nothing more is told; it goes when nothing will call back */
	unsigned pending; /* callbacks that will come, whatever happens */
	const struct portable_import_events *events;
	void *arg;
};

static void portable_import_go_on(struct portable_import *i);

/* ---- the end of it ---- */

static void portable_import_free_if_done(struct portable_import *i)
{
	struct box *b = i->box;
	if (!i->over || i->pending > 0)
		return;
	portable_reader_free(i->reader);
	buf_finish(&i->tar);
	scratch_finish(&i->memory);
	free(i);
	b->core.portable_imports--;
	box_check_closed(b);
}

static struct sandbox *find_sandbox(const struct portable_import *i)
{
	return i->made ? sandbox_find(i->box, i->spec.tenant, i->sandbox_id) : NULL;
}

static void portable_import_destroyed(void *arg);

/* Destroys a half-imported sandbox. Returns true if that is pending. */
static bool drop_sandbox(struct portable_import *i)
{
	struct sandbox *s = find_sandbox(i);
	if (i->call)
		file_cancel(take_ptr(i->call));
	i->made = false;
	if (!s)
		return false;
	i->pending++;
	sandbox_destroy(s, portable_import_destroyed, i);
	return true;
}

static void tell_failure(struct portable_import *i)
{
	if (!i->over)
		i->events->done(i->arg, NULL, &i->failure);
	i->over = true;
	portable_import_free_if_done(i);
}

/* A cancelled import does not call back. */
static void portable_import_destroyed(void *arg)
{
	struct portable_import *i = arg;
	i->pending--;
	tell_failure(i);
}

static void failure_due(void *arg, const struct error *e)
{
	struct portable_import *i = arg;
	(void)e;
	i->pending--;
	if (!drop_sandbox(i))
		tell_failure(i);
}

static void portable_import_fail(struct portable_import *i, const struct error *e)
{
	if (i->failed)
		return;
	i->failed = true;
	i->failure = *e;
	i->pending++;
	box_answer_later(i->box, failure_due, i, NULL);
}

static void portable_import_stop(struct portable_import *i)
{
	i->over = true;
	drop_sandbox(i);
	portable_import_free_if_done(i);
}

/* ---- done ---- */

static void env_set(void *arg, const struct error *e)
{
	struct portable_import *i = arg;
	struct error gone;
	i->pending--;
	if (i->over) {
		portable_import_free_if_done(i);
		return;
	}
	struct sandbox *s = find_sandbox(i);
	if (!e && !s) {
		error_set(&gone, ERROR_NOT_FOUND, "the sandbox was deleted");
		e = &gone;
	}
	if (e) {
		portable_import_fail(i, e);
		return;
	}
	i->over = true;
	i->events->done(i->arg, s, NULL);
	portable_import_free_if_done(i);
}

/* The variables that came after the files. */
static void set_env(struct portable_import *i)
{
	struct error e;
	struct sandbox_change change = {0};
	struct sandbox *s = find_sandbox(i);
	change.set_env = portable_env(i->reader);
	i->pending++;
	if (!s || !change.set_env || i->has_env) {
		box_answer_later(i->box, env_set, i, NULL);
	} else if (sandbox_update(s, &change, env_set, i, &e) < 0) {
		i->pending--;
		portable_import_fail(i, &e);
	}
}

/* ---- unpacking ---- */

static void portable_import_unpacked(
	void *arg, const struct file_result *result, const struct error *e)
{
	struct portable_import *i = arg;
	(void)result;
	i->call = NULL;
	if (!e) {
		set_env(i);
		return;
	}
	struct error bad = *e;
	if (e->code == ERROR_NOT_FOUND || e->code == ERROR_PERMISSION_DENIED)
		bad.code = ERROR_INVALID_ARCHIVE; /* what is not there is the object's fault */
	portable_import_fail(i, &bad);
}

static void portable_import_call_has_room(void *arg)
{
	portable_import_go_on(arg);
}

static void begin_unpacking(struct portable_import *i, struct sandbox *s)
{
	static const struct file_events events = {
		.room = portable_import_call_has_room, .done = portable_import_unpacked};
	const char *root = portable_root(i->reader);
	struct file_request request = {
		.fixed = {.op = FILE_UNPACK, .flags = FILE_PARENTS},
		.text = {[FILE_PATH] = root ? root : "."},
	};
	struct error e;
	if (root) {
		request.fixed.flags |= FILE_OWNERS | FILE_LAYER | FILE_OVERWRITE;
		request.text[FILE_CWD] = "/";
	}
	if (file_begin(s, root ? "root" : NULL, &request, &events, i, &i->call, &e) < 0)
		portable_import_fail(i, &e);
	else
		portable_import_go_on(i);
}

/* ---- the sandbox ---- */

static void sandbox_made(void *arg, struct sandbox *s, const struct error *e)
{
	struct portable_import *i = arg;
	struct sandbox_view view;
	i->pending--;
	if (s) {
		sandbox_view(s, &view);
		memcpy(i->sandbox_id, view.id, ID_SIZE);
		i->made = true;
	}
	if (i->over)
		portable_import_stop(i);
	else if (e)
		portable_import_fail(i, e);
	else
		begin_unpacking(i, s);
}

static void make_sandbox(struct portable_import *i)
{
	struct error e;
	if (!i->spec.template_name)
		i->spec.template_name = portable_template(i->reader);
	const char *const *env = portable_env(i->reader);
	autobuf packed = {0};
	for (size_t n = 0; env && env[n]; n++)
		buf_append(&packed, env[n], strlen(env[n]) + 1);
	i->spec.env = (struct strings){packed.data, packed.len};
	i->has_env = env != NULL;
	i->asked = true;
	i->pending++;
	if (!sandbox_create(i->box, &i->spec, sandbox_made, i, &e)) {
		i->pending--;
		portable_import_fail(i, &e);
	}
}

/* ---- bytes ---- */

static void portable_import_pass_on(struct portable_import *i)
{
	size_t room;
	/* Data that was sent at once leaves room, and no callback reports that. */
	while (i->tar.len > 0 && (room = file_room(i->call)) > 0) {
		size_t len = i->tar.len < room ? i->tar.len : room;
		file_put_data(i->call, i->tar.data, len);
		buf_consume(&i->tar, len);
	}
	if (i->read_all && i->tar.len == 0 && !i->sent_all) {
		i->sent_all = true;
		file_put_end(i->call);
	}
}

/* Nothing behind the head is read before the sandbox is there. */
static void portable_import_go_on(struct portable_import *i)
{
	struct error e;
	if (i->over || i->failed || (i->asked && !i->call))
		return;
	int step;
	do {
		step = portable_read(i->reader, &i->tar, WINDOW, &e);
		if (step < 0) {
			portable_import_fail(i, &e);
			return;
		}
		i->read_all = step == PORTABLE_DONE;
		if (step == PORTABLE_HEAD)
			make_sandbox(i);
		else if (i->call)
			portable_import_pass_on(i);
	} while (step == PORTABLE_FULL && i->tar.len == 0);
	if (portable_import_room(i) > 0 && !i->read_all && !i->failed)
		i->events->room(i->arg);
}

size_t portable_import_room(const struct portable_import *i)
{
	size_t waiting = portable_reader_waiting(i->reader) + i->tar.len;
	return waiting < WINDOW ? WINDOW - waiting : 0;
}

void portable_import_write(struct portable_import *i, const char *data, size_t len)
{
	if (i->failed)
		return; /* that is being told */
	portable_reader_add(i->reader, data, len);
	portable_import_go_on(i);
}

void portable_import_end(struct portable_import *i)
{
	if (i->failed)
		return;
	portable_reader_end(i->reader);
	portable_import_go_on(i);
}

void portable_import_cancel(struct portable_import *i)
{
	portable_import_stop(i);
}

static const char *portable_import_keep(struct portable_import *i, const char *text)
{
	size_t size = text ? strlen(text) + 1 : 0;
	char *copy = text ? scratch_alloc(&i->memory, size) : NULL;
	return text ? memcpy(copy, text, size) : NULL;
}

int portable_import_begin(struct box *b, const struct sandbox_spec *spec,
	const struct portable_import_events *events, void *arg, struct portable_import **ret,
	struct error *e)
{
	if (b->core.portable_imports >= PORTABLE_IMPORTS_MAX)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED,
			"%d of these are under way already; try again later", PORTABLE_IMPORTS_MAX);
	struct portable_import *i = mem_new(sizeof *i);
	i->box = b;
	i->reader = portable_reader_new();
	i->events = events;
	i->arg = arg;
	i->spec.tenant = portable_import_keep(i, spec->tenant);
	i->spec.template_name = portable_import_keep(i, spec->template_name);
	i->spec.name = portable_import_keep(i, spec->name);
	i->spec.description = portable_import_keep(i, spec->description);
	i->spec.project = portable_import_keep(i, spec->project);
	b->core.portable_imports++;
	*ret = i;
	return 0;
}
