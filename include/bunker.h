/*
 * libbunker: sandboxes on a Bunker server, from C.
 *
 *	struct bunker *b;
 *	struct bunker_error e;
 *	struct bunker_result result;
 *	const char *const argv[] = {"uname", "-a", NULL};
 *
 *	if (bunker_open(&b, "http://127.0.0.1:2468", key, &e) < 0)
 *		errx(1, "%s (%s)", e.message, e.code);
 *	if (bunker_run(b, NULL, &(struct bunker_exec_options){.argv = argv}, &result, &e) < 0)
 *		errx(1, "%s (%s)", e.message, e.code);
 *	fwrite(result.out, 1, result.out_size, stdout);
 *	bunker_result_finish(&result);
 *	bunker_close(b);
 *
 * Every call blocks until the server has answered in full. It returns 0, or -1 with *e filled; what
 * it would have returned through a pointer is untouched then. Options that are 0 or NULL are left
 * to the server. A struct bunker holds settings only, no connection: threads may share one.
 *
 * Results are filled in the caller's memory; their strings live until the matching _finish. Strings
 * that the server did not send are "", unless said otherwise.
 */
#ifndef BUNKER_H
#define BUNKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BUNKER_DEFAULT_URL "http://127.0.0.1:2468"

struct bunker;

/* The codes this library adds to those of the server. */
#define BUNKER_NO_SERVER        "no_server" /* nothing accepts connections there */
#define BUNKER_CONNECT_TIMEOUT  "connect_timeout"
#define BUNKER_CONNECTION_LOST  "connection_lost" /* the outcome of the request is not known */
#define BUNKER_INVALID_URL      "invalid_url"
#define BUNKER_INVALID_ARGUMENT "invalid_argument"
#define BUNKER_INVALID_RESPONSE "invalid_response"
#define BUNKER_TLS_FAILED       "tls_failed" /* the certificate is not trusted, or there is no TLS */
#define BUNKER_STOPPED          "stopped"    /* by the output callback */
#define BUNKER_OUT_OF_MEMORY    "out_of_memory"
#define BUNKER_FILE_CHANGED     "file_changed" /* while the connection was lost */

struct bunker_error {
	int http_status; /* 0: the error did not come from the server */
	char code[48];
	char field[64]; /* of the request, when one is at fault */
	char message[400];
};

/* url: http[s]://HOST[:PORT][/PREFIX]. https is checked against the authorities of the system, or
 * of SSL_CERT_FILE. api_key may be NULL; then only bunker_health is of use. */
int bunker_open(struct bunker **ret, const char *url, const char *api_key, struct bunker_error *e);
void bunker_close(struct bunker *b);
/*
 * For so long a call that loses its connection tries to reach the server again, and goes on where
 * it was: bunker_exec once its command runs, bunker_process_output, bunker_process_get,
 * bunker_events, bunker_file_read and bunker_file_watch. No byte and no event is missing or
 * doubled; a watch tells an "overflow", for nobody watched meanwhile. 0, as at first: not at all.
 * Before threads share it.
 */
void bunker_set_patience(struct bunker *b, unsigned seconds);

/* An answer as JSON; it owns the strings of the result that holds it. */
struct bunker_json;
/* The JSON text, for the caller to free. NULL: out of memory. */
char *bunker_json_text(const struct bunker_json *json);
void bunker_json_free(struct bunker_json *json);

struct bunker_health {
	const char *status;
	const char *version;
	struct bunker_json *json;
};
int bunker_health(struct bunker *b, struct bunker_health *ret, struct bunker_error *e);
void bunker_health_finish(struct bunker_health *health);

struct bunker_pair {
	const char *name;
	const char *value;
};

/* Bytes as they come. Anything but 0 ends the call with BUNKER_STOPPED. */
typedef int bunker_data_fn(void *arg, const void *data, size_t size);
/* The next bytes to send, at most size; 0: that was all; negative: the call ends. */
typedef ptrdiff_t bunker_read_fn(void *arg, char *data, size_t size);

#ifdef __cplusplus
}
#endif

#include "bunker/sandbox.h"
#include "bunker/process.h"
#include "bunker/files.h"
#include "bunker/keys.h"
#include "bunker/network.h"
#include "bunker/secrets.h"
#include "bunker/ports.h"
#include "bunker/template.h"
#include "bunker/disks.h"

#endif
