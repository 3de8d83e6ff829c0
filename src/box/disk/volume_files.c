/*
 * File work on a volume without a sandbox of the tenant's. The volume has a porter: a hidden
 * sandbox with nothing but the volume, whose file workers have it as their root, so that no path
 * and no link leads out of it. The porter is booted for the first call, which waits for it as one
 * that wakes a sandbox does; it serves every call on the volume, and goes when there was none for a
 * while.
 *
 * A volume can be deleted although it has a porter: calls under way end then, and the disk goes
 * when no porter holds it any more.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/mem.h"
#include "box/disk/disks.h"
#include "box/sandbox/lease.h"
#include "box/files/files.h"
#include "box/files/part.h"
#include "box/sandbox/halt.h"
#include "box/sandbox/hidden.h"
#include "box/sandbox/later.h"
#include "box/sandbox/status.h"

#define PORTERS_MAX   32
#define PORTER_MEMORY (256 << 20)
#define PORTER_DISK   (64 << 20) /* of its own; nothing is written there */

struct porter {
	struct box *box;
	struct volume *volume;
	struct sandbox *sandbox;
	uv_timer_t timer; /* for who is not needed any more */
	bool booting;
	bool leaving;
	struct porter *prev, *next; /* of the box */
};

/* ---- the end ---- */

static void porter_free(uv_handle_t *handle)
{
	free(handle->data);
}

static void porter_gone(void *arg)
{
	struct porter *p = arg;
	struct box *b = p->box;
	DL_DELETE(b->disks.porters, p);
	volume_porter_gone(p->volume);
	uv_close((uv_handle_t *)&p->timer, porter_free);
	box_check_closed(b);
}

/* The next call gets another one. */
static void porter_leave(struct porter *p, const struct error *e)
{
	if (p->leaving)
		return;
	p->leaving = true;
	if (p->volume->porter == p)
		p->volume->porter = NULL;
	uv_timer_stop(&p->timer);
	files_end_all(p->sandbox, e);
	if (!p->booting)
		hidden_dismiss(p->sandbox, porter_gone, p);
}

static void leave_idle(struct porter *p)
{
	struct error e;
	error_set(&e, ERROR_UNAVAILABLE, "nobody works on the volume any more");
	porter_leave(p, &e);
}

static int64_t idle_left_ms(const struct porter *p)
{
	const struct sandbox *s = p->sandbox;
	int64_t left = s->last_active_ms + VOLUME_IDLE_MS - lease_now_ms(s->box);
	if (s->running > 0 || left > VOLUME_IDLE_MS)
		return VOLUME_IDLE_MS;
	return left > 0 ? left : 0;
}

static void idle_timer_fired(uv_timer_t *timer)
{
	struct porter *p = timer->data;
	int64_t left = idle_left_ms(p);
	if (left > 0)
		uv_timer_start(timer, idle_timer_fired, (uint64_t)left, 0);
	else
		leave_idle(p);
}

void volume_send_porter_away(struct volume *v, const struct error *e)
{
	if (v->porter)
		porter_leave(v->porter, e);
}

bool volume_has_porter(const struct volume *v)
{
	const struct porter *p;
	DL_FOREACH (v->box->disks.porters, p)
		if (p->volume == v)
			return true;
	return false;
}

void porters_stop(struct box *b)
{
	struct porter *p, *next;
	struct error e;
	error_set(&e, ERROR_UNAVAILABLE, "the server ends");
	DL_FOREACH_SAFE (b->disks.porters, p, next)
		porter_leave(p, &e);
}

/* ---- the begin ---- */

static void porter_booted(void *arg, const struct error *e)
{
	struct porter *p = arg;
	struct sandbox *s = p->sandbox;
	p->booting = false;
	s->pause.waking = false;
	if (e) {
		if (p->volume->porter == p)
			p->volume->porter = NULL;
		files_refuse_waiting(s, e);
		sandbox_free(s);
		porter_gone(p);
	} else if (p->leaving) {
		hidden_dismiss(s, porter_gone, p);
	} else {
		sandbox_set_awake(s);
		uv_timer_start(&p->timer, idle_timer_fired, VOLUME_IDLE_MS, 0);
		files_awake(s);
	}
}

/* Makes a sandbox that counts as being woken, so that calls wait for it. */
static struct sandbox *new_sandbox(const struct volume *v)
{
	struct sandbox *s = hidden_new(v->box, v->tenant);
	if (s->resources.memory > PORTER_MEMORY)
		s->resources.memory = PORTER_MEMORY;
	if (s->resources.disk)
		s->resources.disk = PORTER_DISK;
	memcpy(s->disk.volumes[0].id, v->id, ID_SIZE);
	memcpy(s->disk.volumes[0].path, FRAME_VOLUME, sizeof FRAME_VOLUME);
	s->is_porter = true;
	s->pause.pausing = s->auto_resume = s->pause.waking = true;
	return s;
}

static void porter_boot(struct volume *v)
{
	struct porter *p = mem_new(sizeof *p);
	*p = (struct porter){
		.box = v->box, .volume = v, .sandbox = new_sandbox(v), .booting = true};
	uv_timer_init(v->box->loop, &p->timer);
	p->timer.data = p;
	DL_APPEND(v->box->disks.porters, p);
	v->porter = p;
	sandbox_boot(p->sandbox, false, porter_booted, p);
}

/* Removes the porter that was unused for the longest time. */
static int make_room(struct box *b, struct error *e)
{
	struct porter *p, *oldest = NULL;
	unsigned count = 0;
	DL_FOREACH (b->disks.porters, p) {
		bool is_idle = !p->booting && !p->leaving && p->sandbox->running == 0;
		count += !p->leaving;
		if (is_idle &&
			(!oldest || p->sandbox->last_active_ms < oldest->sandbox->last_active_ms))
			oldest = p;
	}
	if (count < PORTERS_MAX)
		return 0;
	if (!oldest)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"the files of %u volumes are being worked on, the most that is allowed",
			count);
	leave_idle(oldest);
	return 0;
}

/* Returns whether the porter's init is gone, for lack of memory for example. */
static bool is_broken(const struct porter *p)
{
	return !p->booting && !p->sandbox->init.link;
}

int volume_file_begin(struct volume *v, const struct file_request *request,
	const struct file_events *events, void *arg, struct file_call **ret, struct error *e)
{
	if (!v->found)
		return error_set(e, ERROR_INTERNAL, "the disk of the volume is gone");
	if (v->box->closing)
		return error_set(e, ERROR_UNAVAILABLE, "the server ends");
	if (v->porter && is_broken(v->porter))
		leave_idle(v->porter);
	if (!v->porter) {
		if (make_room(v->box, e) < 0)
			return -1;
		porter_boot(v);
	}
	return file_begin(v->porter->sandbox, NULL, request, events, arg, ret, e);
}
