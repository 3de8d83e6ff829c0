#include "cli/ask.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool cli_ask(const char *format, ...)
{
	char answer[16] = "";
	va_list args;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs(" [y/N] ", stderr);
	if (!fgets(answer, sizeof answer, stdin))
		fputc('\n', stderr);
	answer[strcspn(answer, "\n")] = '\0';
	return strcmp(answer, "y") == 0 || strcmp(answer, "Y") == 0 || strcmp(answer, "yes") == 0;
}
