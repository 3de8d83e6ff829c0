/* What a sandbox may reach, and what it did. Comes with bunker.h. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* *ret: its mode and lists, for bunker_json_text and bunker_json_free. */
int bunker_get_network(
	struct bunker *b, const char *id, struct bunker_json **ret, struct bunker_error *e);

struct bunker_destination {
	const char *host;    /* the name that decided, else the address */
	int64_t port;        /* 0: its name was asked for, and refused */
	const char *address; /* that was used last; or "" */
	bool is_other;       /* stands for those that were too many, and has no host */
	int64_t connections; /* that were opened */
	int64_t failed;      /* that were allowed, and could not be opened */
	int64_t refused;
	int64_t bytes_in, bytes_out;
	const char *used_at; /* last */
	struct bunker_json *json;
};

/* The destination is valid for the time of the call. Anything but 0 ends it with BUNKER_STOPPED. */
typedef int bunker_destination_fn(void *arg, const struct bunker_destination *destination);
/*
 * Each destination, the one that was used last first. With go_on, the one that was used last at the
 * end, and then each again as it changes, until the sandbox has ended.
 */
int bunker_destinations(struct bunker *b, const char *id, bool go_on, bunker_destination_fn *each,
	void *arg, struct bunker_error *e);

#ifdef __cplusplus
}
#endif
