/*
 * The certificates that a server adds to a tree's own, in the places where programs look for them.
 *
 * They are given as a section: text between two marks in which each certificate, as PEM, follows a
 * line with the hash that OpenSSL names it by. What is there of an earlier section is replaced, so
 * that a section can be put any number of times; an interrupted put is completed by the next.
 *
 *     /etc/ssl/bunker-ca.pem                   the section itself, written last
 *     /etc/ssl/certs/ca-certificates.crt       and the bundles of other distributions: at their end
 *     /etc/ssl/certs/HASH.N                    one certificate each, by a link to bunker-HASH-M.pem
 *     /etc/ca-certificates/update.d/bunker     puts the section back when the bundle is made anew
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

#define TRUST_STORE_FILE   "/etc/ssl/bunker-ca.pem"
#define TRUST_STORE_BUNDLE "/etc/ssl/certs/ca-certificates.crt"
/* Bytes of a section, without its marks; it travels in one record. */
#define TRUST_STORE_MAX (48u * 1024)

/* Appends an entry of a section: the hash, in eight digits, and the certificate. */
void trust_store_append(struct buf *entries, unsigned long hash, const char *pem, size_t len);
/* Frames entries, which may be empty; then so is the section. */
void trust_store_frame(struct buf *section, const struct buf *entries);
/*
 * Puts a section into the tree at root_fd, whose links are followed as if it were the root; an
 * empty one removes what an earlier one left. Changes nothing if all of it is there. Returns 0 or
 * -errno.
 */
int trust_store_put(int root_fd, const char *section, size_t len);
