/*
 * Archives are made and taken apart inside the sandbox; here they are compressed, by threads and a
 * step at a time (box/files/codec.h). A codec stands between the caller and the file work: it is
 * resumed and paused by the one and resumes and pauses the other, so that at most one piece waits
 * on each side of it. Expanding is op_files' own.
 */
#include "op/archive.h"

#include "box/files/codec.h"
#include "op/files.h"
#include "op/op_core.h"

struct archive_op {
	struct op op;
	struct file_call *file; /* NULL: it has ended, or did not begin */
	struct codec *codec;    /* NULL: it has ended, or did not begin */
	bool codec_hungry;
};

static void archive_let_go(struct archive_op *x)
{
	if (x->file)
		file_cancel(x->file);
	if (x->codec)
		codec_close(x->codec);
	x->file = NULL;
	x->codec = NULL;
}

static void archive_release(struct op *op, enum op_end end)
{
	(void)end;
	archive_let_go((struct archive_op *)op);
}

static void op_archive_fail(struct archive_op *x, const struct error *e)
{
	archive_let_go(x);
	op_fail(&x->op, OP_ERROR, e);
}

/* ---- down ---- */

static void op_archive_pack_content(void *arg, uint64_t length, uint64_t offset)
{
	(void)arg;
	(void)length;
	(void)offset;
}

/* Comes only when the codec is hungry. */
static void op_archive_pack_data(void *arg, struct buf *bytes)
{
	struct archive_op *x = arg;
	file_pause(x->file);
	x->codec_hungry = false;
	codec_push(x->codec, bytes);
}

static void op_archive_pack_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct archive_op *x = arg;
	(void)result;
	x->file = NULL;
	if (e)
		op_archive_fail(x, e);
	else if (x->codec_hungry)
		codec_finish(x->codec);
}

static void packed_hungry(void *arg)
{
	struct archive_op *x = arg;
	x->codec_hungry = true;
	if (x->file)
		file_resume(x->file);
	else
		codec_finish(x->codec);
}

static void packed_data(void *arg, struct buf *bytes)
{
	struct archive_op *x = arg;
	if (op_emit(&x->op, &(struct op_event){.kind = OP_DATA, .data = bytes}) && x->op.paused)
		codec_pause(x->codec);
}

static void packed_ended(void *arg, const struct error *e)
{
	struct archive_op *x = arg;
	if (e)
		op_archive_fail(x, e);
	else
		op_done(&x->op, &(struct op_event){.kind = OP_DONE});
}

static void pack_resume(struct op *op)
{
	codec_resume(((struct archive_op *)op)->codec);
}

static struct op *pack_coded(const struct op_call *call, const char *user,
	const struct file_request *request, enum codec_kind kind)
{
	static const struct op_type type = {
		"files.pack", .resume = pack_resume, .release = archive_release, .early = true};
	static const struct file_events file_events = {.content = op_archive_pack_content,
		.data = op_archive_pack_data,
		.done = op_archive_pack_done};
	static const struct codec_events codec_events = {packed_data, packed_hungry, packed_ended};
	struct sandbox *s;
	struct archive_op *x = (struct archive_op *)op_new(call, &type, sizeof *x, &s);
	struct op *op = &x->op;
	if (op->failed)
		return op;
	op->failed = file_begin(s, user, request, &file_events, x, &x->file, &op->failure) < 0;
	op_has_begun(op);
	if (op->failed)
		return op;
	file_pause(x->file);
	x->codec = codec_new(call->ops->loop, kind, &codec_events, x);
	return op;
}

struct op *op_pack(const struct op_call *call, const struct op_pack *request)
{
	static const enum codec_kind kinds[] = {[ARCHIVE_GZIP] = CODEC_GZIP,
		[ARCHIVE_ZSTD] = CODEC_ZSTD,
		[ARCHIVE_ZIP] = CODEC_ZIP};
	struct file_request pack = {
		.fixed = {.op = FILE_PACK, .flags = request->coding == ARCHIVE_ZIP ? FILE_ZIP : 0}};
	pack.text[FILE_PATH] = request->path;
	pack.text[FILE_CWD] = request->cwd;
	if (request->coding == ARCHIVE_PLAIN)
		return op_files(call, &(struct op_files){.user = request->user, .request = pack});
	return pack_coded(call, request->user, &pack, kinds[request->coding]);
}

struct op *op_unpack(const struct op_call *call, const struct op_unpack *request)
{
	struct file_request unpack = {.fixed = {.op = FILE_UNPACK, .flags = request->flags}};
	unpack.text[FILE_PATH] = request->path;
	unpack.text[FILE_CWD] = request->cwd;
	return op_files(call,
		&(struct op_files){.user = request->user,
			.request = unpack,
			.compression = request->flags & FILE_ZIP ? OP_PLAIN : OP_ANY_COMPRESSION});
}
