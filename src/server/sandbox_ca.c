#include "server/sandbox_ca.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/trust_store.h"
#include "box/sandbox/certificate.h"

#define FILE_SIZE_MAX (256u * 1024)

static int read_file(const char *path, struct buf *entries, struct error *e)
{
	autobuf pem = {0};
	int r = fd_read_file_at(AT_FDCWD, path, &pem, FILE_SIZE_MAX);
	if (r < 0)
		return error_set_errno(e, r, "--sandbox-ca: cannot read %s", path);
	return certificates_read(pem.data ? pem.data : "", pem.len, path, entries, e);
}

static int is_certificate(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');
	return dot && strcmp(dot, ".crt") == 0;
}

/* As update-ca-certificates takes them. */
static int read_directory(struct buf *entries)
{
	struct dirent **names;
	int count = 0, found = scandir(SANDBOX_CA_DIRECTORY, &names, is_certificate, alphasort);
	for (int i = 0; i < found; i++) {
		char path[sizeof SANDBOX_CA_DIRECTORY + 1 + sizeof names[i]->d_name];
		struct error e;
		snprintf(path, sizeof path, "%s/%s", SANDBOX_CA_DIRECTORY, names[i]->d_name);
		int r = read_file(path, entries, &e);
		if (r < 0)
			log_warn("a CA of this host is not given to sandboxes", "error", e.message);
		else
			count += r;
		free(names[i]);
	}
	if (found >= 0)
		free(names);
	return count;
}

int sandbox_ca_load(struct sandbox_ca *ca, const char *file, struct error *e)
{
	autobuf entries = {0}, section = {0};
	int count = !file ? read_directory(&entries) : file[0] ? read_file(file, &entries, e) : 0;
	if (count < 0)
		return -1;
	trust_store_frame(&section, &entries);
	buf_append_char(&entries, '\0');
	buf_append_char(&section, '\0');
	ca->count = count;
	ca->entries = buf_take_str(&entries);
	ca->section = buf_take_str(&section);
	return ca->entries && ca->section ? 0 : error_set_errno(e, ENOMEM, "--sandbox-ca");
}

void sandbox_ca_finish(struct sandbox_ca *ca)
{
	free(ca->entries);
	free(ca->section);
	*ca = (struct sandbox_ca){0};
}
