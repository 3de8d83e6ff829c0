#include "box/files/trust_put.h"

#include <stdlib.h>

#include "base/mem.h"
#include "box/files/files.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"

struct trust_call {
	void (*done)(void *arg, const struct error *e);
	void *arg;
};

static void trust_put_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct trust_call call = *(struct trust_call *)arg;
	(void)result;
	free(arg);
	call.done(call.arg, e);
}

void trust_put(struct sandbox *s, const char *section,
	void (*done)(void *arg, const struct error *e), void *arg)
{
	static const struct file_events events = {.done = trust_put_done};
	struct file_request request = {
		.fixed = {.op = FILE_TRUST},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = "/", [FILE_EXTRA] = section},
	};
	struct trust_call *call = mem_new(sizeof *call);
	struct error e;
	*call = (struct trust_call){done, arg};
	if (file_begin_at_boot(s, "root", &request, &events, call, &e) == 0)
		return;
	free(call);
	box_answer_later(s->box, done, arg, &e);
}
