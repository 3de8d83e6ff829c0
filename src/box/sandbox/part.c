#include "box/sandbox/part.h"

#include "box/sandbox/object.h"

bool sandbox_parts_frame(struct sandbox *s, const struct frame_header *h, const char *payload)
{
	for (const struct sandbox_part *const *p = s->box->parts; *p; p++)
		if ((*p)->frame && (*p)->frame(s, h, payload))
			return true;
	return false;
}

void sandbox_parts_ended(struct sandbox *s, bool failed, const struct error *e)
{
	for (const struct sandbox_part *const *p = s->box->parts; *p; p++)
		if ((*p)->ended)
			(*p)->ended(s, failed, e);
}

void sandbox_parts_awake(struct sandbox *s)
{
	for (const struct sandbox_part *const *p = s->box->parts; *p; p++)
		if ((*p)->awake)
			(*p)->awake(s);
}

void sandbox_parts_refused(struct sandbox *s, const struct error *e)
{
	for (const struct sandbox_part *const *p = s->box->parts; *p; p++)
		if ((*p)->refused)
			(*p)->refused(s, e);
}

void sandbox_parts_destroyed(struct sandbox *s)
{
	for (const struct sandbox_part *const *p = s->box->parts; *p; p++)
		if ((*p)->destroyed)
			(*p)->destroyed(s);
}

void sandbox_parts_free(struct sandbox *s)
{
	for (const struct sandbox_part *const *p = s->box->parts; *p; p++)
		if ((*p)->free)
			(*p)->free(s);
}

void sandbox_parts_interpreter_found(struct sandbox *s, struct execution *x)
{
	for (const struct sandbox_part *const *p = s->box->parts; *p; p++)
		if ((*p)->interpreter_found)
			(*p)->interpreter_found(x);
}
