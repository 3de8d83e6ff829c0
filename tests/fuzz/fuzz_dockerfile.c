/*
 * Dockerfiles from arbitrary bytes: whatever they are, there is a plan or an error with a sentence.
 *
 * clang -fsanitize=fuzzer,address,undefined; libFuzzer finds LLVMFuzzerTestOneInput.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/dockerfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static void check_step(const struct dockerfile_step *step)
{
	if (step->line < 1 || !step->text ||
		(step->kind == DOCKERFILE_RUN && (!step->argv || !step->argv[0])) ||
		(step->kind == DOCKERFILE_COPY && (!step->path || !step->sources[0])) ||
		(step->kind == DOCKERFILE_ENV && !step->env) ||
		(step->kind == DOCKERFILE_WORKDIR && !step->path[0]) ||
		(step->kind == DOCKERFILE_USER && !step->user[0]))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const char *const args[] = {"A=1", "B=two words", NULL};
	static const char *const env[] = {"PATH=/bin", NULL};
	autoscratch memory = {0};
	struct dockerfile file;
	struct dockerfile_plan plan;
	struct dockerfile_error e = {0};
	if (dockerfile_read((const char *)input, size, args, &memory, &file, &e) < 0 ||
		dockerfile_plan(&file, env, &memory, &plan, &e) < 0) {
		if (!e.message[0])
			abort();
		return 0;
	}
	for (size_t i = 0; i < plan.step_count; i++)
		check_step(&plan.steps[i]);
	return 0;
}
