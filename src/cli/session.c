#include "cli/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cli/autostart.h"
#include "cli/report.h"
#include "client/transport.h"

#define DEFAULT_DATA "/var/lib/bunker"
#define KEY_FILE_MAX 4096
#define START_WITH   "start one with: sudo bunker serve"

static const char *session_setting(const char *option, const char *variable, const char *otherwise)
{
	if (option)
		return option;
	const char *value = getenv(variable);
	return value && *value ? value : otherwise;
}

static const char *session_url(const struct arguments *args)
{
	return session_setting(args->url, "BUNKER_URL", BUNKER_DEFAULT_URL);
}

char *cli_session_data_path(const char *name)
{
	autobuf path = {0};
	buf_printf(&path, "%s/%s", session_setting(NULL, "BUNKER_DATA", DEFAULT_DATA), name);
	return buf_take_str(&path);
}

static bool is_loopback(const struct transport_url *url)
{
	return strncmp(url->host, "127.", 4) == 0 || strcmp(url->host, "::1") == 0 ||
	       strcmp(url->host, "localhost") == 0;
}

/* Where a server that we start would listen. */
static bool is_default(const struct transport_url *url)
{
	struct transport_url standard;
	return client_transport_parse_url(BUNKER_DEFAULT_URL, &standard, NULL) == 0 &&
	       is_loopback(url) && strcmp(url->port, standard.port) == 0 && !*url->prefix;
}

bool cli_session_is_dead(const char *url)
{
	struct bunker *b;
	struct bunker_error e;
	struct bunker_health health;
	if (bunker_open(&b, url, NULL, &e) < 0)
		return false;
	int r = bunker_health(b, &health, &e);
	bunker_close(b);
	if (r == 0)
		bunker_health_finish(&health);
	return r < 0 && strcmp(e.code, BUNKER_NO_SERVER) == 0;
}

static int read_key_file(const char *url, char **ret)
{
	autobuf content = {0};
	autofree char *path = cli_session_data_path("api-key");
	if (!path)
		return cli_report("out of memory");
	int r = fd_read_file_at(AT_FDCWD, path, &content, KEY_FILE_MAX);
	if (r == 0) {
		*ret = buf_take_str(&content);
		if (!*ret)
			return cli_report("out of memory");
		(*ret)[strcspn(*ret, "\r\n")] = '\0';
		return 0;
	}
	if (cli_session_is_dead(url))
		return cli_report("no server at %s; " START_WITH, url);
	return cli_report(
		"cannot read the local server's key %s: %s; %s, or give the key with --api-key "
		"or BUNKER_API_KEY",
		path, strerror(-r),
		r == -EACCES ? "use sudo" : "set BUNKER_DATA to the server's data directory");
}

static int find_key(const struct arguments *args, const char *url, bool is_local, char **ret)
{
	const char *key = session_setting(args->api_key, "BUNKER_API_KEY", NULL);
	if (!key && is_local)
		return read_key_file(url, ret);
	if (!key)
		return cli_report("%s needs a key: give it with --api-key or BUNKER_API_KEY", url);
	*ret = strdup(key);
	return *ret ? 0 : cli_report("out of memory");
}

int cli_session_open(const struct arguments *args, enum session_start start, struct bunker **ret)
{
	const char *url = session_url(args);
	struct transport_url parsed;
	struct bunker_error e;
	autofree char *key = NULL;
	if (client_transport_parse_url(url, &parsed, &e) < 0) {
		cli_report_error(&e);
		return -1;
	}
	/* Before the key: it is the first server that makes the key file. */
	if (start == SESSION_STARTS_SERVER && is_default(&parsed) && cli_session_is_dead(url) &&
		cli_autostart_server(url) < 0)
		return -1;
	if (find_key(args, url, is_loopback(&parsed), &key) < 0)
		return -1;
	if (bunker_open(ret, url, key, &e) < 0) {
		cli_report_error(&e);
		return -1;
	}
	bunker_set_patience(*ret, SESSION_PATIENCE_S);
	return 0;
}

int cli_session_resolve(const struct arguments *args, char **url, char **key)
{
	const char *given = session_url(args);
	struct transport_url parsed;
	struct bunker_error e;
	if (client_transport_parse_url(given, &parsed, &e) < 0) {
		cli_report_error(&e);
		return -1;
	}
	if (find_key(args, given, is_loopback(&parsed), key) < 0)
		return -1;
	*url = strdup(given);
	if (!*url)
		return cli_report("out of memory");
	for (size_t len = strlen(*url); len > 0 && (*url)[len - 1] == '/'; len--)
		(*url)[len - 1] = '\0';
	return 0;
}

bool cli_session_await(struct bunker *b, const struct bunker_error *e)
{
	const struct timespec pause = {.tv_nsec = 200000000};
	int64_t deadline_us = clock_monotonic_us() + SESSION_PATIENCE_S * 1000000LL;
	struct bunker_health health;
	if (strcmp(e->code, BUNKER_CONNECTION_LOST) != 0)
		return false;
	while (clock_monotonic_us() < deadline_us) {
		nanosleep(&pause, NULL);
		if (bunker_health(b, &health, NULL) == 0) {
			bunker_health_finish(&health);
			return true;
		}
	}
	return false;
}

void cli_session_report(const struct arguments *args, const struct bunker_error *e)
{
	const char *url = session_url(args);
	struct transport_url parsed;
	if (strcmp(e->code, BUNKER_NO_SERVER) == 0 &&
		client_transport_parse_url(url, &parsed, NULL) == 0 && is_loopback(&parsed))
		cli_report("no server at %s; " START_WITH, url);
	else
		cli_report_error(e);
}
