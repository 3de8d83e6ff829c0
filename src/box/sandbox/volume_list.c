/* The volumes that a sandbox mounts, as text for its row: a line of id, mode and path for each. */
#include "box/sandbox/volume_list.h"

#include <stdio.h>
#include <string.h>

#include "box/sandbox/object.h"

void volumes_pack(const struct warden_volume volumes[WARDEN_VOLUMES_MAX], struct buf *out)
{
	for (size_t i = 0; i < WARDEN_VOLUMES_MAX && volumes[i].id[0]; i++)
		buf_printf(out, "%s %c %s\n", volumes[i].id, volumes[i].read_only ? 'r' : 'w',
			volumes[i].path);
	buf_append_char(out, '\0');
}

void volumes_unpack(const char *text, struct warden_volume ret[WARDEN_VOLUMES_MAX])
{
	for (size_t i = 0; i < WARDEN_VOLUMES_MAX && *text; i++) {
		char mode;
		if (sscanf(text, "%20s %c %127s", ret[i].id, &mode, ret[i].path) != 3 ||
			!id_is_valid(ret[i].id)) {
			ret[i] = (struct warden_volume){0};
			return;
		}
		ret[i].read_only = mode == 'r';
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
}
