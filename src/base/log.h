/*
 * Structured logs on stderr, one line each: time, level, message, then key=value pairs. Values are
 * quoted and control bytes escaped, so that nothing from the network can forge a line.
 */
#pragma once

#include <stdbool.h>

enum log_level {
	LOG_ERROR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG
};

void log_set_level(enum log_level level);
/* Returns whether the level is logged, so that callers can skip formatting values. */
bool log_is_enabled(enum log_level level);
/* Names the process in each log line: "front", "warden". The string is borrowed for good. */
void log_set_process(const char *name);

/* Logs a message, followed by pairs of const char * key and value, closed by NULL. */
void log_write(enum log_level level, const char *message, ...) __attribute__((sentinel));
/* A formatted value for log_write, valid for the full expression it stands in. */
const char *log_format(char *scratch, unsigned long size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define log_num(n)     log_format((char[24]){0}, 24, "%lld", (long long)(n))
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__, (const char *)NULL)
#define log_warn(...)  log_write(LOG_WARN, __VA_ARGS__, (const char *)NULL)
#define log_info(...)  log_write(LOG_INFO, __VA_ARGS__, (const char *)NULL)
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__, (const char *)NULL)
