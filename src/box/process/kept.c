#include "box/process/kept.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/process/execution_core.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"

#define EVICT_ROWS 256   /* with one statement */
#define SWEEP_ROWS 256   /* looked up with one turn of the loop */
#define TELL_MS    60000 /* between two lines in the log about one tenant */

struct kept_account {
	struct kept *kept;
	int64_t bytes; /* of rows, and of the files of what runs */
	int64_t ended; /* of which in rows: these can go */
	bool evicting;
	uint64_t evicted; /* by the statement under way */
	int64_t told_ms;
	UT_hash_handle by_name;
	char tenant[];
};

struct kept {
	struct box *box;
	struct spool spool;
	struct kept_account *accounts;
	int64_t limit, total_limit, total;
};

static struct kept_account *account_of(struct kept *k, const char *tenant)
{
	struct kept_account *a = NULL;
	HASH_FIND(by_name, k->accounts, tenant, strlen(tenant), a);
	if (a)
		return a;
	a = mem_new(sizeof *a + strlen(tenant) + 1);
	a->kept = k;
	memcpy(a->tenant, tenant, strlen(tenant) + 1);
	HASH_ADD(by_name, k->accounts, tenant[0], strlen(tenant), a);
	return a;
}

struct kept_account *kept_of(struct box *b, const char *tenant)
{
	return account_of(b->processes.kept, tenant);
}

static void kept_add_sum(void *arg, const char *tenant, int64_t bytes)
{
	kept_add_row(account_of(arg, tenant), (uint64_t)(bytes > 0 ? bytes : 0));
}

int kept_open(struct box *b)
{
	struct kept *k = b->processes.kept = mem_new(sizeof *k);
	k->box = b;
	k->spool.dir = b->config.spool_dir;
	b->processes.spool = &k->spool;
	k->limit = b->config.kept_limit;
	k->total_limit = spool_share(&k->spool);
	return store_each_kept(b->store, kept_add_sum, k);
}

void kept_close(struct box *b)
{
	struct kept_account *a, *next;
	if (!b->processes.kept)
		return;
	HASH_ITER (by_name, b->processes.kept->accounts, a, next) {
		HASH_DELETE(by_name, b->processes.kept->accounts, a);
		free(a);
	}
	free(b->processes.kept);
	b->processes.kept = NULL;
}

/* ---- files that go ---- */

struct removal {
	uv_work_t work;
	const char *dir;
	size_t count;
	char ids[][ID_SIZE];
};

/* By a thread: a file of 8 MiB may take a millisecond. */
static void removal_work(uv_work_t *work)
{
	struct removal *r = work->data;
	for (size_t i = 0; i < r->count; i++)
		for (unsigned stream = 0; stream < EXECUTION_STREAMS; stream++) {
			char path[256];
			snprintf(path, sizeof path, "%s/%s.%u", r->dir, r->ids[i], stream);
			unlink(path);
		}
}

static void removal_done(uv_work_t *work, int status)
{
	(void)status;
	free(work->data);
}

struct removals {
	struct box *box;
	struct kept_account *account; /* the tenant whose oldest go; NULL: of all tenants, by age */
	struct removal *removal;
	kept_expired_fn *expired; /* of these, at the end */
	void *arg;
	unsigned count;
};

static void removals_flush(struct removals *rs)
{
	struct removal *r = rs->removal;
	rs->removal = NULL;
	if (r)
		uv_queue_work(rs->box->loop, &r->work, removal_work, removal_done);
}

static void removals_add(struct removals *rs, const char *id)
{
	if (!rs->removal) {
		rs->removal = mem_new(sizeof *rs->removal + EVICT_ROWS * ID_SIZE);
		rs->removal->work.data = rs->removal;
		rs->removal->dir = rs->box->config.spool_dir;
	}
	memcpy(rs->removal->ids[rs->removal->count++], id, ID_SIZE);
	if (rs->removal->count == EVICT_ROWS)
		removals_flush(rs);
}

/* ---- what goes ---- */

static void kept_evict(struct kept_account *a);

static bool is_above(int64_t bytes, int64_t limit, int eighths)
{
	return bytes > limit / 8 * eighths;
}

static struct kept_account *kept_find_largest(struct kept *k)
{
	struct kept_account *a, *next, *largest = NULL;
	HASH_ITER (by_name, k->accounts, a, next)
		if (!largest || a->ended > largest->ended)
			largest = a;
	return largest;
}

/* From seven eighths of a limit down to six. */
static void kept_make_room(struct kept_account *a, int eighths)
{
	struct kept *k = a->kept;
	if (is_above(a->bytes, k->limit, eighths))
		kept_evict(a);
	if (is_above(k->total, k->total_limit, eighths))
		kept_evict(kept_find_largest(k));
}

static void kept_drop_row(struct kept_account *a, int64_t bytes)
{
	a->bytes -= bytes;
	a->ended -= bytes;
	a->kept->total -= bytes;
}

/* Each row that is gone, then NULL. */
static void execution_gone(void *arg, const void *row, int error)
{
	struct removals *rs = arg;
	const struct execution_gone *gone = row;
	(void)error; /* it is in the log, and tried again with the next charge */
	if (gone) {
		kept_drop_row(kept_of(rs->box, gone->tenant), gone->kept);
		removals_add(rs, gone->id);
		rs->count++;
		if (rs->account)
			rs->account->evicted++;
		return;
	}
	struct kept_account *a = rs->account;
	removals_flush(rs);
	if (rs->expired)
		rs->expired(rs->arg, rs->count);
	free(rs);
	if (!a)
		return;
	a->evicting = false;
	if (a->evicted > 0)
		kept_make_room(a, 6);
}

static struct removals *removals_new(struct box *b, struct kept_account *a)
{
	struct removals *rs = mem_new(sizeof *rs);
	rs->box = b;
	rs->account = a;
	return rs;
}

static void kept_evict(struct kept_account *a)
{
	struct box *b = a->kept->box;
	if (a->evicting || a->ended <= 0 || b->closing)
		return;
	int64_t own = a->bytes - a->kept->limit / 8 * 6;
	int64_t all = a->kept->total - a->kept->total_limit / 8 * 6;
	a->evicting = true;
	a->evicted = 0;
	store_evict_executions(b->store, a->tenant, EVICT_ROWS, own > all ? own : all,
		execution_gone, removals_new(b, a));
}

void kept_expire(
	struct box *b, int64_t before_ms, unsigned limit, kept_expired_fn *expired, void *arg)
{
	struct removals *rs = removals_new(b, NULL);
	rs->expired = expired;
	rs->arg = arg;
	store_expire_executions(b->store, before_ms, limit, execution_gone, rs);
}

/* ---- the accounts ---- */

static void kept_tell(struct kept_account *a, const char *why)
{
	int64_t now = clock_monotonic_us() / 1000;
	if (a->told_ms && now - a->told_ms < TELL_MS)
		return;
	a->told_ms = now;
	log_warn("output is not kept", "tenant", a->tenant, "reason", why);
}

void kept_force_charge(struct kept_account *a, uint64_t bytes)
{
	a->bytes += (int64_t)bytes;
	a->kept->total += (int64_t)bytes;
	kept_make_room(a, 7);
}

bool kept_charge(struct kept_account *a, uint64_t bytes)
{
	struct kept *k = a->kept;
	int64_t more = (int64_t)bytes;
	const char *why = NULL;
	if (a->bytes + more > k->limit)
		why = "the tenant's commands that run have all that it may keep";
	else if (k->total + more > k->total_limit)
		why = "all tenants together have all that may be kept";
	else if (!spool_has_room(&k->spool))
		why = "the file system of the data directory is short of space";
	if (why) {
		kept_tell(a, why);
		kept_make_room(a, 7);
		return false;
	}
	kept_force_charge(a, bytes);
	return true;
}

void kept_release(struct kept_account *a, uint64_t bytes)
{
	a->bytes -= (int64_t)bytes;
	a->kept->total -= (int64_t)bytes;
}

void kept_add_row(struct kept_account *a, uint64_t bytes)
{
	a->ended += (int64_t)bytes;
	kept_force_charge(a, bytes);
}

/* ---- files without an execution ---- */

struct sweep {
	uv_work_t work;
	struct box *box;
	char (*ids)[ID_SIZE];
	size_t count, next;
	size_t asked; /* of the slice under way */
	struct removals removals;
};

struct sweep_question {
	struct sweep *sweep;
	bool known;
	char id[ID_SIZE];
};

static void sweep_list(uv_work_t *work)
{
	struct sweep *w = work->data;
	size_t room = 0;
	DIR *dir = opendir(w->box->config.spool_dir);
	struct dirent *entry;
	while (dir && (entry = readdir(dir))) {
		char id[ID_SIZE] = "";
		memcpy(id, entry->d_name, strnlen(entry->d_name, ID_LEN));
		const char *rest = entry->d_name + strlen(id);
		if (!id_is_valid(id) || (strcmp(rest, ".0") != 0 && strcmp(rest, ".1") != 0))
			continue;
		if (w->count == room)
			w->ids = mem_resize(w->ids, room = room ? room * 2 : 256, sizeof *w->ids);
		memcpy(w->ids[w->count++], id, ID_SIZE);
	}
	if (dir)
		closedir(dir);
}

static void sweep_go_on(struct sweep *w);

static void sweep_answered(void *arg, const void *row, int error)
{
	struct sweep_question *q = arg;
	struct sweep *w = q->sweep;
	q->known |= row || error;
	if (row)
		return;
	if (!q->known)
		removals_add(&w->removals, q->id);
	free(q);
	if (--w->asked == 0)
		sweep_go_on(w);
}

static void sweep_go_on(struct sweep *w)
{
	struct box *b = w->box;
	for (; w->next < w->count && w->asked < SWEEP_ROWS && !b->closing; w->next++) {
		const char *id = w->ids[w->next];
		if (execution_find(b, NULL, id))
			continue;
		struct sweep_question *q = mem_new(sizeof *q);
		q->sweep = w;
		memcpy(q->id, id, ID_SIZE);
		w->asked++;
		store_know_execution(b->store, id, sweep_answered, q);
	}
	if (w->asked > 0)
		return;
	removals_flush(&w->removals);
	b->processes.sweeping = false;
	free(w->ids);
	free(w);
	box_check_closed(b);
}

static void sweep_listed(uv_work_t *work, int status)
{
	(void)status;
	sweep_go_on(work->data);
}

/* A paused sandbox has not named its processes yet, so their files seem to have no owner. */
void kept_sweep(struct box *b)
{
	const struct sandbox *s;
	DL_FOREACH (b->sandboxes.order, s)
		if (s->init.unheard)
			return;
	struct sweep *w = mem_new(sizeof *w);
	w->box = w->removals.box = b;
	w->work.data = w;
	b->processes.sweeping = true;
	uv_queue_work(b->loop, &w->work, sweep_list, sweep_listed);
}
