/* The driver that asks the warden, the keeper, bunker-wire, bunker-egress and the brokers. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "box/link/driver.h"
#include "base/mem.h"
#include "box/link/brokers.h"
#include "box/link/op_link.h"

/* So many boots are sent at a time: what the warden works on at once. */
#define BOOTS_MAX 16

struct native_driver;

/* A boot that waits for those under way, or for its answer. */
struct native_boot {
	struct native_boot *prev, *next;
	struct native_driver *driver;
	struct warden_request request;
	warden_reply_fn *reply;
	void *arg;
};

struct native_driver {
	struct driver driver;
	struct op_link warden, keeper, network;
	struct egress_link egress;
	struct brokers brokers;
	struct native_boot *held, *sent;
	unsigned boots; /* that are sent */
	unsigned open;  /* links that are not closed */
	void (*closed)(void *arg);
	void *closed_arg;
};

static struct native_driver *native_of(struct driver *d)
{
	return (struct native_driver *)((char *)d - offsetof(struct native_driver, driver));
}

/* ---- sandboxes ---- */

static void deliver_warden(op_reply_fn *reply, void *arg, const void *message)
{
	((warden_reply_fn *)reply)(arg, message);
}

static const struct op_protocol warden_protocol = {
	.peer = "warden",
	.request_size = sizeof(struct warden_request),
	.reply_size = sizeof(struct warden_reply),
	.deliver = deliver_warden,
};

static struct warden_request warden_request_of(enum warden_op op, const char *id)
{
	struct warden_request q = {.op = op};
	memcpy(q.id, id, strnlen(id, ID_LEN));
	return q;
}

static struct warden_limits limits_of(const struct resources *r)
{
	return (struct warden_limits){r->memory, r->cpu, r->pids};
}

static void warden_ask(
	struct driver *d, enum warden_op op, const char *id, warden_reply_fn *reply, void *arg)
{
	struct warden_request q = warden_request_of(op, id);
	op_link_call(&native_of(d)->warden, &q, (op_reply_fn *)reply, arg);
}

static void native_driver_boot_answered(void *arg, const struct warden_reply *reply);

static void boot_send(struct native_boot *boot)
{
	struct native_driver *n = boot->driver;
	n->boots++;
	DL_APPEND(n->sent, boot);
	op_link_call(&n->warden, &boot->request, (op_reply_fn *)native_driver_boot_answered, boot);
}

/* The next boot takes the place of the one that was answered. */
static void native_driver_boot_answered(void *arg, const struct warden_reply *reply)
{
	struct native_boot *boot = arg;
	struct native_driver *n = boot->driver;
	struct native_boot *next = n->held;
	n->boots--;
	DL_DELETE(n->sent, boot);
	if (next) {
		DL_DELETE(n->held, next);
		boot_send(next);
	}
	boot->reply(boot->arg, reply);
	free(boot);
}

static void native_boot(
	struct driver *d, const struct driver_boot *spec, warden_reply_fn *reply, void *arg)
{
	struct native_driver *n = native_of(d);
	struct native_boot *boot = mem_new(sizeof *boot);
	boot->driver = n;
	boot->reply = reply;
	boot->arg = arg;
	struct warden_request *q = &boot->request;
	*q = warden_request_of(WARDEN_BOOT, spec->id);
	q->limits = limits_of(spec->limits);
	memcpy(q->boot_id, spec->boot_id, UUID_BYTES);
	memcpy(q->root, spec->root, ID_SIZE);
	memcpy(q->volumes, spec->volumes, sizeof q->volumes);
	if (n->boots >= BOOTS_MAX)
		DL_APPEND(n->held, boot);
	else
		boot_send(boot);
}

static void native_recall_boot(struct driver *d, const char *id)
{
	struct native_driver *n = native_of(d);
	struct native_boot *boot = n->held;
	while (boot && strncmp(boot->request.id, id, ID_LEN) != 0)
		boot = boot->next;
	if (!boot)
		return;
	DL_DELETE(n->held, boot);
	const struct warden_reply reply = {.op = WARDEN_BOOT, .error = ECANCELED};
	boot->reply(boot->arg, &reply);
	free(boot);
}

static void boots_free(struct native_boot *boots)
{
	struct native_boot *boot, *next;
	DL_FOREACH_SAFE (boots, boot, next)
		free(boot);
}

static void native_limits(struct driver *d, const char *id, const struct resources *limits,
	warden_reply_fn *reply, void *arg)
{
	struct warden_request q = warden_request_of(WARDEN_LIMITS, id);
	q.limits = limits_of(limits);
	op_link_call(&native_of(d)->warden, &q, (op_reply_fn *)reply, arg);
}

static void native_usage(struct driver *d, const char *id, warden_reply_fn *reply, void *arg)
{
	warden_ask(d, WARDEN_USAGE, id, reply, arg);
}

static void native_kill(struct driver *d, const char *id, warden_reply_fn *reply, void *arg)
{
	warden_ask(d, WARDEN_KILL, id, reply, arg);
}

static void native_halt(struct driver *d, const char *id, warden_reply_fn *reply, void *arg)
{
	warden_ask(d, WARDEN_HALT, id, reply, arg);
}

static void native_destroy(struct driver *d, const char *id, warden_reply_fn *reply, void *arg)
{
	warden_ask(d, WARDEN_DESTROY, id, reply, arg);
}

static void native_freeze(struct driver *d, const char *id, warden_reply_fn *reply, void *arg)
{
	warden_ask(d, WARDEN_FREEZE, id, reply, arg);
}

static void native_reclaim(struct driver *d, const char *id, warden_reply_fn *reply, void *arg)
{
	warden_ask(d, WARDEN_RECLAIM, id, reply, arg);
}

static void native_thaw(struct driver *d, const char *id, warden_reply_fn *reply, void *arg)
{
	warden_ask(d, WARDEN_THAW, id, reply, arg);
}

static void native_next(struct driver *d, const char *id, warden_reply_fn *reply, void *arg)
{
	warden_ask(d, WARDEN_NEXT, id, reply, arg);
}

/* ---- disks ---- */

static void deliver_keeper(op_reply_fn *reply, void *arg, const void *message)
{
	((keeper_reply_fn *)reply)(arg, message);
}

static const struct op_protocol keeper_protocol = {
	.peer = "keeper",
	.request_size = sizeof(struct keeper_request),
	.reply_size = sizeof(struct keeper_reply),
	.request_epoch = offsetof(struct keeper_request, epoch),
	.reply_epoch = offsetof(struct keeper_reply, epoch),
	.reply_fd = offsetof(struct keeper_reply, pipe_fd),
	.restarted = KEEPER_STARTED,
	.deliver = deliver_keeper,
};

static void name_disk(struct disk_name *out, const struct disk_name *from)
{
	if (!from)
		return;
	out->kind = from->kind;
	memcpy(out->id, from->id, strnlen(from->id, ID_LEN));
}

static void keeper_ask(struct driver *d, enum keeper_op op, const struct disk_name *disk,
	const struct disk_name *from, int64_t bytes, keeper_reply_fn *reply, void *arg)
{
	struct keeper_request q = {.op = op, .bytes = bytes};
	name_disk(&q.disk, disk);
	name_disk(&q.from, from);
	op_link_call(&native_of(d)->keeper, &q, (op_reply_fn *)reply, arg);
}

static void native_disk_hello(struct driver *d, keeper_reply_fn *reply, void *arg)
{
	keeper_ask(d, KEEPER_HELLO, NULL, NULL, 0, reply, arg);
}

static void native_disk_own(struct driver *d, const char *owner, keeper_reply_fn *reply, void *arg)
{
	struct keeper_request q = {.op = KEEPER_OWN};
	memcpy(q.owner, owner, strnlen(owner, ID_LEN));
	op_link_call(&native_of(d)->keeper, &q, (op_reply_fn *)reply, arg);
}

static void native_disk_make(struct driver *d, const struct disk_name *disk,
	const struct disk_name *from, int64_t limit, keeper_reply_fn *reply, void *arg)
{
	keeper_ask(d, KEEPER_MAKE, disk, from, limit, reply, arg);
}

static void native_disk_limit(struct driver *d, const struct disk_name *disk, int64_t limit,
	keeper_reply_fn *reply, void *arg)
{
	keeper_ask(d, KEEPER_LIMIT, disk, NULL, limit, reply, arg);
}

static void native_disk_keep(struct driver *d, const struct disk_name *disk,
	const struct disk_name *from, keeper_reply_fn *reply, void *arg)
{
	keeper_ask(d, KEEPER_KEEP, disk, from, 0, reply, arg);
}

static void native_disk_restore(struct driver *d, const struct disk_name *disk,
	const struct disk_name *from, keeper_reply_fn *reply, void *arg)
{
	keeper_ask(d, KEEPER_RESTORE, disk, from, 0, reply, arg);
}

static void native_disk_delete(
	struct driver *d, const struct disk_name *disk, keeper_reply_fn *reply, void *arg)
{
	keeper_ask(d, KEEPER_DELETE, disk, NULL, 0, reply, arg);
}

static void native_disk_set_aside(
	struct driver *d, const struct disk_name *disk, keeper_reply_fn *reply, void *arg)
{
	keeper_ask(d, KEEPER_SET_ASIDE, disk, NULL, 0, reply, arg);
}

static void native_disk_usage(
	struct driver *d, const struct disk_name *disk, keeper_reply_fn *reply, void *arg)
{
	keeper_ask(d, KEEPER_USAGE, disk, NULL, 0, reply, arg);
}

static void native_disk_sample(
	struct driver *d, const struct disk_name *disk, keeper_reply_fn *reply, void *arg)
{
	keeper_ask(d, KEEPER_SAMPLE, disk, NULL, 0, reply, arg);
}

static void native_disk_measure(
	struct driver *d, const struct disk_name *disk, keeper_reply_fn *reply, void *arg)
{
	keeper_ask(d, KEEPER_MEASURE, disk, NULL, 0, reply, arg);
}

static void native_disk_next(
	struct driver *d, const struct disk_name *disk, keeper_reply_fn *reply, void *arg)
{
	keeper_ask(d, KEEPER_NEXT, disk, NULL, 0, reply, arg);
}

static void native_disk_diff(struct driver *d, const struct disk_name *disk,
	const struct disk_name *from, const char *root, enum diff_form form, keeper_reply_fn *reply,
	void *arg)
{
	struct keeper_request q = {.op = KEEPER_DIFF, .form = form};
	name_disk(&q.disk, disk);
	name_disk(&q.from, from);
	memcpy(q.root, root, strnlen(root, ID_LEN));
	op_link_call(&native_of(d)->keeper, &q, (op_reply_fn *)reply, arg);
}

/* ---- networks ---- */

static void deliver_network(op_reply_fn *reply, void *arg, const void *message)
{
	((network_reply_fn *)reply)(arg, message);
}

static const struct op_protocol network_protocol = {
	.peer = "wire",
	.request_size = sizeof(struct network_request),
	.reply_size = sizeof(struct network_reply),
	.request_epoch = offsetof(struct network_request, epoch),
	.reply_epoch = offsetof(struct network_reply, epoch),
	.restarted = NETWORK_STARTED,
	.deliver = deliver_network,
};

static void network_ask(
	struct driver *d, enum network_op op, const char *id, network_reply_fn *reply, void *arg)
{
	struct network_request q = {.op = op};
	memcpy(q.id, id, strnlen(id, ID_LEN));
	op_link_call(&native_of(d)->network, &q, (op_reply_fn *)reply, arg);
}

static void native_network_hello(struct driver *d, network_reply_fn *reply, void *arg)
{
	network_ask(d, NETWORK_HELLO, "", reply, arg);
}

static void native_network_on(struct driver *d, const char *id, network_reply_fn *reply, void *arg)
{
	network_ask(d, NETWORK_ON, id, reply, arg);
}

static void native_network_off(struct driver *d, const char *id, network_reply_fn *reply, void *arg)
{
	network_ask(d, NETWORK_OFF, id, reply, arg);
}

static void native_policy_set(struct driver *d, const char *id, const struct driver_policy *policy,
	tell_done_fn *done, void *arg)
{
	egress_link_set(&native_of(d)->egress, id, policy, done, arg);
}

static void native_policy_forget(struct driver *d, const char *id, tell_done_fn *done, void *arg)
{
	tell_link_forget(&native_of(d)->egress.link, id, done, arg);
}

static void native_start_broker(void *arg, const char *id, network_reply_fn *reply, void *reply_arg)
{
	network_ask(arg, NETWORK_BROKER, id, reply, reply_arg);
}

static void native_broker_set(struct driver *d, const char *broker, const char *id,
	const struct buf *entries, tell_done_fn *done, void *arg)
{
	brokers_set(&native_of(d)->brokers, broker, id, entries, done, arg);
}

static void native_broker_forget(
	struct driver *d, const char *broker, const char *id, tell_done_fn *done, void *arg)
{
	brokers_forget(&native_of(d)->brokers, broker, id, done, arg);
}

static void native_policies_complete(struct driver *d)
{
	tell_link_complete(&native_of(d)->egress.link);
	brokers_complete(&native_of(d)->brokers);
}

/* ---- begin and end ---- */

static bool native_is_busy(const struct driver *d)
{
	const struct native_driver *n =
		(const struct native_driver *)((const char *)d -
					       offsetof(struct native_driver, driver));
	return op_link_is_busy(&n->warden) || op_link_is_busy(&n->keeper) ||
	       op_link_is_busy(&n->network) || tell_link_is_busy(&n->egress.link) ||
	       brokers_are_busy(&n->brokers);
}

static void native_link_closed(void *arg)
{
	struct native_driver *n = arg;
	if (--n->open > 0)
		return;
	void (*closed)(void *arg) = n->closed;
	void *closed_arg = n->closed_arg;
	free(n);
	if (closed)
		closed(closed_arg);
}

static void native_close(struct driver *d, void (*closed)(void *arg), void *arg)
{
	struct native_driver *n = native_of(d);
	n->closed = closed;
	n->closed_arg = arg;
	boots_free(n->held);
	boots_free(n->sent);
	op_link_close(&n->warden, native_link_closed, n);
	op_link_close(&n->keeper, native_link_closed, n);
	op_link_close(&n->network, native_link_closed, n);
	tell_link_close(&n->egress.link, native_link_closed, n);
	brokers_close(&n->brokers, native_link_closed, n);
}

static const struct driver native = {
	.boot = native_boot,
	.recall_boot = native_recall_boot,
	.limits = native_limits,
	.usage = native_usage,
	.kill = native_kill,
	.halt = native_halt,
	.destroy = native_destroy,
	.freeze = native_freeze,
	.reclaim = native_reclaim,
	.thaw = native_thaw,
	.next = native_next,
	.disk_hello = native_disk_hello,
	.disk_own = native_disk_own,
	.disk_make = native_disk_make,
	.disk_limit = native_disk_limit,
	.disk_keep = native_disk_keep,
	.disk_restore = native_disk_restore,
	.disk_delete = native_disk_delete,
	.disk_set_aside = native_disk_set_aside,
	.disk_usage = native_disk_usage,
	.disk_sample = native_disk_sample,
	.disk_measure = native_disk_measure,
	.disk_next = native_disk_next,
	.disk_diff = native_disk_diff,
	.network_hello = native_network_hello,
	.network_on = native_network_on,
	.network_off = native_network_off,
	.policy_set = native_policy_set,
	.policy_forget = native_policy_forget,
	.broker_set = native_broker_set,
	.broker_forget = native_broker_forget,
	.policies_complete = native_policies_complete,
	.is_busy = native_is_busy,
	.close = native_close,
};

/* Processes that are gone are started again by the warden, whose end is noticed. */
static int open_links(struct native_driver *n, uv_loop_t *loop, const struct driver_links *links,
	void (*lost)(void *arg), void *arg, const char **failed)
{
	const struct {
		struct op_link *link;
		const struct op_protocol *protocol;
		int fd;
		void (*lost)(void *arg);
	} rows[] = {{&n->warden, &warden_protocol, links->warden_fd, lost},
		{&n->keeper, &keeper_protocol, links->keeper_fd, NULL},
		{&n->network, &network_protocol, links->network_fd, NULL}};
	for (; n->open < sizeof rows / sizeof rows[0]; n->open++) {
		*failed = rows[n->open].protocol->peer;
		int r = op_link_open(rows[n->open].link, rows[n->open].protocol, loop,
			rows[n->open].fd, rows[n->open].lost, arg);
		if (r < 0)
			return r;
	}
	return 0;
}

int native_driver_open(struct driver **ret, uv_loop_t *loop, const struct driver_links *links,
	void (*lost)(void *arg), void *arg, struct error *e)
{
	struct native_driver *n = mem_new(sizeof *n);
	struct op_link *const opened[] = {&n->warden, &n->keeper, &n->network};
	const char *failed;
	n->driver = native;
	int r = open_links(n, loop, links, lost, arg, &failed);
	if (r < 0) {
		error_set(e, ERROR_INTERNAL, "cannot talk to the %s: %s", failed, uv_strerror(r));
		unsigned count = n->open;
		for (unsigned i = 0; i < count; i++)
			op_link_close(opened[i], native_link_closed, n);
		if (count == 0)
			free(n);
		return -1;
	}
	egress_link_open(&n->egress, loop, links->run_dir, links->egress_told, arg);
	n->brokers =
		(struct brokers){.loop = loop, .ask = native_start_broker, .ask_arg = &n->driver};
	brokers_open(&n->brokers, links->run_dir);
	n->open += 2;
	*ret = &n->driver;
	return 0;
}
