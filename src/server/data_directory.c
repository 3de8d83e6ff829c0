/* Prepares the data directory: makes and resolves it, and opens it enough for the front. */
#include "server/data_directory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The front has no privilege: it must be able to walk to its own directory below. */
static int data_check_reachable(const char *data, struct error *e)
{
	char path[DATA_PATH_MAX + 1];
	for (const char *slash = strchr(data, '/'); slash; slash = strchr(slash + 1, '/')) {
		struct stat st;
		if (slash == data)
			continue;
		snprintf(path, sizeof path, "%.*s", (int)(slash - data), data);
		if (stat(path, &st) < 0 || !(st.st_mode & S_IXOTH))
			return error_set(e, ERROR_PERMISSION_DENIED,
				"the data directory %s cannot be reached by processes without privilege: %s is "
				"closed to others (chmod o+x)",
				data, path);
	}
	return 0;
}

int data_directory_open(const char *data, char ret[DATA_PATH_MAX + 1], struct error *e)
{
	char resolved[4096];
	if (mkdir(data, 0711) < 0 && errno != EEXIST)
		return error_set_errno(e, errno, "cannot make the data directory %s", data);
	if (!realpath(data, resolved))
		return error_set_errno(e, errno, "cannot use the data directory %s", data);
	if (strlen(resolved) > DATA_PATH_MAX)
		return error_set(e, ERROR_INVALID_REQUEST,
			"the data directory's path is longer than %d bytes: %s", DATA_PATH_MAX,
			resolved);
	memcpy(ret, resolved, strlen(resolved) + 1);
	if (data_check_reachable(ret, e) < 0)
		return -1;
	if (chmod(ret, 0711) < 0)
		return error_set_errno(e, errno, "cannot set the mode of %s", ret);
	return 0;
}
