#include "box/sandbox/trust.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trust_store.h"
#include "box/sandbox/certificate.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"

/* One put under way. */
struct trusting {
	struct sandbox *sandbox;
	sandbox_done_fn *done;
	void *arg;
};

static bool has_operators(const struct sandbox *s)
{
	const char *operators = s->box->config.sandbox_ca;
	return operators && operators[0];
}

bool trust_is_extended(const struct sandbox *s)
{
	return s->trust.own || has_operators(s);
}

bool trust_is_needed(const struct sandbox *s)
{
	return s->trust.own || (has_operators(s) && s->root[0]);
}

char *trust_section(const struct sandbox *s)
{
	autobuf entries = {0}, section = {0};
	if (has_operators(s))
		buf_append_str(&entries, s->box->config.sandbox_ca);
	if (s->trust.own)
		buf_append_str(&entries, s->trust.own);
	trust_store_frame(&section, &entries);
	buf_require(&section);
	return section.len ? buf_take_str(&section) : mem_copy_text("");
}

/* ---- writing ---- */

static void trust_written(void *arg, const struct error *e)
{
	struct trusting t = *(struct trusting *)arg;
	if (e)
		log_warn("certificates could not be added to those that a sandbox trusts",
			"sandbox", t.sandbox->id, "error", e->message);
	free(arg);
	t.done(t.arg, NULL);
}

void trust_renew(struct sandbox *s, sandbox_done_fn *done, void *arg)
{
	autofree char *section = trust_section(s);
	struct trusting *t = mem_new(sizeof *t);
	*t = (struct trusting){s, done, arg};
	s->trust.late = false;
	s->box->hooks->put_trust(s, section, trust_written, t);
}

static int trust_take_own(struct sandbox *s, const char *pem, struct error *e)
{
	autobuf entries = {0};
	if (pem && certificates_read(pem, strlen(pem), "the sandbox's CA", &entries, e) < 0)
		return -1;
	free(s->trust.own);
	s->trust.own = pem ? buf_take_str(&entries) : NULL;
	return 0;
}

void trust_apply(struct sandbox *s, const char *own_pem, sandbox_done_fn *done, void *arg)
{
	struct error e;
	bool had_own = s->trust.own != NULL;
	if (trust_take_own(s, own_pem, &e) < 0)
		box_answer_later(s->box, done, arg, &e);
	else if (!trust_is_needed(s) && !had_own)
		box_answer_later(s->box, done, arg, NULL);
	else if (s->pause.frozen) {
		s->trust.late = true;
		box_answer_later(s->box, done, arg, NULL);
	} else
		trust_renew(s, done, arg);
}

/* ---- the sandbox's life ---- */

static void trust_ignore(void *arg, const struct error *e)
{
	(void)arg;
	(void)e;
}

static void trust_awake(struct sandbox *s)
{
	if (s->trust.late)
		trust_renew(s, trust_ignore, NULL);
}

static void trust_free(struct sandbox *s)
{
	free(s->trust.own);
}

const struct sandbox_part trust_part = {.awake = trust_awake, .free = trust_free};
