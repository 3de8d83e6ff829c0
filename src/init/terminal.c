/*
 * Pseudo-terminals of the sandbox's own /dev/pts. Init keeps the master; the process gets the slave
 * as its three descriptors and as its controlling terminal. Neither is opened by a name that
 * somebody inside could have replaced: ptmx is checked by its number, the slave comes from the
 * master.
 */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

#define TTY_GID 5

static int open_master(void)
{
	struct stat st;
	autoclose int fd =
		open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(5, 2))
		return -ENODEV;
	return take_fd(&fd);
}

int terminal_open(unsigned rows, unsigned columns, uid_t owner, int *master, int *slave)
{
	int unlocked = 0;
	autoclose int ours = open_master();
	if (ours < 0)
		return ours;
	if (ioctl(ours, TIOCSPTLCK, &unlocked) < 0)
		return -errno;
	autoclose int theirs = ioctl(ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (theirs < 0)
		return -errno;
	/* The owner may open the terminal again by its name. */
	if (fchown(theirs, owner, TTY_GID) < 0)
		return -errno;
	/* Its editing of a line knows that characters may be of several bytes. */
	struct termios t;
	if (tcgetattr(theirs, &t) == 0) {
		t.c_iflag |= IUTF8;
		tcsetattr(theirs, TCSANOW, &t);
	}
	terminal_resize(ours, rows, columns);
	*master = take_fd(&ours);
	*slave = take_fd(&theirs);
	return 0;
}

void terminal_resize(int master, unsigned rows, unsigned columns)
{
	struct winsize size = {.ws_row = (unsigned short)(rows ? rows : 24),
		.ws_col = (unsigned short)(columns ? columns : 80)};
	ioctl(master, TIOCSWINSZ, &size);
}

char terminal_end_character(int master)
{
	struct termios t;
	return tcgetattr(master, &t) == 0 && t.c_cc[VEOF] ? (char)t.c_cc[VEOF] : '\004';
}
