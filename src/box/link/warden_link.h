/* Requests to the warden and their answers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/id.h"
#include "model/sandbox.h"
#include "wire/warden.h"

typedef void warden_reply_fn(void *arg, const struct warden_reply *reply);
struct warden_call;

struct warden_link {
	int fd;
	uv_poll_t poll;
	uint32_t sequence;
	struct warden_call *calls;  /* all that wait for an answer, oldest first */
	struct warden_call *unsent; /* the first that the socket has not taken */
	struct warden_call *held;   /* boots that wait for those under way */
	unsigned boots;             /* among the calls */
	bool writing;               /* we are told when it takes more */
	void (*lost)(void *arg);
	void *arg;
};

int warden_link_open(
	struct warden_link *w, uv_loop_t *loop, int fd, void (*lost)(void *arg), void *arg);
void warden_link_call(struct warden_link *w, enum warden_op op, const char *id,
	const struct resources *limits, warden_reply_fn *reply, void *arg);

/* What a sandbox is booted with. Its disk is there already. */
struct warden_boot {
	const char *id;
	const char *root; /* the layer that holds its root; "": that of `base` */
	const struct resources *limits;
	const struct warden_volume *volumes; /* WARDEN_VOLUMES_MAX of them */
	bool host_network;
	uint8_t boot_id[UUID_BYTES];
};

void warden_link_boot(
	struct warden_link *w, const struct warden_boot *boot, warden_reply_fn *reply, void *arg);
/* A boot of this sandbox that has not been sent is answered with ECANCELED, now. */
void warden_link_recall_boot(struct warden_link *w, const char *id);
/* Calls that are not answered are dropped. */
void warden_link_close(struct warden_link *w, uv_close_cb closed);
