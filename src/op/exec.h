/* Commands: run to their end, started, or followed. */
#pragma once

#include "op/op.h"

enum op_exec_wants {
	OP_EXEC_STREAM, /* STARTED, OUTPUT as it comes, EXITED; a slow caller slows the command */
	OP_EXEC_RESULT, /* EXITED, then OUTPUT as far as it was kept */
	OP_EXEC_START,  /* STARTED as soon as it is queued */
	OP_EXEC_LAUNCH  /* STARTED once it runs, or has ended without having run */
};

/* If this is the sandbox's working directory, and no template comes with it, it is made. */
struct op_first {
	const char *workdir;
};

/* A command, and what has to be there before: each step only if it is asked for. */
struct op_exec {
	/* In a sandbox made for it, which does not outlive the call; NULL: in the call's. */
	const struct sandbox_spec *creates;
	struct execution_spec spec;
	enum op_exec_wants wants;
	bool exclusive;                /* OP_BUSY while another command runs */
	bool unique_name;              /* refused while something of its name runs there */
	const char *template_variable; /* of its environment: names the template; NULL: none */
	bool wakes;                    /* a sandbox that sleeps or is being made is waited for */
	const struct op_first *first;  /* before the first command of all; NULL: nothing */
	const struct file_spec *files;
	size_t file_count;
	size_t piece; /* of output, at most; 0: 64 KiB */
	bool unpaced; /* of a stream: output beyond what is kept is left out, not waited for */
	bool needs_program; /* OP_NO_PROGRAM, instead of an exit, if that does not exist */
};
struct op *op_exec(const struct op_call *call, const struct op_exec *request);

/*
 * Attaches to a command that runs or has ended: tells its output and takes stdin, signals and
 * sizes.
 */
struct op_attach {
	struct execution_ref process;
	bool among_ended;         /* by pid or name: also find a process that has ended */
	enum op_exec_wants wants; /* a stream; or a result, as it is now if it still runs */
	int64_t wait_ms;          /* of a result: for the end, at most */
	uint64_t position[EXECUTION_STREAMS];
	bool from_end[EXECUTION_STREAMS]; /* the position counts back from what there is now */
	/*
	 * Field to name in the error if the position is behind the end of an ended stream; or NULL.
	 */
	const char *checked[EXECUTION_STREAMS];
	bool where_left; /* instead: from where the callers before have stopped */
	bool ignores[EXECUTION_STREAMS];
	bool stops; /* at the end of what there is now */
	size_t piece;
};
struct op *op_attach(const struct op_call *call, const struct op_attach *request);
