/* TRUST: certificates become trusted in a tree, the sandbox's own or one that will be a root. */
#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/trust_store.h"

int file_trust(const struct file_request *r, struct outcome *o)
{
	(void)o;
	autoclose int root =
		open(r->text[FILE_PATH], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0)
		return -errno;
	return trust_store_put(root, r->text[FILE_EXTRA], strlen(r->text[FILE_EXTRA]));
}
