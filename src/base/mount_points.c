#include "base/mount_points.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"

/* The fifth field of a line, in which a space is "\\040" and the like. */
static void mount_points_add(struct buf *out, const char *line, size_t len)
{
	const char *end = line + len;
	for (int field = 0; field < 4 && line < end; line++)
		field += *line == ' ';
	for (; line < end && *line != ' '; line++) {
		char c = *line;
		if (c == '\\' && end - line > 3) {
			c = (char)((line[1] - '0') * 64 + (line[2] - '0') * 8 + (line[3] - '0'));
			line += 3;
		}
		buf_append_char(out, c);
	}
	buf_append_char(out, '\0');
}

void mount_points_parse(struct buf *out, const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		const char *newline = memchr(text + at, '\n', len - at);
		size_t line = newline ? (size_t)(newline - text) - at : len - at;
		mount_points_add(out, text + at, line);
		at += line + 1;
	}
}

int mount_points_read(struct buf *out)
{
	autobuf text = {0};
	int r = fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", &text, 16u << 20);
	if (r < 0)
		return r;
	mount_points_parse(out, text.data, text.len);
	return out->failed ? -ENOMEM : 0;
}

const char *mount_points_before(const struct buf *points, const char *point)
{
	const char *end = point ? point : points->data + points->len;
	if (end == points->data)
		return NULL;
	/* The byte before `end` is the zero of the path that is looked for. */
	for (end--; end > points->data && end[-1]; end--)
		;
	return end;
}

bool mount_point_holds(const char *point, const char *path)
{
	size_t len = strlen(point);
	if (strcmp(point, "/") == 0)
		return true;
	return strncmp(path, point, len) == 0 && (path[len] == '/' || path[len] == '\0');
}
