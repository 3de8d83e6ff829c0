/*
 * Files as envd describes them (EntryInfo), written as the core tells of them: an entry, then its
 * attributes, of which those below "user.e2b." are its metadata.
 */
#pragma once

#include "model/file.h"
#include "json/json.h"

#define ENTRY_ATTRIBUTES "e2b." /* below "user." */
/* What entries are asked for with. */
#define ENTRY_FLAGS (FILE_WITH_NAMES | FILE_WITH_ATTRIBUTES | FILE_RESOLVED)

struct entry_writer {
	struct json_writer *json;
	bool is_open, has_metadata;
};

/* In Connect's JSON. */
void entry_begin(struct entry_writer *w, const struct file_entry *entry);
/* As volumes describe theirs (VolumeEntryStat). */
void entry_begin_in_volume(struct entry_writer *w, const struct file_entry *entry);
/* In the shorter form that uploads are answered with. */
void entry_begin_written(struct entry_writer *w, const struct file_entry *entry);
void entry_attribute(struct entry_writer *w, const struct file_attribute *attribute);
/* Fine if none was begun. */
void entry_end(struct entry_writer *w);

/* Where the path ends: "b" of "/a/b". */
const char *entry_name(const char *path);
