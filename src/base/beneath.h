/*
 * Paths below a directory that lead nowhere else, whatever links are on the way: for names that
 * come from strangers. The kernel looks them up, so there is no moment between a check and a use.
 */
#pragma once

enum beneath_links {
	BENEATH_STAYS,  /* a link that leads out ends the way, with -EXDEV */
	BENEATH_IS_ROOT /* the directory is the root of every link */
};

/* "" is the directory itself; flags as for open, which is always with O_CLOEXEC. */
int beneath_open(int top, const char *path, int flags, enum beneath_links links);
/* Opens a directory with O_PATH, creating missing components with mode 0755. */
int beneath_make(int top, const char *path, enum beneath_links links);
