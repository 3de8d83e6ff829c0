/* Sandboxes as JSON: out of a server, and into one. */
#include "base/cleanup.h"
#include "bunker.h"
#include "client/call.h"
#include "client/sandbox.h"

int bunker_export(struct bunker *b, const char *id, const char *path, bunker_data_fn *data,
	void *arg, struct bunker_error *e)
{
	autobuf target = {0};
	client_append_sandbox_path(&target, id, "/export");
	client_call_append_query(&target, "path", path);
	return client_call_bytes(b, &target, "application/json", data, arg, e);
}

int bunker_import(struct bunker *b, const struct bunker_create_options *options,
	bunker_read_fn *read, void *arg, struct bunker_sandbox *ret, struct bunker_error *e)
{
	autobuf target = {0};
	cJSON *tree;
	buf_append_str(&target, "/v1/sandboxes/import");
	client_call_append_query(&target, "name", options->name);
	client_call_append_query(&target, "template", options->template_name);
	client_call_append_query(&target, "description", options->description);
	client_call_append_query(&target, "project", options->project);
	int r = client_call_upload(b, "POST", &target, "application/json", read, arg, &tree, e);
	return r < 0 ? r : client_decode_sandbox(tree, ret, e);
}

int bunker_snapshot_export_json(
	struct bunker *b, const char *ref, bunker_data_fn *data, void *arg, struct bunker_error *e)
{
	autobuf target = {0};
	buf_append_str(&target, "/v1/snapshots/");
	client_call_append_escaped(&target, ref);
	buf_append_str(&target, "/export?format=json");
	return client_call_bytes(b, &target, "application/json", data, arg, e);
}
