#include "server/privileged.h"

#include "server/embedded.h"

static void child_ended(void *arg, pid_t pid)
{
	keeper_child_ended(arg, pid);
}

int privileged_open(struct privileged *p, const struct config *c, struct error *e)
{
	struct warden *w = &p->warden;
	struct keeper *k = &p->keeper;
	const struct warden_config wc = {
		c->data, embedded_init, embedded_init_size, c->builds_use_host_network};
	p->warden_open = warden_open(w, &wc, e) == 0;
	if (!p->warden_open)
		return -1;
	const struct keeper_config kc = {
		w->data, c->disk_pool, c->disk_pool_size, c->max_disk_pool_size};
	p->keeper_open = keeper_open(k, &kc, e) == 0;
	if (!p->keeper_open)
		return -1;
	p->keeper_started = keeper_start(k, w->cgroup_v2_fd, e) == 0;
	if (!p->keeper_started)
		return -1;
	w->disks = (struct warden_disks){
		k->dirs[DISK_BOX], k->trash_fd, k->sweeper_pair[0], k->template_path};
	w->child_ended = child_ended;
	w->child_ended_arg = k;
	return 0;
}

void privileged_close(struct privileged *p)
{
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
