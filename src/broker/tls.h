/*
 * The two contexts of TLS: towards sandboxes we are the server, towards the internet the client.
 * TLS 1.2 and later, HTTP/1.1 only, nothing resumed: each connection is checked anew.
 */
#pragma once

#include <openssl/ssl.h>
#include <stddef.h>

/* Reads the certificates that hosts' are checked against. Before we are confined. */
int tls_open(const char *trust_file);
/* How many certificates the file has, or a negative error. */
int tls_count_trusted(const char *trust_file);
/* The answering side; the client has to ask for `host`, which stays the caller's. */
SSL *tls_new_server(int fd, const char *host);
/* The asking side; the certificate has to be for `host`. */
SSL *tls_new_client(int fd, const char *host);
/* Why a handshake failed, for people. */
void tls_describe_failure(const SSL *ssl, char *out, size_t size);
