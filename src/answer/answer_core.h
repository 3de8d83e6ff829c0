/* Answers as the files of this room see them. */
#pragma once

#include "answer/answer.h"

/* Frees it, or marks it as over while it is held. */
void answer_free(struct answer *a);
/* Keeps it while something is called that may end it. */
void answer_hold(struct answer *a);
/* False: it has ended meanwhile, and is gone. */
bool answer_let_go(struct answer *a);
/* The client has gone. */
void answer_gone(void *arg);
/* Tells *why, before or after the first byte. event: OP_FAILED, or NULL. */
void answer_fail(struct answer *a, const struct error *why, const struct op_event *event);
/* answer.c passes events on to socket.c. */
enum op_verdict answer_socket_event(struct answer *a, const struct op_event *event);
/* Passes an event to pass.c. */
enum op_verdict answer_pass_event(struct answer *a, const struct op_event *event);
