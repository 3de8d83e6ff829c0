#include "server/privileged.h"

#include "server/data_directory.h"
#include "server/embedded.h"
#include "server/network.h"
#include "server/totals.h"

static void child_ended(void *arg, pid_t pid)
{
	struct privileged *p = arg;
	keeper_child_ended(&p->keeper, pid);
	netns_child_ended(&p->netns, pid);
}

static int start_netns(struct privileged *p, const struct config *c, struct error *e)
{
	const struct warden *w = &p->warden;
	struct netns_config nc = {.data = w->data,
		.cgroup_fd = w->cgroup_v2_fd,
		.memory_fd = w->cgroup_v1_fd[CONTROLLER_MEMORY],
		.front_uid = w->front_uid,
		.egress_uid = w->front_uid - FRONT_UID + EGRESS_UID,
		.broker_uid = w->front_uid - FRONT_UID + BROKER_UID,
		.trust_file = c->upstream_ca,
		.egress = c->egress};
	network_find_resolvers(&nc.egress);
	return netns_start(&p->netns, &nc, e);
}

int privileged_open(struct privileged *p, const struct config *c, struct error *e)
{
	struct warden *w = &p->warden;
	struct keeper *k = &p->keeper;
	char data[DATA_PATH_MAX + 1];
	const struct totals_host host = totals_of_host();
	const struct warden_config wc = {
		data, embedded_init, embedded_init_size, totals_settle(c, &host)};
	if (data_directory_open(c->data, data, e) < 0)
		return -1;
	p->warden_open = warden_open(w, &wc, e) == 0;
	if (!p->warden_open)
		return -1;
	const struct keeper_config kc = {w->data, c->disk_pool, c->disk_pool_size,
		c->max_disk_pool_size, c->sandbox_ca.section};
	p->keeper_open = keeper_open(k, &kc, e) == 0;
	if (!p->keeper_open)
		return -1;
	p->keeper_started = keeper_start(k, w->cgroup_v2_fd, e) == 0;
	if (!p->keeper_started)
		return -1;
	w->disks = (struct warden_disks){
		k->dirs[DISK_BOX], k->trash_fd, k->sweeper_pair[0], k->template_path};
	w->child_ended = child_ended;
	w->child_ended_arg = p;
	return start_netns(p, c, e);
}

void privileged_close(struct privileged *p)
{
	netns_leave(&p->netns);
	warden_close(&p->warden);
	keeper_leave(&p->keeper);
}

void privileged_discard(struct privileged *p, const char *data)
{
	if (p->keeper_started)
		keeper_stop(&p->keeper);
	warden_unmount(data);
	if (p->keeper_open)
		keeper_close(&p->keeper);
	keeper_remove_tree(data);
}
