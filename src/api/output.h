/* Output from any byte on, as the request wants it: events, bytes, or a WebSocket. */
#pragma once

#include "api/routes.h"

/* GET …/output of the execution that the path names. */
void output_handle(struct http_request *req);

/* The same as a WebSocket: output_socket.c. */
struct answer *output_socket_answer(struct http_request *req);
extern const struct answer_socket output_socket;
