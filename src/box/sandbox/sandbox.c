/*
 * A sandbox as an object: its memory, what runs in it. What happens to it in time is in connect.c,
 * failure.c, pause.c, halt.c, lease.c and ending.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/sandbox/later.h"
#include "box/sandbox/lease.h"
#include "box/sandbox/object.h"
#include "box/sandbox/status.h"

/* ---- memory ---- */

struct sandbox *sandbox_new(struct box *b, const char *id)
{
	struct sandbox *s = mem_new(sizeof *s);
	s->box = b;
	memcpy(s->id, id, ID_SIZE);
	return s;
}

void sandbox_free(struct sandbox *s)
{
	sandbox_parts_free(s);
	init_link_close(s->init.link);
	usage_end(s);
	if (s->charge != CHARGE_NONE)
		tenant_force_charge(s, CHARGE_NONE);
	if (s->listed)
		sandbox_remove(s);
	if (s->hidden)
		DL_DELETE(s->box->sandboxes.hidden, s);
	fields_free(&sandbox_model, &s->record);
	free(s);
}

char *sandbox_copy_string(const char *text)
{
	char *copy = mem_copy_text(text ? text : "");
	return copy;
}

void sandbox_set_text(const char **at, const char *text)
{
	free((char *)*at);
	*at = sandbox_copy_string(text);
}

void sandbox_execution_began(struct sandbox *s)
{
	s->running++;
	s->last_active_ms = lease_now_ms(s->box);
	if (s->status == SANDBOX_IDLE)
		sandbox_set_status(s, SANDBOX_RUNNING);
}

void sandbox_execution_ended(struct sandbox *s)
{
	s->running--;
	s->last_active_ms = lease_now_ms(s->box);
	/* The sandbox of a run is only waiting for its end now. */
	if (s->ephemeral && s->executions > 0 && s->running == 0)
		tenant_force_charge(s, CHARGE_NONE);
	if (s->running == 0 && s->status == SANDBOX_RUNNING) {
		sandbox_set_status(s, SANDBOX_IDLE);
		sandbox_clock_changed(s);
	}
}

/* ---- out of memory ---- */

struct oom_note {
	struct box *box;
	char id[ID_SIZE];
};

static void oom_noted(void *arg, const struct warden_reply *reply)
{
	struct oom_note *note = arg;
	struct sandbox *s = NULL;
	HASH_FIND(by_id, note->box->sandboxes.by_id, note->id, ID_LEN, s);
	if (s && reply->error == 0 && reply->usage.oom_kills > s->processes.oom_seen)
		s->processes.oom_seen = reply->usage.oom_kills;
	box_check_closed(note->box);
	free(note);
}

void sandbox_note_oom(struct sandbox *s)
{
	struct oom_note *note = mem_new(sizeof *note);
	note->box = s->box;
	memcpy(note->id, s->id, ID_SIZE);
	s->box->driver->usage(s->box->driver, s->id, oom_noted, note);
}
