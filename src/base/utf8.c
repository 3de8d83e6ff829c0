#include "base/utf8.h"

#include <string.h>

size_t utf8_char_len(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	size_t n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	/* The second byte's range rules out overlong forms, surrogates and the far end. */
	unsigned char min = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
	unsigned char max = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
	if (len < n || p[1] < min || p[1] > max)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

bool utf8_is_valid(const char *text, size_t len)
{
	size_t n = 1;
	for (; len > 0 && n > 0; text += n, len -= n)
		n = utf8_char_len(text, len);
	return n > 0;
}

size_t utf8_incomplete_tail(const char *data, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char c = (unsigned char)data[len - back];
		if ((c & 0xc0) == 0x80)
			continue;
		size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
		return need > back ? back : 0;
	}
	return 0;
}

void utf8_join(struct utf8_rest *rest, const char *data, size_t len, struct buf *out)
{
	size_t begin = out->len;
	buf_append(out, rest->bytes, rest->len);
	buf_append(out, data, len);
	if (out->failed)
		return;
	rest->len = utf8_incomplete_tail(out->data + begin, out->len - begin);
	out->len -= rest->len;
	memcpy(rest->bytes, out->data + out->len, rest->len);
}
