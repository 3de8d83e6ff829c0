/*
 * Memory that requests hold while nobody hurries: bodies that are collected, answers that the
 * client has not taken, and what stands in WebSockets. It is counted for each account, which is a
 * tenant, and in all. A body that finds no room, and a request of an account that has used up its
 * own, is answered 503 with Retry-After; DELETE is not, because it makes room. A large answer to a
 * GET that finds no room beside others becomes a 503, too; those to other methods are only counted,
 * because what they tell has happened. WebSockets of an account that has used up its own queue no
 * more than one message, and take none that are large.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct http_account;
struct http_connection;

/* The request is admitted: from here on its memory is its account's. Negative: there is no room. */
int http_budget_join(struct http_connection *c, struct error *e);
/* Counts collected bytes of a body. Negative: over the limit. */
int http_budget_hold_body(struct http_connection *c, size_t bytes, struct error *e);
/* Whether an answer of this size may wait to be read. Negative: *e is told instead. */
int http_budget_check_answer(struct http_connection *c, size_t bytes, struct error *e);
/* Counts bytes of an answer that wait to be sent. */
void http_budget_hold_answer(struct http_connection *c, size_t bytes);
/* Counts a WebSocket's bytes: queued messages, and the received part of a message. */
void http_budget_hold_queue(struct http_connection *c, size_t bytes);
/* The account, or all together, have no more than they may. */
bool http_budget_is_kept(const struct http_connection *c);
/* The request holds nothing any more. Fine if it has not joined. */
void http_budget_leave(struct http_connection *c);
