#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

static enum log_level log_level_now = LOG_INFO;
static const char *log_process = "bunker";

bool log_is_enabled(enum log_level level)
{
	return level <= log_level_now;
}

void log_set_level(enum log_level level)
{
	log_level_now = level;
}

void log_set_process(const char *name)
{
	log_process = name;
}

const char *log_format(char *scratch, unsigned long size, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(scratch, size, format, args);
	va_end(args);
	return scratch;
}

static void log_append_value(struct buf *line, const char *value)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "-_./:@+,%";
	if (value[0] && strspn(value, plain) == strlen(value)) {
		buf_append_str(line, value);
		return;
	}
	buf_append_char(line, '"');
	for (const unsigned char *p = (const unsigned char *)value; *p; p++) {
		if (*p == '"' || *p == '\\')
			buf_printf(line, "\\%c", *p);
		else if (*p < 0x20 || *p >= 0x7f)
			buf_printf(line, "\\x%02x", *p);
		else
			buf_append_char(line, (char)*p);
	}
	buf_append_char(line, '"');
}

void log_write(enum log_level level, const char *message, ...)
{
	static const char *const names[] = {"error", "warn", "info", "debug"};
	if (level > log_level_now)
		return;
	autobuf line = {0};
	char now[RFC3339_SIZE];
	clock_format_rfc3339(clock_wall_ms(), now);
	buf_printf(&line, "%s %s %s: %s", now, names[level], log_process, message);
	va_list args;
	va_start(args, message);
	const char *key;
	while ((key = va_arg(args, const char *)) != NULL) {
		const char *value = va_arg(args, const char *);
		buf_printf(&line, " %s=", key);
		log_append_value(&line, value ? value : "");
	}
	va_end(args);
	buf_append_char(&line, '\n');
	if (!line.failed && write(STDERR_FILENO, line.data, line.len) < 0)
		return; /* stderr cannot be written to, and there is no other place to report it */
}
