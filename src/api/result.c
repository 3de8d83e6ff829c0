#include "api/result.h"

#include "api/encode.h"

#define READ_SIZE (1u << 20)

void respond_result(struct http_request *req, const struct execution_result *result)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	json_begin_object(&w);
	encode_execution(&w, result->view);
	encode_output(&w, "stdout", &result->output[0], result->base64);
	encode_output(&w, "stderr", &result->output[1], result->base64);
	json_put_string(&w, "encoding", result->base64 ? "base64" : "utf8");
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

void read_all_output(struct execution *x, struct buf output[EXECUTION_STREAMS])
{
	struct execution_watcher reader = {0};
	struct execution_view view;
	execution_view(x, &view);
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		while (reader.position[i] < view.stored[i] &&
			execution_read(x, &reader, i, READ_SIZE, &output[i]))
			;
}
