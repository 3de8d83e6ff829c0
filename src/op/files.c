/* File work: a call of box/files/files.h, told as events, with the caller's pace. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "box/disk/volume.h"
#include "box/files/expand.h"
#include "op/files.h"
#include "op/op_core.h"

#define ROOT "0"

struct files_op {
	struct op op;
	struct file_call *call; /* NULL: it has ended, or did not begin */
	struct expand *expand;  /* NULL: what is put goes to the call as it is */
	bool file_ends;         /* with what is expanded */
	char *owner;            /* of files that are put without one; NULL: the worker's user */
};

/* ---- what the core tells ---- */

static void files_emit(struct files_op *f, const struct op_event *event)
{
	if (op_emit(&f->op, event) && f->op.paused)
		file_pause(f->call);
}

static void files_entry(void *arg, const struct file_entry *entry)
{
	files_emit(arg, &(struct op_event){.kind = OP_ENTRY, .entry = entry});
}

static void files_content(void *arg, uint64_t length, uint64_t offset)
{
	files_emit(arg, &(struct op_event){.kind = OP_CONTENT, .content = {length, offset}});
}

static void files_data(void *arg, struct buf *bytes)
{
	files_emit(arg, &(struct op_event){.kind = OP_DATA, .data = bytes});
}

static void files_match(void *arg, const struct file_match *match)
{
	files_emit(arg, &(struct op_event){.kind = OP_MATCH, .match = match});
}

static void files_change(void *arg, const struct file_change *change)
{
	files_emit(arg, &(struct op_event){.kind = OP_CHANGE, .change = change});
}

static void files_attribute(void *arg, const struct file_attribute *attribute)
{
	files_emit(arg, &(struct op_event){.kind = OP_ATTRIBUTE, .attribute = attribute});
}

static void files_ready(void *arg)
{
	files_emit(arg, &(struct op_event){.kind = OP_READY});
}

static void files_notice(void *arg, const struct file_notice *notice)
{
	files_emit(arg, &(struct op_event){.kind = OP_NOTICE, .notice = notice});
}

/* About the other direction: told whether or not the caller is paused. */
static void files_tell_room(void *arg)
{
	struct files_op *f = arg;
	f->op.event(f->op.arg, &(struct op_event){.kind = OP_ROOM});
}

static void files_has_room(void *arg)
{
	struct files_op *f = arg;
	if (f->expand)
		expand_call_has_room(f->expand);
	else
		files_tell_room(f);
}

static void files_expanded(void *arg, const struct error *e)
{
	struct files_op *f = arg;
	expand_close(take_ptr(f->expand));
	if (e) {
		file_cancel(take_ptr(f->call));
		op_fail(&f->op, OP_ERROR, e);
		return;
	}
	if (f->file_ends)
		file_put_done(f->call);
	file_put_end(f->call);
}

static void files_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct files_op *f = arg;
	f->call = NULL;
	op_done(&f->op,
		&(struct op_event){.kind = e ? OP_FAILED : OP_DONE, .error = e, .result = *result});
}

/* ---- what the caller does ---- */

static void files_resume(struct op *op)
{
	struct files_op *f = (struct files_op *)op;
	file_resume(f->call);
}

static void files_release(struct op *op, enum op_end end)
{
	struct files_op *f = (struct files_op *)op;
	(void)end;
	expand_close(f->expand);
	if (f->call)
		file_cancel(f->call);
	free(f->owner);
}

static void files_put_target(const struct files_op *f, const struct file_target *given)
{
	struct file_target target = *given;
	if (!target.owner)
		target.owner = f->owner;
	file_put_target(f->call, &target);
}

/* False: it is not about compressed bytes. */
static bool files_put_compressed(struct files_op *f, const struct op_item *item)
{
	if (item->kind == OP_ITEM_DATA)
		expand_write(f->expand, item->bytes.data, item->bytes.len);
	else if (item->kind == OP_ITEM_FILE_END)
		f->file_ends = true;
	else if (item->kind == OP_ITEM_END)
		expand_end(f->expand);
	else
		return false;
	return true;
}

static void files_put(struct op *op, const struct op_item *item)
{
	struct file_call *c = ((struct files_op *)op)->call;
	if (((struct files_op *)op)->expand && files_put_compressed((struct files_op *)op, item))
		return;
	switch (item->kind) {
	case OP_ITEM_FILE:
		files_put_target((struct files_op *)op, &item->target);
		break;
	case OP_ITEM_LENGTH:
		file_put_length(c, item->length);
		break;
	case OP_ITEM_DATA:
		file_put_data(c, item->bytes.data, item->bytes.len);
		break;
	case OP_ITEM_ATTRIBUTE:
		file_put_attribute(
			c, item->attribute.name, item->attribute.value, item->attribute.len);
		break;
	case OP_ITEM_FILE_END:
		file_put_done(c);
		break;
	case OP_ITEM_END:
		file_put_end(c);
		break;
	default:
		break;
	}
}

static size_t files_room(const struct op *op)
{
	const struct files_op *f = (const struct files_op *)op;
	return f->expand ? expand_room(f->expand) : file_room(f->call);
}

/* ---- the begin ---- */

#define FILES_TYPE(title, changing)                                                                \
	{                                                                                          \
		.name = "files." title, .changes = (changing), .resume = files_resume,             \
		.release = files_release, .put = files_put, .room = files_room, .early = true      \
	}

static const struct op_type types[FILE_OP_END] = {
	[FILE_READ] = FILES_TYPE("read", false),
	[FILE_WRITE] = FILES_TYPE("write", true),
	[FILE_STAT] = FILES_TYPE("stat", false),
	[FILE_LIST] = FILES_TYPE("list", false),
	[FILE_MKDIR] = FILES_TYPE("mkdir", true),
	[FILE_MOVE] = FILES_TYPE("move", true),
	[FILE_COPY] = FILES_TYPE("copy", true),
	[FILE_REMOVE] = FILES_TYPE("remove", true),
	[FILE_CHMOD] = FILES_TYPE("chmod", true),
	[FILE_CHOWN] = FILES_TYPE("chown", true),
	[FILE_SYMLINK] = FILES_TYPE("symlink", true),
	[FILE_FIND] = FILES_TYPE("find", false),
	[FILE_GREP] = FILES_TYPE("grep", false),
	[FILE_REPLACE] = FILES_TYPE("replace", true),
	[FILE_ATTRIBUTES] = FILES_TYPE("attributes", true),
	[FILE_PACK] = FILES_TYPE("pack", false),
	[FILE_UNPACK] = FILES_TYPE("unpack", true),
	[FILE_WATCH] = FILES_TYPE("watch", false),
	[FILE_ROOT] = FILES_TYPE("root", true),
	[FILE_TRUST] = FILES_TYPE("trust", true),
};

static const struct file_events files_events = {
	.entry = files_entry,
	.content = files_content,
	.data = files_data,
	.match = files_match,
	.change = files_change,
	.attribute = files_attribute,
	.ready = files_ready,
	.notice = files_notice,
	.room = files_has_room,
	.done = files_done,
};

static const struct expand_events expand_events = {files_tell_room, files_expanded};

static int begin_in_volume(struct files_op *f, const struct file_request *request, struct error *e)
{
	struct volume *v = op_volume(&f->op, e);
	return v ? volume_file_begin(v, request, &files_events, f, &f->call, e) : -1;
}

char *op_root_cwd(const struct sandbox *s, const char *user)
{
	struct sandbox_view view;
	struct buf home = {0};
	sandbox_view(s, &view);
	if (!user && view.workdir[0])
		return mem_copy_text(view.workdir);
	buf_append_str(&home, "~");
	buf_append_str(&home, user ? user : view.user);
	return buf_take_str(&home);
}

int op_make_home(struct sandbox *s, const char *home, const struct file_events *events, void *arg,
	struct file_call **ret, struct error *e)
{
	struct sandbox_view view;
	sandbox_view(s, &view);
	const struct file_request mkdir = {
		.fixed = {.op = FILE_MKDIR,
			.flags = FILE_PARENTS | FILE_EXIST_OK | FILE_HAS_MODE,
			.mode = 0755},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = home, [FILE_OWNER] = view.user},
	};
	return file_begin(s, ROOT, &mkdir, events, arg, ret, e);
}

static int begin_as_root(
	struct files_op *f, struct sandbox *s, const struct op_files *request, struct error *e)
{
	struct file_request full = request->request;
	struct sandbox_view view;
	sandbox_view(s, &view);
	f->owner = mem_copy_text(request->user ? request->user : view.user);
	autofree char *cwd = op_root_cwd(s, request->user);
	full.text[FILE_CWD] = cwd;
	if (full.fixed.op == FILE_MKDIR || full.fixed.op == FILE_MOVE)
		full.text[FILE_OWNER] = f->owner;
	return file_begin(s, ROOT, &full, &files_events, f, &f->call, e);
}

static int begin_in_sandbox(
	struct files_op *f, struct sandbox *s, const struct op_files *request, struct error *e)
{
	if (request->as_root)
		return begin_as_root(f, s, request, e);
	return file_begin(s, request->user, &request->request, &files_events, f, &f->call, e);
}

struct op *op_files(const struct op_call *call, const struct op_files *request)
{
	struct sandbox *s;
	struct op *op =
		op_new(call, &types[request->request.fixed.op], sizeof(struct files_op), &s);
	struct files_op *f = (struct files_op *)op;
	if (op->failed)
		return op;
	int r = s ? begin_in_sandbox(f, s, request, &op->failure)
		  : begin_in_volume(f, &request->request, &op->failure);
	op->failed = r < 0;
	op_has_begun(op);
	if (!op->failed && request->compression != OP_PLAIN)
		f->expand = expand_new(call->ops->loop,
			request->compression == OP_GZIP ? CODEC_GUNZIP : CODEC_EXPAND, f->call,
			&expand_events, f);
	return op;
}
