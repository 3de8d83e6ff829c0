/*
 * Deletions are written first, so that their places are free when it is unpacked; then the files,
 * as they come. Directories and links are kept until the files are over, so that "files" has
 * nothing but files, as others expect it.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/tar_push.h"
#include "json/json.h"
#include "base/utf8.h"
#include "image/portable.h"

enum side {
	SIDE_DIRECTORIES,
	SIDE_LINKS,
	SIDE_HARD_LINKS,
	SIDE_COUNT
};

static const char *const side_names[SIDE_COUNT] = {[SIDE_DIRECTORIES] = "directories",
	[SIDE_LINKS] = "links",
	[SIDE_HARD_LINKS] = "hardLinks"};

static const char whiteout[] = ".wh.";

struct portable_writer {
	struct tar_push tar;
	struct json_writer json;
	struct buf sides[SIDE_COUNT];
	struct json_writer side_json[SIDE_COUNT];
	char *root;    /* without slashes around; "": everything */
	bool in_files; /* the deletions are over */
	bool in_file, ended;
	struct json_base64_rest rest;
};

struct portable_writer *portable_writer_new(const struct portable_head *head, struct buf *out)
{
	struct portable_writer *w = mem_new(sizeof *w);
	w->root = mem_copy_text(head->root + strspn(head->root, "/"));
	bool clean = tar_clean_path(w->root);
	assert(clean && "a request with '..' in its path is refused");
	(void)clean;
	w->json.out = out;
	for (int i = 0; i < SIDE_COUNT; i++)
		w->side_json[i].out = &w->sides[i];
	json_begin_object(&w->json);
	json_put_string(&w->json, "format", "bunker-sandbox");
	json_put_int(&w->json, "version", 1);
	json_put_int(&w->json, "takenAt", head->taken_ms);
	json_put_string(&w->json, "template", head->template_name);
	json_put_string(&w->json, "root", head->root);
	json_put_env(&w->json, "env", head->env, head->env_len);
	json_key(&w->json, "deleted");
	json_begin_array(&w->json);
	return w;
}

void portable_writer_free(struct portable_writer *w)
{
	if (!w)
		return;
	tar_push_finish(&w->tar);
	for (int i = 0; i < SIDE_COUNT; i++)
		buf_finish(&w->sides[i]);
	free(w->root);
	free(w);
}

/* ---- members ---- */

static void put_name(
	struct json_writer *w, const char *key, const char *key_of_bytes, const char *name)
{
	json_put_string(w, key, name);
	if (utf8_is_valid(name, strlen(name)))
		return;
	json_key(w, key_of_bytes);
	json_base64(w, name, strlen(name));
}

static void portable_write_begin_entry(
	struct json_writer *w, const struct tar_member *m, const char *path)
{
	char mode[8];
	snprintf(mode, sizeof mode, "%04o", m->mode & 07777);
	json_begin_object(w);
	put_name(w, "path", "pathBase64", path);
	if (m->type == '0' || m->type == '5')
		json_put_string(w, "mode", mode);
	json_put_int(w, "uid", m->uid);
	json_put_int(w, "gid", m->gid);
	json_put_int(w, "mtime", m->mtime_s * 1000 + m->mtime_ns / 1000000);
}

/* Below the root, without it; "." is the root itself. NULL: it is elsewhere. */
static const char *portable_write_relative(const struct portable_writer *w, const char *path)
{
	size_t len = strlen(w->root);
	if (len == 0)
		return path[0] ? path : ".";
	if (strncmp(path, w->root, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return NULL;
	return path[len] ? path + len + 1 : ".";
}

static void portable_write_put_link(struct portable_writer *w, enum side side,
	const struct tar_member *m, const char *path, const char *target)
{
	struct json_writer *json = &w->side_json[side];
	portable_write_begin_entry(json, m, path);
	put_name(json, "target", "targetBase64", target);
	json_end_object(json);
}

static int put_hard_link(
	struct portable_writer *w, struct tar_member *m, const char *path, struct error *e)
{
	const char *target =
		tar_clean_path(m->target.data) ? portable_write_relative(w, m->target.data) : NULL;
	if (!target)
		return error_set(e, ERROR_NOT_SUPPORTED,
			"'%.200s' is a hard link to a file that is not below the path", path);
	portable_write_put_link(w, SIDE_HARD_LINKS, m, path, target);
	return 0;
}

static void portable_write_put_directory(
	struct portable_writer *w, const struct tar_member *m, const char *path)
{
	portable_write_begin_entry(&w->side_json[SIDE_DIRECTORIES], m, path);
	json_end_object(&w->side_json[SIDE_DIRECTORIES]);
}

static void portable_write_begin_file(
	struct portable_writer *w, const struct tar_member *m, const char *path)
{
	struct json_writer *json = &w->json;
	portable_write_begin_entry(json, m, path);
	json_put_int(json, "size", (int64_t)m->size);
	json_put_string(json, "encoding", "base64");
	json_key(json, "contents");
	json_begin_base64(json);
	w->in_file = true;
}

static void portable_write_end_file(struct portable_writer *w)
{
	json_end_base64(&w->json, &w->rest);
	json_end_object(&w->json);
	w->in_file = false;
}

void portable_write_deleted(struct portable_writer *w, const char *path)
{
	const char *gone = portable_write_relative(w, path + 1);
	if (!gone || strcmp(gone, ".") == 0)
		return;
	json_begin_object(&w->json);
	put_name(&w->json, "path", "pathBase64", gone);
	json_end_object(&w->json);
}

/* A whiteout stands for a deletion, which was listed before. */
static bool portable_write_is_whiteout(const struct tar_member *m)
{
	const char *slash = strrchr(m->path.data, '/'), *name = slash ? slash + 1 : m->path.data;
	return !m->plain && strncmp(name, whiteout, sizeof whiteout - 1) == 0;
}

static int portable_write_take_member(struct portable_writer *w, struct error *e)
{
	struct tar_member *m = &w->tar.reader.member;
	if (!tar_clean_path(m->path.data))
		return error_set(e, ERROR_INTERNAL, "the disk has a path that cannot be");
	const char *path = portable_write_relative(w, m->path.data);
	if (!path || portable_write_is_whiteout(m))
		return 0;
	if (m->type == '0')
		portable_write_begin_file(w, m, path);
	else if (m->type == '1')
		return put_hard_link(w, m, path, e);
	else if (m->type == '2')
		portable_write_put_link(w, SIDE_LINKS, m, path, m->target.data);
	else if (m->type == '5')
		portable_write_put_directory(w, m, path);
	return 0;
}

static int check_sides(const struct portable_writer *w, struct error *e)
{
	for (int i = 0; i < SIDE_COUNT; i++) {
		if (w->sides[i].failed)
			return error_set(e, ERROR_UNAVAILABLE, "out of memory");
		if (w->sides[i].len > PORTABLE_SIDE_MAX)
			return error_set(e, ERROR_RESOURCE_EXHAUSTED,
				"\"%s\" would have more than %u MiB; export a snapshot instead",
				side_names[i], PORTABLE_SIDE_MAX >> 20);
	}
	return 0;
}

static void begin_files(struct portable_writer *w)
{
	if (w->in_files)
		return;
	w->in_files = true;
	json_end_array(&w->json);
	json_key(&w->json, "files");
	json_begin_array(&w->json);
}

int portable_write(struct portable_writer *w, const char *tar, size_t len, struct error *e)
{
	int step;
	begin_files(w);
	tar_push_add(&w->tar, tar, len);
	while ((step = tar_push_step(&w->tar)) != TAR_MORE && step != TAR_END) {
		if (step < 0)
			return error_set(e, ERROR_INTERNAL, "the disk could not be read");
		if (step == TAR_CONTENT && w->in_file)
			json_add_base64(&w->json, &w->rest, w->tar.piece, w->tar.piece_len);
		if (step == TAR_MEMBER &&
			(portable_write_take_member(w, e) < 0 || check_sides(w, e) < 0))
			return -1;
		if (w->in_file && w->tar.left == 0)
			portable_write_end_file(w);
	}
	w->ended = step == TAR_END;
	return 0;
}

int portable_write_end(struct portable_writer *w, struct error *e)
{
	if (!w->ended)
		return error_set(e, ERROR_INTERNAL, "the disk could not be read to its end");
	json_end_array(&w->json);
	for (int i = 0; i < SIDE_COUNT; i++) {
		json_key(&w->json, side_names[i]);
		json_begin_array(&w->json);
		if (w->sides[i].len > 0)
			json_raw_n(&w->json, w->sides[i].data, w->sides[i].len);
		json_end_array(&w->json);
	}
	json_end_object(&w->json);
	return 0;
}
