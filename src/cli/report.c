#include "cli/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int cli_report(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("bunker: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return -1;
}

void cli_report_error(const struct bunker_error *e)
{
	if (!strstr(e->message, e->field))
		cli_report("%s: %s (%s)", e->field, e->message, e->code);
	else
		cli_report("%s (%s)", e->message, e->code);
}
