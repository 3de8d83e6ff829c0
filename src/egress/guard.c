/*
 * The addresses that nothing connects to. The operator may declare local ranges to be public
 * (--public-networks), or open them to lists that name them (--private-networks); loopback,
 * link-local, metadata and multicast addresses, and those that are this host's own, stay closed
 * whatever anybody says.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "egress/egress.h"

/*
 * The kernel's own view: an address that packets would leave from is this host's. Connecting a UDP
 * socket sends nothing. An address without a route is refused, too: what is told to a sandbox is to
 * be reachable.
 */
static bool is_own_or_unreachable(const struct address *a)
{
	struct sockaddr_storage to, from = {0};
	const struct address_port target = {*a, 9};
	struct address_port source;
	socklen_t len = address_to_socket(&target, &to), from_len = sizeof from;
	autoclose int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, len) < 0 ||
		getsockname(fd, (struct sockaddr *)&from, &from_len) < 0 ||
		!address_from_socket(&from, &source))
		return true;
	return address_is_equal(&source.address, a);
}

static bool is_declared_public(const struct address *a)
{
	for (uint32_t i = 0; i < egress.config.public_count; i++)
		if (address_is_in(a, &egress.config.public_ranges[i]))
			return true;
	return false;
}

bool guard_allows(const struct client *c, const struct address *a, uint16_t port)
{
	enum address_class class = address_classify(a);
	if (class == ADDRESS_NEVER || (class == ADDRESS_LOCAL && !is_declared_public(a) &&
					      !policy_opens(&c->policy, &egress.config, a, port)))
		return false;
	return !is_own_or_unreachable(a);
}
