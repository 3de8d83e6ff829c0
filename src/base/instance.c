#include "base/instance.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/id.h"

#define PLACE_SIZE 40

static bool read_instance(int data_fd, const char *place, char name[INSTANCE_SIZE])
{
	autobuf text = {0};
	char where[PLACE_SIZE], found[INSTANCE_SIZE];
	if (fd_read_file_at(data_fd, "instance", &text, 64) < 0)
		return false;
	buf_append_char(&text, '\0');
	if (text.failed || sscanf(text.data, "%39s %15s", where, found) != 2 || strlen(found) < 8 ||
		strspn(found, "-abcdefghijklmnopqrstuvwxyz0123456789") != strlen(found))
		return false;
	bool old = strspn(where, "0123456789") == strlen(where);
	snprintf(name, INSTANCE_SIZE, "%.3s%s%.11s", old ? where : "", old ? "-" : "", found);
	return old || strcmp(where, place) == 0;
}

int instance_take(int data_fd, char name[INSTANCE_SIZE])
{
	struct stat st = {0};
	char place[PLACE_SIZE], text[64], id[ID_SIZE];
	fstat(data_fd, &st);
	snprintf(place, sizeof place, "%jx:%jx", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	if (!read_instance(data_fd, place, name)) {
		id_generate(id);
		snprintf(name, INSTANCE_SIZE, "%.8s", id);
	}
	snprintf(text, sizeof text, "%s %s\n", place, name);
	return fd_keep_file_at(data_fd, "instance", text);
}
