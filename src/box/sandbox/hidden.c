/*
 * Sandboxes for the server's own work: builds, imports, the files of volumes. They are invisible:
 * in no table, in no row, and charged to no tenant. If the front dies, they are in the kernel but
 * not in the store, and the next start destroys them.
 */
#include "box/sandbox/hidden.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/log.h"
#include "base/mem.h"
#include "box/sandbox/halt.h"
#include "box/sandbox/object.h"

struct sandbox *hidden_new(struct box *b, const char *tenant)
{
	char id[ID_SIZE];
	id_generate(id);
	struct sandbox *s = sandbox_new(b, id);
	s->tenant = sandbox_copy_string(tenant);
	s->name = sandbox_copy_string("");
	s->user = sandbox_copy_string("root");
	s->workdir = sandbox_copy_string("/");
	s->hidden = true;
	DL_APPEND(b->sandboxes.hidden, s);
	s->resources = b->config.defaults;
	s->resources.disk = b->has_quota ? b->config.maxima.disk : 0;
	return s;
}

struct sandbox *hidden_find(struct box *b, const char *id)
{
	struct sandbox *s;
	DL_FOREACH (b->sandboxes.hidden, s)
		if (strcmp(s->id, id) == 0)
			return s;
	return NULL;
}

struct dismissal {
	struct sandbox *sandbox;
	void (*gone)(void *arg);
	void *arg;
};

static void hidden_destroyed(void *arg, const struct warden_reply *reply)
{
	struct dismissal d = *(struct dismissal *)arg;
	if (reply->error)
		log_error("cannot remove what work of our own left", "sandbox", reply->id, "error",
			strerror(reply->error));
	free(arg);
	sandbox_free(d.sandbox);
	d.gone(d.arg);
}

static void hidden_killed(void *arg, const struct warden_reply *reply)
{
	struct sandbox *s = ((struct dismissal *)arg)->sandbox;
	(void)reply;
	s->box->driver->destroy(s->box->driver, s->id, hidden_destroyed, arg);
}

void hidden_dismiss(struct sandbox *s, void (*gone)(void *arg), void *arg)
{
	struct dismissal *d = mem_new(sizeof *d);
	*d = (struct dismissal){s, gone, arg};
	sandbox_disconnect(s);
	s->box->driver->kill(s->box->driver, s->id, hidden_killed, d);
}
