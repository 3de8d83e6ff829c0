/*
 * Large bodies that are JSON are parsed by a thread, before the handler is called: 28 MiB take a
 * tenth of a second, in which the loop could serve nobody else.
 */
#pragma once

#include <stdbool.h>

struct http_connection;
struct http_request;

/* Begins it if the body is large and may be JSON; then c->parsed is called. */
bool http_parse_body(struct http_connection *c);
/* The connection is freed. */
void http_parse_forget(struct http_connection *c);
/* The request ends. */
void http_parse_drop(struct http_request *req);
