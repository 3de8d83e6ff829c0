#include "egress/pins.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/mem.h"

struct pin {
	struct pin *prev, *next;
	struct address address;
	int64_t told_ms;
	char name[];
};

static bool pin_is(const struct pin *p, const char *name, const struct address *a)
{
	return address_is_equal(&p->address, a) && strcmp(p->name, name) == 0;
}

static void pin_drop(struct pins *pins, struct pin *p)
{
	DL_DELETE(pins->list, p);
	pins->count--;
	free(p);
}

void pins_add(struct pins *pins, const char *name, const struct address *a, int64_t now_ms)
{
	struct pin *p;
	DL_FOREACH (pins->list, p)
		if (pin_is(p, name, a))
			break;
	if (p) {
		p->told_ms = now_ms;
		DL_DELETE(pins->list, p);
		DL_PREPEND(pins->list, p);
		return;
	}
	if (pins->count >= PINS_MAX)
		pin_drop(pins, pins->list->prev); /* the last one */
	p = mem_new(sizeof *p + strlen(name) + 1);
	p->address = *a;
	p->told_ms = now_ms;
	memcpy(p->name, name, strlen(name) + 1);
	DL_PREPEND(pins->list, p);
	pins->count++;
}

bool pins_have(const struct pins *pins, const char *name, const struct address *a, int64_t now_ms)
{
	const struct pin *p;
	DL_FOREACH (pins->list, p)
		if (pin_is(p, name, a))
			return now_ms - p->told_ms < PIN_MS;
	return false;
}

const char *pins_find(const struct pins *pins, const struct address *a, int64_t now_ms,
	bool (*is)(void *arg, const char *name), void *arg)
{
	const struct pin *p;
	DL_FOREACH (pins->list, p)
		if (address_is_equal(&p->address, a) && now_ms - p->told_ms < PIN_MS &&
			is(arg, p->name))
			return p->name;
	return NULL;
}

void pins_finish(struct pins *pins)
{
	while (pins->list)
		pin_drop(pins, pins->list);
}
