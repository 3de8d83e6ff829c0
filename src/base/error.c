#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	int http;
} error_table[ERROR_CODE_COUNT] = {
	[ERROR_NONE] = {"none", 200},
	[ERROR_INVALID_REQUEST] = {"invalid_request", 400},
	[ERROR_INVALID_JSON] = {"invalid_json", 400},
	[ERROR_INVALID_FIELD] = {"invalid_field", 400},
	[ERROR_UNKNOWN_FIELD] = {"unknown_field", 400},
	[ERROR_MISSING_FIELD] = {"missing_field", 400},
	[ERROR_UNAUTHORIZED] = {"unauthorized", 401},
	[ERROR_SCOPE_MISSING] = {"scope_missing", 403},
	[ERROR_NOT_FOUND] = {"not_found", 404},
	[ERROR_ROUTE_NOT_FOUND] = {"route_not_found", 404},
	[ERROR_TEMPLATE_NOT_FOUND] = {"template_not_found", 404},
	[ERROR_INTERPRETER_NOT_FOUND] = {"interpreter_not_found", 400},
	[ERROR_METHOD_NOT_ALLOWED] = {"method_not_allowed", 405},
	[ERROR_NAME_TAKEN] = {"name_taken", 409},
	[ERROR_NOT_RUNNING] = {"not_running", 409},
	[ERROR_STDIN_CLOSED] = {"stdin_closed", 409},
	[ERROR_NOT_READY] = {"not_ready", 409},
	[ERROR_IN_USE] = {"in_use", 409},
	[ERROR_DIGEST_MISMATCH] = {"digest_mismatch", 400},
	[ERROR_PAUSED] = {"paused", 409},
	[ERROR_INVALID_ARCHIVE] = {"invalid_archive", 400},
	[ERROR_INVALID_IMAGE] = {"invalid_image", 400},
	[ERROR_BUILD_FAILED] = {"build_failed", 422},
	[ERROR_BODY_TOO_LARGE] = {"body_too_large", 413},
	[ERROR_URI_TOO_LONG] = {"uri_too_long", 414},
	[ERROR_UNSUPPORTED_MEDIA_TYPE] = {"unsupported_media_type", 415},
	[ERROR_EXPECTATION_FAILED] = {"expectation_failed", 417},
	[ERROR_UPGRADE_REQUIRED] = {"upgrade_required", 426},
	[ERROR_HEADERS_TOO_LARGE] = {"headers_too_large", 431},
	[ERROR_QUOTA_EXCEEDED] = {"quota_exceeded", 429},
	[ERROR_RESOURCE_EXHAUSTED] = {"resource_exhausted", 503},
	[ERROR_REQUEST_TIMEOUT] = {"request_timeout", 408},
	[ERROR_PERMISSION_DENIED] = {"permission_denied", 403},
	[ERROR_IS_A_DIRECTORY] = {"is_a_directory", 400},
	[ERROR_NOT_A_DIRECTORY] = {"not_a_directory", 400},
	[ERROR_NOT_A_REGULAR_FILE] = {"not_a_regular_file", 400},
	[ERROR_NO_SPACE] = {"no_space", 507},
	[ERROR_ALREADY_EXISTS] = {"already_exists", 409},
	[ERROR_DIRECTORY_NOT_EMPTY] = {"directory_not_empty", 409},
	[ERROR_NAME_TOO_LONG] = {"name_too_long", 400},
	[ERROR_TOO_MANY_LINKS] = {"too_many_links", 400},
	[ERROR_READ_ONLY] = {"read_only", 403},
	[ERROR_NOT_SUPPORTED] = {"not_supported", 400},
	[ERROR_RANGE_NOT_SATISFIABLE] = {"range_not_satisfiable", 416},
	[ERROR_INTERNAL] = {"internal", 500},
	[ERROR_BOOT_FAILED] = {"boot_failed", 500},
	[ERROR_PORT_CLOSED] = {"port_closed", 502},
	[ERROR_BAD_GATEWAY] = {"bad_gateway", 502},
	[ERROR_UNAVAILABLE] = {"unavailable", 503},
	[ERROR_NOT_IMPLEMENTED] = {"not_implemented", 501},
	[ERROR_VERSION_NOT_SUPPORTED] = {"http_version_not_supported", 505},
};

const char *error_name(enum error_code code)
{
	return error_table[code].name;
}

int error_http_status(enum error_code code)
{
	return error_table[code].http;
}

enum error_code error_from_name(const char *name)
{
	for (int code = 0; code < ERROR_CODE_COUNT; code++)
		if (strcmp(error_table[code].name, name) == 0)
			return (enum error_code)code;
	return ERROR_INTERNAL;
}

__attribute__((format(printf, 4, 0))) static int error_vset(
	struct error *e, enum error_code code, const char *field, const char *format, va_list args)
{
	if (e) {
		e->code = code;
		snprintf(e->field, sizeof e->field, "%s", field ? field : "");
		vsnprintf(e->message, sizeof e->message, format, args);
	}
	return -1;
}

int error_set(struct error *e, enum error_code code, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	error_vset(e, code, NULL, format, args);
	va_end(args);
	return -1;
}

int error_set_field(
	struct error *e, enum error_code code, const char *field, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	error_vset(e, code, field, format, args);
	va_end(args);
	return -1;
}

static enum error_code error_code_of_errno(int err)
{
	switch (err) {
	case ENOENT:
		return ERROR_NOT_FOUND;
	case EACCES:
	case EPERM:
		return ERROR_PERMISSION_DENIED;
	case EROFS:
		return ERROR_READ_ONLY;
	case EEXIST:
		return ERROR_ALREADY_EXISTS;
	case ENOTEMPTY:
		return ERROR_DIRECTORY_NOT_EMPTY;
	case ENOTSUP:
		return ERROR_NOT_SUPPORTED;
	case EISDIR:
		return ERROR_IS_A_DIRECTORY;
	case ENOTDIR:
		return ERROR_NOT_A_DIRECTORY;
	case ENXIO:
	case ENODEV:
	case ETXTBSY:
		return ERROR_NOT_A_REGULAR_FILE;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return ERROR_NO_SPACE;
	case ENAMETOOLONG:
		return ERROR_NAME_TOO_LONG;
	case ELOOP:
	case EMLINK:
		return ERROR_TOO_MANY_LINKS;
	case EINVAL:
		return ERROR_INVALID_REQUEST;
	case EAGAIN:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return ERROR_RESOURCE_EXHAUSTED;
	default:
		return ERROR_INTERNAL;
	}
}

int error_set_errno(struct error *e, int err, const char *format, ...)
{
	err = abs(err);
	if (e) {
		va_list args;
		va_start(args, format);
		error_vset(e, error_code_of_errno(err), NULL, format, args);
		va_end(args);
		size_t used = strlen(e->message);
		snprintf(e->message + used, sizeof e->message - used, ": %s", strerror(err));
	}
	return -1;
}
