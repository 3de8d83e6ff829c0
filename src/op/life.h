/* The life cycle of a sandbox. */
#pragma once

#include "op/op.h"

/* ---- an existing sandbox ---- */

/* A sandbox as it is. OP_DONE with it. */
struct op_get {
	bool ended;   /* also find one that has ended, as long as its row is kept */
	bool deleted; /* also find one that was deleted */
	/*
	 * OP_ROW with it; then, of one made for a single command, OP_STARTED while that runs or
	 * OP_EXITED; then OP_DONE without a sandbox.
	 */
	bool command;
	/* Waits at most so long for one of these, as sandbox_apparent_status has them, or for its
	 * end. */
	int64_t wait_ms;
	unsigned until; /* bits of 1 << enum sandbox_status */
};
struct op *op_get(const struct op_call *call, const struct op_get *request);

/* OP_DONE with the sandbox as it is then. */
struct op *op_update(const struct op_call *call, const struct sandbox_change *change);

struct op_network {
	struct network_settings network;
	bool is_wish; /* a host that has no networks gives none */
};
/* Changes what the sandbox may reach. OP_DONE with the sandbox, when the change is in force. */
struct op *op_set_network(const struct op_call *call, const struct op_network *request);

/* OP_DONE without a sandbox, when nothing is left of it. */
struct op *op_delete(const struct op_call *call);

struct op_pause {
	bool keep_memory;
	bool unless_paused; /* fail with ERROR_PAUSED if it sleeps already */
};
/* OP_DONE with the sandbox as it is then. */
struct op *op_pause(const struct op_call *call, const struct op_pause *request);
struct op *op_resume_sandbox(const struct op_call *call, bool keep_memory);
/* Wakes it if it sleeps. One that is awake does not wait for what else is done to it. */
struct op *op_wake(const struct op_call *call);

/*
 * Wakes a sandbox that sleeps, with a new lease; one that is awake gets a longer lease, if that
 * ends later. OP_DONE with the sandbox and `woke`.
 */
struct op_renew {
	int64_t lease_ms;
	bool keep_memory;
};
struct op *op_renew(const struct op_call *call, const struct op_renew *request);

/* ---- a new one ---- */

/*
 * OP_STARTED if there is a command; OP_DONE with the sandbox. A caller that leaves before does not
 * know its id: then it is not made, or destroyed.
 */
struct op_create {
	struct sandbox_spec spec;      /* its tenant is the call's */
	const char *origin;            /* instead of a template or snapshot: the name of either */
	const char *home;              /* a directory that is made for its user; NULL: none */
	const struct file_spec *files; /* written by its user, into its home if that is made */
	size_t file_count;
	const struct execution_spec *command; /* NULL: none */
};
struct op *op_create(const struct op_call *call, const struct op_create *request);

/* ---- many ---- */

struct op_pair {
	const char *key, *value;
};

/*
 * Lists the tenant's sandboxes that match, a page at a time. OP_ROW for each, then OP_DONE. The
 * rows are told at once, even to a paused caller.
 */
struct op_list_sandboxes {
	unsigned statuses; /* bits of 1 << enum sandbox_status; 0: all that have not ended */
	bool apparent;     /* as sandbox_apparent_status has them */
	bool living_only;  /* none that is being deleted */
	const char *name, *project, *snapshot, *template_name; /* NULL or "": any */
	int ephemeral;                                         /* -1: either */
	int64_t made_from_ms;                                  /* at this moment, or after it */
	const struct op_pair *metadata; /* a value that is no string is compared as JSON */
	size_t metadata_count;
	enum sandbox_order order;
	bool backwards;
	/* The end of the previous page, in the order of creation; "": this is the first. */
	int64_t place_ms;
	char place_id[ID_SIZE];
	/* Tells, in an OP_ROW without a sandbox before all others, op_event.awake, .more and where
	 * the page ends; what comes after that is not told. Of those that live, by creation. */
	bool announces;
	bool counts; /* tells op_event.total, and pages are by offset */
	int64_t offset;
	int64_t limit; /* 0: none */
};
struct op *op_list_sandboxes(const struct op_call *call, const struct op_list_sandboxes *request);
