/*
 * Measures a disk, bytes on the medium and number of files, by looking at all of it. The tree is
 * hostile: the walk keeps one descriptor per level up to a depth, and goes no deeper; links are not
 * followed. Space for the sandbox's own file system layers is not counted.
 */
#include "keeper/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 512

static bool is_dot(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static bool measure_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

/* Takes the descriptor. */
static int measure_directory(int fd, unsigned depth, int64_t *bytes, int64_t *files)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	int r = 0;
	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	while (r == 0 && (entry = readdir(dir)) != NULL) {
		struct stat st;
		if (is_dot(entry->d_name) ||
			fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		*bytes += (int64_t)st.st_blocks * 512 /
			  (st.st_nlink > 1 && !S_ISDIR(st.st_mode) ? (int64_t)st.st_nlink : 1);
		if (!S_ISDIR(st.st_mode)) {
			*files += !measure_is_whiteout(&st);
			continue;
		}
		int sub = depth < DEPTH_MAX
				  ? openat(dirfd(dir), entry->d_name,
					    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
				  : -1;
		if (sub >= 0)
			r = measure_directory(sub, depth + 1, bytes, files);
	}
	closedir(dir);
	return r;
}

int measure_tree(int fd, int64_t *bytes, int64_t *files)
{
	static const char *const layers[] = {"root", "usr", "data"};
	*bytes = *files = 0;
	for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
		int layer = openat(fd, layers[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (layer < 0 && errno == ENOENT)
			continue;
		if (layer < 0)
			return -errno;
		int r = measure_directory(layer, 0, bytes, files);
		if (r < 0)
			return r;
	}
	return 0;
}
