#include "base/deflate.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define WINDOW        32768u
#define INPUT         8192u
#define CODE_MAX      15 /* bits of the longest code */
#define FAST_BITS     9
#define LITERALS      288
#define DISTANCES     32
#define LENGTHS       19
#define END_OF_BLOCK  256
#define FIRST_LENGTH  257
#define LITERALS_USED 286 /* the others exist in the fixed code only */
#define DISTANCE_USED 30

/*
 * A prefix code. Codes of up to FAST_BITS are looked up: symbol << 4 | bits. Longer ones are found
 * by their number among those of their length, in the order of the symbols.
 */
struct code {
	uint16_t fast[1 << FAST_BITS];
	uint16_t count[CODE_MAX + 1];
	uint16_t symbols[LITERALS];
};

struct expansion {
	const struct deflate_io *io;
	int error; /* the first */
	unsigned char input[INPUT];
	size_t input_at, input_len;
	uint64_t bits;
	unsigned bit_count;
	unsigned char window[WINDOW];
	size_t window_at; /* how much of it is not written yet */
	uint64_t total, limit;
	struct code literals, distances;
};

static int deflate_fail(struct expansion *x, int error)
{
	if (!x->error)
		x->error = error;
	return -1;
}

/* ---- bits, the lowest first ---- */

static void deflate_refill(struct expansion *x)
{
	while (x->bit_count <= 48 && !x->error) {
		if (x->input_at == x->input_len) {
			ssize_t n = x->io->read(x->io->arg, x->input, sizeof x->input);
			if (n < 0)
				deflate_fail(x, (int)n);
			if (n <= 0)
				return;
			x->input_len = (size_t)n;
			x->input_at = 0;
		}
		x->bits |= (uint64_t)x->input[x->input_at++] << x->bit_count;
		x->bit_count += 8;
	}
}

static void deflate_drop(struct expansion *x, unsigned count)
{
	x->bits >>= count;
	x->bit_count -= count;
}

/* 0 after a failure, which is seen at the end. */
static unsigned deflate_take(struct expansion *x, unsigned count)
{
	if (x->bit_count < count)
		deflate_refill(x);
	if (x->bit_count < count) {
		deflate_fail(x, -EBADMSG);
		return 0;
	}
	unsigned value = (unsigned)(x->bits & ((UINT64_C(1) << count) - 1));
	deflate_drop(x, count);
	return value;
}

/* ---- codes ---- */

static unsigned deflate_reversed(unsigned code, unsigned len)
{
	unsigned r = 0;
	for (; len > 0; len--, code >>= 1)
		r = r << 1 | (code & 1);
	return r;
}

static void fill_fast(struct code *c, const uint8_t *lengths, size_t n)
{
	unsigned next[CODE_MAX + 2] = {0};
	memset(c->fast, 0, sizeof c->fast);
	for (unsigned len = 1; len <= CODE_MAX; len++)
		next[len + 1] = (next[len] + c->count[len]) << 1;
	for (size_t i = 0; i < n; i++) {
		unsigned len = lengths[i];
		if (len == 0 || len > FAST_BITS)
			continue;
		unsigned at = deflate_reversed(next[len]++, len);
		for (; at < 1u << FAST_BITS; at += 1u << len)
			c->fast[at] = (uint16_t)(i << 4 | len);
	}
}

/* A code must be complete; one of a single bit may have one symbol only, if that is allowed. */
static int deflate_build(struct code *c, const uint8_t *lengths, size_t n, bool may_be_single)
{
	uint16_t offsets[CODE_MAX + 2] = {0};
	int left = 1;
	unsigned longest = 0;
	memset(c->count, 0, sizeof c->count);
	for (size_t i = 0; i < n; i++)
		c->count[lengths[i]]++;
	c->count[0] = 0;
	for (unsigned len = 1; len <= CODE_MAX; len++) {
		left = left * 2 - c->count[len];
		if (left < 0)
			return -1;
		if (c->count[len])
			longest = len;
		offsets[len + 1] = (uint16_t)(offsets[len] + c->count[len]);
	}
	if (left > 0 && longest > 0 && (!may_be_single || longest != 1))
		return -1;
	for (size_t i = 0; i < n; i++)
		if (lengths[i])
			c->symbols[offsets[lengths[i]]++] = (uint16_t)i;
	fill_fast(c, lengths, n);
	return 0;
}

/* A code that is longer than the table's: its first bit is the highest. */
static int decode_long(struct expansion *x, const struct code *c)
{
	unsigned code = 0, first = 0, index = 0;
	for (unsigned len = 1; len <= CODE_MAX && len <= x->bit_count; len++) {
		code = code << 1 | (unsigned)(x->bits >> (len - 1) & 1);
		if (code - first < c->count[len]) {
			deflate_drop(x, len);
			return c->symbols[index + code - first];
		}
		index += c->count[len];
		first = (first + c->count[len]) << 1;
	}
	return deflate_fail(x, -EBADMSG);
}

static int deflate_decode(struct expansion *x, const struct code *c)
{
	if (x->bit_count < CODE_MAX)
		deflate_refill(x);
	unsigned found = c->fast[x->bits & ((1u << FAST_BITS) - 1)];
	unsigned len = found & 15;
	if (len == 0)
		return decode_long(x, c);
	if (len > x->bit_count)
		return deflate_fail(x, -EBADMSG);
	deflate_drop(x, len);
	return (int)(found >> 4);
}

/* ---- output ---- */

static int deflate_flush(struct expansion *x)
{
	int r = x->window_at ? x->io->write(x->io->arg, x->window, x->window_at) : 0;
	x->window_at = 0;
	return r < 0 ? deflate_fail(x, r) : 0;
}

static int deflate_put(struct expansion *x, unsigned char byte)
{
	if (x->total == x->limit)
		return deflate_fail(x, -EBADMSG);
	x->total++;
	x->window[x->window_at++] = byte;
	return x->window_at == WINDOW ? deflate_flush(x) : 0;
}

/* The source may overlap the bytes being written: distance can be smaller than len. */
static int deflate_repeat(struct expansion *x, unsigned distance, unsigned len)
{
	if (distance > x->total)
		return deflate_fail(x, -EBADMSG);
	for (; len > 0; len--)
		if (deflate_put(x, x->window[(x->window_at - distance) & (WINDOW - 1)]) < 0)
			return -1;
	return 0;
}

/* ---- blocks ---- */

static int expand_stored(struct expansion *x)
{
	deflate_drop(x, x->bit_count & 7);
	unsigned len = deflate_take(x, 16), complement = deflate_take(x, 16);
	if (x->error || (len ^ complement) != 0xffff)
		return deflate_fail(x, -EBADMSG);
	for (; len > 0 && !x->error; len--) {
		unsigned byte = deflate_take(x, 8);
		if (!x->error)
			deflate_put(x, (unsigned char)byte);
	}
	return x->error ? -1 : 0;
}

static unsigned deflate_take_length(struct expansion *x, unsigned symbol)
{
	static const uint16_t base[] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35,
		43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
	static const uint8_t extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3,
		4, 4, 4, 4, 5, 5, 5, 5, 0};
	return base[symbol] + deflate_take(x, extra[symbol]);
}

/* Two symbols share each number of extra bits. */
static unsigned take_distance(struct expansion *x, unsigned symbol)
{
	if (symbol < 4)
		return symbol + 1;
	unsigned extra = symbol / 2 - 1;
	return ((2 + (symbol & 1)) << extra) + 1 + deflate_take(x, extra);
}

static int expand_coded(struct expansion *x)
{
	while (!x->error) {
		int symbol = deflate_decode(x, &x->literals);
		if (symbol < 0 || symbol == END_OF_BLOCK)
			break;
		if (symbol < END_OF_BLOCK) {
			deflate_put(x, (unsigned char)symbol);
			continue;
		}
		if (symbol >= LITERALS_USED)
			return deflate_fail(x, -EBADMSG);
		unsigned len = deflate_take_length(x, (unsigned)symbol - FIRST_LENGTH);
		int distance = x->error ? -1 : deflate_decode(x, &x->distances);
		if (distance < 0 || distance >= DISTANCE_USED)
			return deflate_fail(x, -EBADMSG);
		unsigned back = take_distance(x, (unsigned)distance);
		if (!x->error)
			deflate_repeat(x, back, len);
	}
	return x->error ? -1 : 0;
}

static int expand_fixed(struct expansion *x)
{
	uint8_t lengths[LITERALS];
	memset(lengths, 8, 144);
	memset(lengths + 144, 9, 112);
	memset(lengths + 256, 7, 24);
	memset(lengths + 280, 8, 8);
	deflate_build(&x->literals, lengths, LITERALS, false);
	memset(lengths, 5, DISTANCES);
	deflate_build(&x->distances, lengths, DISTANCES, false);
	return expand_coded(x);
}

/* 16 repeats the length before it, 17 and 18 stand for many zeros. */
static int take_lengths(struct expansion *x, uint8_t *lengths, size_t count)
{
	for (size_t n = 0; n < count;) {
		int symbol = deflate_decode(x, &x->literals);
		if (symbol < 0 || (symbol == 16 && n == 0))
			return deflate_fail(x, -EBADMSG);
		if (symbol < 16) {
			lengths[n++] = (uint8_t)symbol;
			continue;
		}
		uint8_t value = symbol == 16 ? lengths[n - 1] : 0;
		unsigned times = symbol == 16   ? 3 + deflate_take(x, 2)
				 : symbol == 17 ? 3 + deflate_take(x, 3)
						: 11 + deflate_take(x, 7);
		if (x->error || times > count - n)
			return deflate_fail(x, -EBADMSG);
		memset(lengths + n, value, times);
		n += times;
	}
	return 0;
}

static int expand_dynamic(struct expansion *x)
{
	static const uint8_t order[LENGTHS] = {
		16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
	uint8_t lengths[LITERALS + DISTANCES] = {0};
	unsigned literals = deflate_take(x, 5) + 257, distances = deflate_take(x, 5) + 1,
		 count = deflate_take(x, 4) + 4;
	if (x->error || literals > LITERALS_USED || distances > DISTANCE_USED)
		return deflate_fail(x, -EBADMSG);
	for (unsigned i = 0; i < count; i++)
		lengths[order[i]] = (uint8_t)deflate_take(x, 3);
	if (x->error || deflate_build(&x->literals, lengths, LENGTHS, false) < 0)
		return deflate_fail(x, -EBADMSG);
	memset(lengths, 0, sizeof lengths);
	if (take_lengths(x, lengths, literals + distances) < 0)
		return -1;
	if (lengths[END_OF_BLOCK] == 0 ||
		deflate_build(&x->literals, lengths, literals, true) < 0 ||
		deflate_build(&x->distances, lengths + literals, distances, true) < 0)
		return deflate_fail(x, -EBADMSG);
	return expand_coded(x);
}

int deflate_expand(const struct deflate_io *io, uint64_t limit)
{
	static int (*const kinds[])(struct expansion * x) = {
		expand_stored, expand_fixed, expand_dynamic};
	autofree struct expansion *x = calloc(1, sizeof *x);
	if (!x)
		return -ENOMEM;
	x->io = io;
	x->limit = limit;
	bool last = false;
	while (!last && !x->error) {
		last = deflate_take(x, 1);
		unsigned kind = deflate_take(x, 2);
		if (x->error || kind >= ARRAY_LEN(kinds))
			deflate_fail(x, -EBADMSG);
		else
			kinds[kind](x);
	}
	if (!x->error)
		deflate_flush(x);
	return x->error;
}
