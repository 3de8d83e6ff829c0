/* What is said to us (wire/broker.h), and the end, when nobody says anything any more. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "broker/broker.h"

#define IDLE_MS  (10 * 1000) /* without sandboxes */
#define START_MS (60 * 1000) /* for the first one to be told */
#define ALONE_MS (2 * 1000)  /* without root and without egress */

static bool was_told; /* of a sandbox, ever */

/* ---- root's ---- */

static void take_hello(struct peer *p)
{
	struct broker_hello hello = {.head = {.op = BROKER_HELLO, .sequence = BROKER_PROTOCOL},
		.has_egress = peers_have(PEER_BESIDE)};
	memcpy(hello.version, BUNKER_VERSION, sizeof BUNKER_VERSION);
	peer_send(p, &hello, sizeof hello);
}

static void take_root(struct peer *p, const struct broker_head *head, int fds[PEER_FDS])
{
	if (head->op == BROKER_HELLO)
		take_hello(p);
	else if (head->op == BROKER_PART)
		_exit(0);
	else if (head->op == BROKER_EGRESS && fds[0] >= 0 && peer_add(fds[0], "") != NULL)
		fds[0] = -1;
}

/* ---- the front's ---- */

static bool take_sandbox(const uint8_t *message, size_t len)
{
	struct broker_sandbox part;
	if (len < sizeof part)
		return false;
	memcpy(&part, message, sizeof part);
	if (part.head.id[ID_LEN] != '\0' || !id_is_valid(part.head.id) ||
		part.entries_size > BROKER_RULES_SIZE || part.part_at > part.entries_size ||
		part.part_size > part.entries_size - part.part_at ||
		part.part_size != len - sizeof part)
		return false;
	was_told = true;
	return account_take_entries(&part, message + sizeof part);
}

static bool take_front(const struct broker_head *head, const uint8_t *message, size_t len)
{
	switch (head->op) {
	case BROKER_BEGIN:
		account_begin_sync();
		return true;
	case BROKER_SANDBOX:
		return take_sandbox(message, len);
	case BROKER_FORGET:
		account_forget(account_find(head->id));
		return true;
	case BROKER_END:
		account_forget_all_but_fresh();
		return true;
	default:
		return false;
	}
}

/* ---- egress's ---- */

static void take_egress(struct peer *p, const uint8_t *message, size_t len, int fds[PEER_FDS])
{
	struct broker_connection c;
	if (len != sizeof c)
		return;
	memcpy(&c, message, sizeof c);
	c.head.id[ID_LEN] = '\0';
	c.host[sizeof c.host - 1] = '\0';
	if (c.head.op == BROKER_RESET) {
		exchange_end(p, c.number);
	} else if (c.head.op == BROKER_CONNECTION && fds[1] >= 0) {
		exchange_begin(p, &c, fds[0], fds[1]);
		fds[0] = fds[1] = -1;
	}
}

/* ---- all of them ---- */

static void control_take(struct peer *p, const uint8_t *message, size_t len, int fds[PEER_FDS])
{
	struct broker_head head;
	if (len < sizeof head)
		return;
	memcpy(&head, message, sizeof head);
	head.id[ID_LEN] = '\0';
	if (p->kind == PEER_ROOT) {
		take_root(p, &head, fds);
	} else if (p->kind == PEER_BESIDE) {
		take_egress(p, message, len, fds);
	} else if (!take_front(&head, message, len)) {
		peer_close(p); /* it speaks another version, or is not itself */
	} else if (head.sequence) {
		head.op = BROKER_DONE;
		peer_send(p, &head, sizeof head);
	}
}

static void control_closed(struct peer *p)
{
	if (p->kind == PEER_BESIDE)
		exchange_end_all(p);
}

int broker_listen(int listen_fd)
{
	static const struct peer_handlers handlers = {control_take, control_closed};
	return peers_listen(listen_fd, &handlers);
}

/* ---- the end ---- */

static int64_t lasts_since(bool holds, int64_t *since_ms)
{
	if (!holds || *since_ms == 0)
		*since_ms = loop.now_ms;
	return loop.now_ms - *since_ms;
}

void broker_check_end(void)
{
	static int64_t empty_ms, alone_ms;
	const struct broker_head part = {.op = BROKER_PARTED};
	bool is_empty = account_count() == 0 && exchange_total() == 0;
	bool is_alone = !peers_have(PEER_ROOT) && !peers_have(PEER_BESIDE);
	if (lasts_since(is_alone, &alone_ms) > ALONE_MS)
		_exit(0);
	if (lasts_since(is_empty, &empty_ms) <= (was_told ? IDLE_MS : START_MS))
		return;
	peers_send(PEER_ROOT, &part, sizeof part);
	_exit(0);
}
