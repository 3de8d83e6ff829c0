#include "client/failure.h"

#include <stdarg.h>
#include <stdio.h>

int client_fail(struct bunker_error *e, const char *code, const char *format, ...)
{
	if (e) {
		*e = (struct bunker_error){0};
		snprintf(e->code, sizeof e->code, "%s", code);
		va_list args;
		va_start(args, format);
		vsnprintf(e->message, sizeof e->message, format, args);
		va_end(args);
	}
	return -1;
}
