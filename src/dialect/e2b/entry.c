#include "dialect/e2b/entry.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"

const char *entry_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

static const char *type_of(const struct file_entry *entry)
{
	if (S_ISREG(entry->mode))
		return "FILE_TYPE_FILE";
	if (S_ISDIR(entry->mode))
		return "FILE_TYPE_DIRECTORY";
	return "FILE_TYPE_UNSPECIFIED";
}

/* As Go writes a mode: "-rw-r--r--", "drwxr-xr-x", "Lrwxrwxrwx", "dtrwxrwxrwx". */
static void format_permissions(const struct file_entry *entry, char out[16])
{
	static const struct {
		unsigned mask, value;
		char letter;
	} kinds[] = {{S_IFMT, S_IFDIR, 'd'}, {S_IFMT, S_IFIFO, 'p'}, {S_IFMT, S_IFSOCK, 'S'},
		{S_IFMT, S_IFBLK, 'D'}, {S_IFMT, S_IFCHR, 'D'}, {S_ISUID, S_ISUID, 'u'},
		{S_ISGID, S_ISGID, 'g'}, {S_IFMT, S_IFCHR, 'c'}, {S_ISVTX, S_ISVTX, 't'}};
	bool is_link = entry->target[0] != '\0';
	char *p = out;
	if (is_link)
		*p++ = 'L';
	for (size_t i = 0; !is_link && i < sizeof kinds / sizeof kinds[0]; i++)
		if ((entry->mode & kinds[i].mask) == kinds[i].value)
			*p++ = kinds[i].letter;
	if (p == out)
		*p++ = '-';
	for (int bit = 8; bit >= 0; bit--)
		*p++ = is_link || entry->mode & 1u << bit ? "xwr"[bit % 3] : '-';
	*p = '\0';
}

static void e2b_entry_put_owner(
	struct json_writer *w, const char *key, const char *name, uint32_t number)
{
	char text[16];
	snprintf(text, sizeof text, "%u", number);
	json_put_string(w, key, name[0] ? name : text);
}

/* Whole numbers beyond 2^53 are strings in protobuf's JSON. */
static void put_int64(struct json_writer *w, const char *key, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	json_put_string(w, key, text);
}

/* A directory has blocks, as on the ext4 of E2B's sandboxes; on btrfs an empty one has no size. */
static uint64_t entry_size(const struct file_entry *entry)
{
	const uint64_t block = 4096;
	if (!S_ISDIR(entry->mode))
		return entry->size;
	return entry->size ? (entry->size + block - 1) / block * block : block;
}

void entry_begin(struct entry_writer *w, const struct file_entry *entry)
{
	char permissions[16];
	struct json_writer *json = w->json;
	bool leads_nowhere = S_ISLNK(entry->mode);
	entry_end(w);
	w->is_open = true;
	format_permissions(entry, permissions);
	json_begin_object(json);
	json_put_string(json, "name", entry_name(entry->path));
	json_put_string(json, "type", type_of(entry));
	json_put_string(json, "path", entry->path);
	put_int64(json, "size", entry_size(entry));
	json_put_int(json, "mode", leads_nowhere ? 0 : entry->mode & 07777);
	json_put_string(json, "permissions", permissions);
	e2b_entry_put_owner(json, "owner", entry->owner, entry->uid);
	e2b_entry_put_owner(json, "group", entry->group, entry->gid);
	json_put_time(json, "modifiedTime", entry->mtime_ns / 1000000);
	if (entry->target[0])
		json_put_string(json, "symlinkTarget", entry->target);
}

static const char *type_in_volume(const struct file_entry *entry)
{
	switch (entry->mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	default:
		return "unknown";
	}
}

void entry_begin_in_volume(struct entry_writer *w, const struct file_entry *entry)
{
	struct json_writer *json = w->json;
	entry_end(w);
	w->is_open = true;
	json_begin_object(json);
	json_put_string(json, "name", entry_name(entry->path));
	json_put_string(json, "type", type_in_volume(entry));
	json_put_string(json, "path", entry->path);
	json_put_int(
		json, "size", entry->size > INT64_MAX ? INT64_MAX : (int64_t)entry_size(entry));
	json_put_int(json, "mode", entry->mode & 07777);
	json_put_int(json, "uid", entry->uid);
	json_put_int(json, "gid", entry->gid);
	json_put_time(json, "atime", entry->atime_ns / 1000000);
	json_put_time(json, "mtime", entry->mtime_ns / 1000000);
	json_put_time(json, "ctime", entry->ctime_ns / 1000000);
	if (entry->target[0])
		json_put_string(json, "target", entry->target);
}

void entry_begin_written(struct entry_writer *w, const struct file_entry *entry)
{
	entry_end(w);
	w->is_open = true;
	json_begin_object(w->json);
	json_put_string(w->json, "path", entry->path);
	json_put_string(w->json, "name", entry_name(entry->path));
	json_put_string(w->json, "type", "file");
}

void entry_attribute(struct entry_writer *w, const struct file_attribute *attribute)
{
	size_t prefix = strlen(ENTRY_ATTRIBUTES);
	if (!w->is_open || strncmp(attribute->name, ENTRY_ATTRIBUTES, prefix) != 0)
		return;
	if (!w->has_metadata) {
		json_key(w->json, "metadata");
		json_begin_object(w->json);
	}
	w->has_metadata = true;
	json_key(w->json, attribute->name + prefix);
	json_string_n(w->json, attribute->value, attribute->len);
}

void entry_end(struct entry_writer *w)
{
	if (w->has_metadata)
		json_end_object(w->json);
	if (w->is_open)
		json_end_object(w->json);
	w->is_open = w->has_metadata = false;
}
