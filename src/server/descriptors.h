/*
 * Who may have how many of the front's descriptors, so that nobody can use up those of others:
 *
 *     its own    an eighth, at most 1,536: database, spool files, uploads of archives, the pool
 *     refused    connections that are only told so: an eighth, at most 64
 *     clients    connections: --max-connections, but not more than half of the rest
 *     sandboxes  what is left: inits and file workers; one tenant may have half of these
 */
#pragma once

struct descriptor_plan {
	unsigned refused, clients, sandboxes, tenant;
};

/* Raises the limit as far as this process may, and divides it. */
void descriptors_plan(unsigned max_connections, struct descriptor_plan *out);
