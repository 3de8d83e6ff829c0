/* Ports of a sandbox: what listens there, who may see it, and connections. Comes with bunker.h. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct bunker_port {
	int64_t port;
	bool is_public;      /* everyone may see it */
	const char *url;     /* of its preview */
	const char *address; /* of one that is listed: what the socket is bound to; else "" */
	int64_t pid;         /* and the process that holds it; 0: not found */
	const char *command;
	const char *id; /* of a token just made; else "" */
	const char *token;
	const char *expires_at;
	struct bunker_json *json;
};
void bunker_port_finish(struct bunker_port *port);

struct bunker_port_list {
	struct bunker_port *items;
	size_t count;
};
void bunker_port_list_finish(struct bunker_port_list *list);
/* {"ports":[...]}, for the caller to free. NULL: out of memory. */
char *bunker_port_list_json(const struct bunker_port_list *list);

/* What listens in the sandbox, given by id. */
int bunker_port_list(struct bunker *b, const char *sandbox, struct bunker_port_list *ret,
	struct bunker_error *e);
/* Its URL and who may see it, whether something listens or not. */
int bunker_port_get(struct bunker *b, const char *sandbox, int64_t port, struct bunker_port *ret,
	struct bunker_error *e);
/* Opens it to everyone, or no longer. */
int bunker_port_set_public(struct bunker *b, const char *sandbox, int64_t port, bool is_public,
	struct bunker_port *ret, struct bunker_error *e);
/* Makes a token that shows it to whoever has the URL. expires: such as "10m"; NULL: an hour. */
int bunker_port_create_token(struct bunker *b, const char *sandbox, int64_t port,
	const char *expires, struct bunker_port *ret, struct bunker_error *e);
int bunker_port_revoke_token(struct bunker *b, const char *sandbox, int64_t port, const char *id,
	struct bunker_error *e);
/* Connects to it: *fd is a socket on which bytes pass as they are, the caller's to close. */
int bunker_port_connect(
	struct bunker *b, const char *sandbox, int64_t port, int *fd, struct bunker_error *e);

#ifdef __cplusplus
}
#endif
