/*
 * The steps that operations of the life cycle are made of, on a sandbox whose turn they have:
 * stopping every process where it is, letting them go on, ending them all, booting.
 *
 * What the kernel does not do at once is asked for again: a process that sleeps in the kernel may
 * need a moment before it stands, or dies.
 */
#include "box/sandbox/halt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/sandbox/connect.h"
#include "box/sandbox/disk_name.h"
#include "box/sandbox/later.h"
#include "box/sandbox/network.h"
#include "box/sandbox/object.h"
#include "box/sandbox/trust.h"

#define FREEZE_RETRY_MS   5
#define FREEZE_TIMEOUT_US (5 * 1000000)
#define HALT_RETRY_MS     20
#define BOOT_RETRY_MS     2
#define BOOT_TIMEOUT_US   (5 * 1000000)

/* One step under way. Its operation has the turn, so the sandbox stays. */
struct step {
	struct sandbox *sandbox;
	uv_timer_t timer; /* for another try */
	int64_t began_us;
	bool again;
	uint8_t boot_id[UUID_BYTES];
	struct error failure;
	sandbox_done_fn *done;
	void *arg;
};

static struct step *step_new(struct sandbox *s, sandbox_done_fn *done, void *arg)
{
	struct step *t = mem_new(sizeof *t);
	t->sandbox = s;
	t->began_us = clock_monotonic_us();
	t->done = done;
	t->arg = arg;
	uv_timer_init(s->box->loop, &t->timer);
	t->timer.data = t;
	return t;
}

static void step_free(uv_handle_t *handle)
{
	free(handle->data);
}

static void step_end(struct step *t, const struct error *e)
{
	sandbox_done_fn *done = t->done;
	void *arg = t->arg;
	struct box *b = t->sandbox->box;
	uv_close((uv_handle_t *)&t->timer, step_free);
	done(arg, e);
	box_check_closed(b);
}

/* ---- freeze and thaw ---- */

static void freeze_answered(void *arg, const struct warden_reply *reply);

static void freeze_again(uv_timer_t *timer)
{
	struct step *t = timer->data;
	struct sandbox *s = t->sandbox;
	s->box->driver->freeze(s->box->driver, s->id, freeze_answered, t);
}

static void freeze_undone(void *arg, const struct warden_reply *reply)
{
	struct step *t = arg;
	struct error e;
	(void)reply;
	init_link_hold(t->sandbox->init.link, false);
	error_set(&e, ERROR_UNAVAILABLE,
		"the sandbox could not be stopped: something in it does not stand still");
	step_end(t, &e);
}

static void freeze_answered(void *arg, const struct warden_reply *reply)
{
	struct step *t = arg;
	struct sandbox *s = t->sandbox;
	if (reply->error == 0) {
		s->pause.frozen = true;
		step_end(t, NULL);
	} else if (reply->error == EAGAIN &&
		   clock_monotonic_us() - t->began_us < FREEZE_TIMEOUT_US) {
		uv_timer_start(&t->timer, freeze_again, FREEZE_RETRY_MS, 0);
	} else {
		s->box->driver->thaw(s->box->driver, s->id, freeze_undone, t);
	}
}

void sandbox_freeze(struct sandbox *s, sandbox_done_fn *done, void *arg)
{
	struct step *t = step_new(s, done, arg);
	init_link_hold(s->init.link, true);
	freeze_again(&t->timer);
}

static void thaw_answered(void *arg, const struct warden_reply *reply)
{
	struct step *t = arg;
	struct error e;
	if (reply->error) {
		error_set_errno(&e, reply->error, "the sandbox could not be let go on");
		step_end(t, &e);
		return;
	}
	t->sandbox->pause.frozen = false;
	init_link_hold(t->sandbox->init.link, false);
	step_end(t, NULL);
}

void sandbox_thaw(struct sandbox *s, sandbox_done_fn *done, void *arg)
{
	s->box->driver->thaw(s->box->driver, s->id, thaw_answered, step_new(s, done, arg));
}

/* ---- halt ---- */

static void halt_answered(void *arg, const struct warden_reply *reply);

static void halt_again(uv_timer_t *timer)
{
	struct step *t = timer->data;
	struct sandbox *s = t->sandbox;
	s->box->driver->kill(s->box->driver, s->id, halt_answered, t);
}

static void halt_answered(void *arg, const struct warden_reply *reply)
{
	struct step *t = arg;
	struct sandbox *s = t->sandbox;
	if (reply->error) {
		log_error("cannot halt a sandbox yet", "sandbox", s->id, "error",
			strerror(reply->error));
		uv_timer_start(&t->timer, halt_again, HALT_RETRY_MS, 0);
	} else if (reply->op == WARDEN_KILL) {
		/*
		 * The processes are dead, so the second call is quick and does not block the
		 * warden.
		 */
		usage_boot_ends(&s->usage, reply->usage.memory);
		s->box->driver->halt(s->box->driver, s->id, halt_answered, t);
	} else {
		usage_boot_ended(&s->usage, reply->usage.cpu_us);
		step_end(t, NULL);
	}
}

void sandbox_disconnect(struct sandbox *s)
{
	struct error e;
	error_set(&e, ERROR_NOT_RUNNING, "the sandbox was stopped");
	sandbox_parts_ended(s, false, &e);
	s->init.unheard = false;
	init_link_close(s->init.link);
	s->init.link = NULL;
}

void sandbox_halt(struct sandbox *s, sandbox_done_fn *done, void *arg)
{
	struct step *t = step_new(s, done, arg);
	s->pause.frozen = false;
	halt_again(&t->timer);
}

/* ---- boot ---- */

static void boot_undone(void *arg, const struct warden_reply *reply)
{
	struct step *t = arg;
	if (reply->error)
		log_error("cannot remove what a boot left", "sandbox", t->sandbox->id, "error",
			strerror(reply->error));
	step_end(t, &t->failure);
}

/* With t->failure: a disk that was there before stays. */
static void halt_boot_undo(struct step *t)
{
	struct sandbox *s = t->sandbox;
	s->box->counters.boot_failures_total++;
	struct driver *d = s->box->driver;
	(t->again ? d->halt : d->destroy)(d, s->id, boot_undone, t);
}

/* Takes back a boot that was not sent before the sandbox was deleted: nothing of it has begun. */
static void boot_withdraw(struct step *t)
{
	struct sandbox *s = t->sandbox;
	error_set(&t->failure, ERROR_NOT_RUNNING, "the sandbox was deleted before it was booted");
	struct driver *d = s->box->driver;
	(t->again ? d->halt : d->destroy)(d, s->id, boot_undone, t);
}

static void boot_ready(struct step *t)
{
	struct sandbox *s = t->sandbox;
	uuid_format(t->boot_id, s->boot_id);
	s->box->counters.boots_total++;
	usage_boot_began(&s->usage);
	step_end(t, NULL);
}

static void boot_networked(void *arg, const struct error *e)
{
	struct step *t = arg;
	if (!e) {
		boot_ready(t);
		return;
	}
	t->failure = *e;
	halt_boot_undo(t);
}

static void boot_trusted(void *arg, const struct error *e)
{
	struct step *t = arg;
	(void)e;
	if (t->sandbox->network.mode != NETWORK_NONE)
		network_apply(t->sandbox, boot_networked, t);
	else
		boot_ready(t);
}

static void boot_connected(void *arg, struct sandbox *s, int error)
{
	struct step *t = arg;
	if (error == 0) {
		if (trust_is_needed(s))
			trust_renew(s, boot_trusted, t);
		else
			boot_trusted(t, NULL);
		return;
	}
	log_warn("an init does not answer", "sandbox", s->id, "error", strerror(-error));
	error_set(&t->failure, ERROR_BOOT_FAILED, "the sandbox's init does not answer");
	halt_boot_undo(t);
}

static void boot_failed(struct step *t, int error, const char *what)
{
	error_set_errno(&t->failure, error, "%s failed", what);
	if (t->failure.code != ERROR_NO_SPACE && t->failure.code != ERROR_RESOURCE_EXHAUSTED)
		t->failure.code = ERROR_BOOT_FAILED;
	halt_boot_undo(t);
}

static void boot_again(uv_timer_t *timer);

/* The kernel still holds something of an earlier boot. */
static bool must_wait(const struct step *t, const struct warden_reply *reply)
{
	return reply->error == EAGAIN && reply->step == WARDEN_STEP_REQUEST &&
	       clock_monotonic_us() - t->began_us < BOOT_TIMEOUT_US;
}

static void halt_boot_answered(void *arg, const struct warden_reply *reply)
{
	struct step *t = arg;
	if (reply->error == 0) {
		sandbox_connect(t->sandbox, boot_connected, t);
		return;
	}
	if (reply->error == ECANCELED) {
		boot_withdraw(t);
		return;
	}
	if (must_wait(t, reply)) {
		uv_timer_start(&t->timer, boot_again, BOOT_RETRY_MS, 0);
		return;
	}
	boot_failed(t, reply->error, warden_step_name((enum warden_step)reply->step));
}

static void boot_on_disk(struct step *t)
{
	struct sandbox *s = t->sandbox;
	uuid_generate(t->boot_id);
	struct driver_boot boot = {
		.id = s->id,
		.root = s->root,
		.limits = &s->resources,
		.volumes = s->disk.volumes,
	};
	memcpy(boot.boot_id, t->boot_id, UUID_BYTES);
	s->box->driver->boot(s->box->driver, &boot, halt_boot_answered, t);
}

static void boot_again(uv_timer_t *timer)
{
	boot_on_disk(timer->data);
}

static void disk_made(void *arg, const struct keeper_reply *reply)
{
	struct step *t = arg;
	if (reply->error == 0 && t->sandbox->ending.doomed) {
		boot_withdraw(t);
		return;
	}
	if (reply->error == 0) {
		t->sandbox->disk.copy_frozen_us = reply->frozen_us;
		boot_on_disk(t);
		return;
	}
	boot_failed(t, reply->error, "making the sandbox's disk");
}

void sandbox_boot(struct sandbox *s, bool again, sandbox_done_fn *done, void *arg)
{
	struct step *t = step_new(s, done, arg);
	t->again = again;
	if (again) {
		boot_on_disk(t);
	} else {
		struct disk_name disk = disk_of(s);
		struct disk_name from =
			s->disk.fork_of.kind ? s->disk.fork_of : disk_to_begin_with(s);
		s->box->driver->disk_make(s->box->driver, &disk, from.kind ? &from : NULL,
			s->resources.disk, disk_made, t);
	}
}
