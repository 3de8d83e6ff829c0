/* Many small files at once, with all of their content there: what a create, an exec or a dialect
 * brings along. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "box/files/files.h"
#include "base/mem.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"

struct writing {
	struct box *box;
	void (*done)(void *arg, const struct error *e);
	void *arg;
};

static void file_written(void *arg, const struct file_entry *entry)
{
	(void)arg;
	(void)entry;
}

/* Adds to the error which file it was. */
static void files_write_written(void *arg, const struct file_result *result, const struct error *e)
{
	struct writing *w = arg;
	struct error named;
	if (e && e->field[0] == '\0') {
		named = *e;
		snprintf(named.field, sizeof named.field, "files[%llu]",
			(unsigned long long)result->count);
		e = &named;
	}
	w->done(w->arg, e);
	free(w);
}

void files_write(struct sandbox *s, const struct files_owner *owner, const struct file_spec *files,
	size_t count, void (*done)(void *arg, const struct error *e), void *arg)
{
	static const struct file_events events = {
		.entry = file_written, .done = files_write_written};
	struct file_request request = {
		.fixed.op = FILE_WRITE,
		.text = {[FILE_CWD] = owner->cwd, [FILE_PATH] = count ? files[0].path : ""},
	};
	struct error e;
	struct file_call *call;
	struct writing *w = mem_new(sizeof *w);
	*w = (struct writing){s->box, done, arg};
	if (file_begin(s, owner->user, &request, &events, w, &call, &e) < 0) {
		box_answer_later(s->box, done, arg, &e);
		free(w);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		struct file_target target = {
			.path = files[i].path,
			.flags = FILE_PARENTS | (files[i].has_mode ? FILE_HAS_MODE : 0),
			.mode = files[i].mode,
		};
		file_put_target(call, &target);
		file_put_length(call, files[i].len);
		file_put_data(call, files[i].content, files[i].len);
		file_put_done(call);
	}
	file_put_end(call);
}
