/*
 * Errors a person will read: a stable code, a sentence, and the field at fault if there is one.
 *
 * Functions return 0 or a negative errno-like value and fill `struct error` once, at the origin.
 * The table in error.c is the only place that maps a code to its name, HTTP status and exit status.
 */
#pragma once

#include <stdarg.h>

enum error_code {
	ERROR_NONE,
	ERROR_INVALID_REQUEST,
	ERROR_INVALID_JSON,
	ERROR_INVALID_FIELD,
	ERROR_UNKNOWN_FIELD,
	ERROR_MISSING_FIELD,
	ERROR_UNAUTHORIZED,
	ERROR_SCOPE_MISSING,
	ERROR_NOT_FOUND,
	ERROR_ROUTE_NOT_FOUND,
	ERROR_TEMPLATE_NOT_FOUND,
	ERROR_INTERPRETER_NOT_FOUND,
	ERROR_METHOD_NOT_ALLOWED,
	ERROR_NAME_TAKEN,
	ERROR_NOT_RUNNING,
	ERROR_STDIN_CLOSED,
	ERROR_NOT_READY,
	ERROR_IN_USE,
	ERROR_DIGEST_MISMATCH,
	ERROR_PAUSED,
	ERROR_INVALID_ARCHIVE,
	ERROR_INVALID_IMAGE,
	ERROR_BUILD_FAILED,
	ERROR_BODY_TOO_LARGE,
	ERROR_URI_TOO_LONG,
	ERROR_UNSUPPORTED_MEDIA_TYPE,
	ERROR_EXPECTATION_FAILED,
	ERROR_UPGRADE_REQUIRED,
	ERROR_HEADERS_TOO_LARGE,
	ERROR_QUOTA_EXCEEDED,
	ERROR_RESOURCE_EXHAUSTED,
	ERROR_REQUEST_TIMEOUT,
	ERROR_PERMISSION_DENIED,
	ERROR_IS_A_DIRECTORY,
	ERROR_NOT_A_DIRECTORY,
	ERROR_NOT_A_REGULAR_FILE,
	ERROR_NO_SPACE,
	ERROR_ALREADY_EXISTS,
	ERROR_DIRECTORY_NOT_EMPTY,
	ERROR_NAME_TOO_LONG,
	ERROR_TOO_MANY_LINKS,
	ERROR_READ_ONLY,
	ERROR_NOT_SUPPORTED,
	ERROR_RANGE_NOT_SATISFIABLE,
	ERROR_INTERNAL,
	ERROR_BOOT_FAILED,
	ERROR_PORT_CLOSED,
	ERROR_BAD_GATEWAY,
	ERROR_UNAVAILABLE,
	ERROR_VERSION_NOT_SUPPORTED,
	ERROR_NOT_IMPLEMENTED,
	ERROR_CODE_COUNT
};

struct error {
	enum error_code code;
	char field[64];
	char message[320];
};

const char *error_name(enum error_code code);
int error_http_status(enum error_code code);
enum error_code error_from_name(const char *name);

/* Each fills *e (if e is not NULL) and returns a negative value, so that `return error_set(…)`
 * reads well. */
int error_set(struct error *e, enum error_code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int error_set_field(struct error *e, enum error_code code, const char *field, const char *format,
	...) __attribute__((format(printf, 4, 5)));
/* "what: strerror(err)", with the code that suits the errno. err may be positive or negative. */
int error_set_errno(struct error *e, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
