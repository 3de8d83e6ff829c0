/*
 * Frames between the front and a sandbox's init, over stream sockets.
 *
 * The first frame of a connection says what it is for. ATTACH: the processes, of which the rest of
 * this file tells; it replaces an earlier one. WORKER: file work, by a process of init's with the
 * rights of one user, which is the other end from then on (wire/record.h). Init answers with
 * STARTED. SOCKET: nothing but further SOCKET frames follows; init answers each with one byte, an
 * errno or 0, and with 0 comes a TCP socket of the sandbox's network (SCM_RIGHTS), unconnected.
 *
 * A frame is a header of 24 bytes, little-endian, then `size` bytes of payload:
 *
 *     u32 size   u16 type   u16 stream   u64 tag   u64 offset
 *
 * `tag` names a process for as long as init remembers it. It is the front's signature under the
 * sandbox and the execution: a PROCESS whose tag does not fit names what this init was never given.
 * `offset` is the absolute position of the payload's first byte in its stream, counted from 0 at
 * the process's start.
 *
 * A process and its streams, as seen on the wire:
 *
 *     front → init   START (struct frame_start + strings), STDIN, STDIN_END, ACK, RESIZE, SIGNAL,
 *                    STOP, KILL, INSPECT, FORGET
 *     init → front   HELLO, one PROCESS per remembered process, READY; then STARTED, OUTPUT,
 *                    STDIN_ACK, STDIN_CLOSED, STATUS, EXIT
 *
 * Init keeps output until it is ACKed, in a ring of FRAME_RING bytes a stream; a full ring stops
 * reading, so the process waits. It sends at most FRAME_RING bytes beyond the last ACK, and the
 * front at most FRAME_RING bytes of stdin beyond the last STDIN_ACK. Init remembers a process that
 * has exited until FORGET, so that a new front finds its result. After a reconnect, output starts
 * again at the last ACK: the receiver drops what it has already; stdin goes on where the PROCESS
 * says it ended.
 *
 * EXIT waits for nobody who reads: it comes behind the output that may be sent, and says where each
 * stream ends. The rest of the output follows as it is ACKed.
 *
 * A process on a terminal has one stream, stdout; the end of its stdin is the terminal's
 * end-of-file character.
 *
 * Each side treats the other's frames as hostile: a frame that does not decode ends the connection.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define FRAME_VERSION       4u
#define FRAME_HEADER_SIZE   24u
#define FRAME_MAX_PAYLOAD   (512u * 1024)
#define FRAME_MAX_DATA      (64u * 1024) /* of OUTPUT and STDIN */
#define FRAME_RING          (256u * 1024)
#define FRAME_MAX_STRINGS   4096u
#define FRAME_EXECUTION_LEN 24
#define FRAME_MAX_RECORDS   2048u /* processes that init remembers */
#define FRAME_MAX_COMMAND   4096u /* how much of a process's arguments init remembers */
#define FRAME_MAX_TEXT      4096u /* of a user, a directory or a name, each with its NUL */
#define FRAME_MAX_USER      256u  /* of a WORKER's, with its NUL */
#define FRAME_MAX_SIDE      1000u /* rows or columns of a terminal */

enum frame_type {
	FRAME_START = 1,
	FRAME_STDIN,
	FRAME_STDIN_END,
	FRAME_ACK,
	FRAME_RESIZE,  /* offset: rows << 16 | columns */
	FRAME_SIGNAL,  /* offset: the signal's number; stream: enum frame_scope */
	FRAME_STOP,    /* SIGTERM for the whole tree; SIGKILL after offset milliseconds */
	FRAME_KILL,    /* SIGKILL for the main process and everything it started */
	FRAME_INSPECT, /* answered by STATUS, unless there is no such process any more */
	FRAME_FORGET,
	FRAME_PAUSE,  /* deadlines stand still from now on; answered by PAUSED */
	FRAME_RESUME, /* they go on, later by as much as they stood */
	FRAME_ATTACH,
	FRAME_WORKER, /* struct frame_worker, then the user's name with its NUL */
	FRAME_SOCKET, /* offset: 4 or 6, the version of IP */
	FRAME_LAST_OF_FRONT = FRAME_SOCKET,

	FRAME_HELLO = 64,
	FRAME_PROCESS,
	FRAME_READY,
	FRAME_STARTED,
	FRAME_OUTPUT,
	FRAME_STDIN_ACK,    /* offset: bytes handed to the process so far */
	FRAME_STDIN_CLOSED, /* the process reads no more: the rest is taken and dropped */
	FRAME_STATUS,
	FRAME_EXIT,
	FRAME_PAUSED,
	FRAME_LAST_OF_INIT = FRAME_PAUSED
};

enum frame_scope {
	FRAME_MAIN,
	FRAME_TREE /* the main process and everything it started */
};

enum frame_stream {
	FRAME_STDOUT,
	FRAME_STDERR,
	FRAME_STREAMS
};

struct frame_header {
	uint32_t size;
	uint16_t type;
	uint16_t stream;
	uint64_t tag;
	uint64_t offset;
};

enum frame_start_flags {
	FRAME_START_STDIN = 1,        /* stdin is a pipe; otherwise /dev/null */
	FRAME_START_OPEN_STDIN = 2,   /* writers come and go: a new front leaves stdin open */
	FRAME_START_TERMINAL = 4,     /* all three are a terminal of rows and columns */
	FRAME_START_PROMPT = 8,       /* the client waits for STARTED, so send it at once */
	FRAME_START_INTERPRETER = 16, /* stdin brings commands, stdout is a stream of packets */
	FRAME_START_FLAGS = 31
};

/*
 * The output of an interpreter: stdout, stderr and messages as packets on the one stream stdout, in
 * the order in which they were written. A packet is `u32 channel << 24 | length`, little-endian,
 * then the bytes. A packet always fits into a ring, so a stream that is acknowledged at packet
 * boundaries resumes with a whole packet.
 */
enum frame_channel {
	FRAME_CHANNEL_STDOUT,
	FRAME_CHANNEL_STDERR,
	FRAME_CHANNEL_MESSAGES,
	FRAME_CHANNELS,
	FRAME_CHANNEL_HEARD = FRAME_CHANNELS /* of an empty packet: a signal was passed on */
};

#define FRAME_PACKET_HEADER 4u
#define FRAME_PACKET_MAX    (32u * 1024)

/*
 * Payload of START: this, then NUL-terminated strings: user, cwd, name, argc arguments, envc
 * variables.
 */
struct frame_start {
	char execution[FRAME_EXECUTION_LEN];
	uint32_t flags;
	uint32_t kind;       /* the front's own word, given back in PROCESS */
	uint32_t open_files; /* RLIMIT_NOFILE; 0: as init has it */
	uint16_t rows, columns;
	uint32_t argc;
	uint32_t envc;
	uint64_t timeout_ms; /* 0: none */
};

/* A START as its receiver uses it; the pointers lead into the payload, the arrays are owned. */
struct start_request {
	struct frame_start fixed;
	const char *user;
	const char *cwd;   /* absolute, or below the user's home; "": that itself */
	const char *name;  /* the name that the caller gave; "": none */
	const char **argv; /* NULL-terminated */
	const char **envp; /* NULL-terminated */
};

/*
 * The mount point of the volume in a sandbox that serves its files, and the flag for a worker in
 * it.
 */
#define FRAME_VOLUME           "/volume"
#define FRAME_WORKER_IN_VOLUME 1u /* that is its root */

struct frame_worker {
	uint32_t open_files; /* RLIMIT_NOFILE; 0: as init has it */
	uint32_t flags;
};

enum frame_stage {
	FRAME_STAGE_NONE,
	FRAME_STAGE_RESOURCES, /* no process, pipe or cgroup could be had */
	FRAME_STAGE_USER,
	FRAME_STAGE_CWD,
	FRAME_STAGE_EXEC
};

struct frame_started {
	int32_t pid;
	int32_t stage; /* enum frame_stage; 0 when it runs */
	int32_t error; /* errno */
	int32_t unused;
};

enum frame_exit_flags {
	FRAME_EXIT_TIMED_OUT = 1,
	FRAME_EXIT_KILLED = 2, /* by FRAME_KILL */
	FRAME_EXIT_STOPPED = 4 /* after FRAME_STOP */
};

struct frame_exit {
	int32_t code;   /* exit status; -1 when a signal ended it */
	int32_t signal; /* 0 when it exited by itself */
	uint32_t flags;
	uint32_t max_rss_kib; /* of the largest process */
	uint64_t cpu_us;      /* of the whole tree */
	uint64_t duration_us;
	uint64_t end[FRAME_STREAMS]; /* total bytes of each stream; some may be still to come */
};

struct frame_hello {
	uint32_t version;
	uint32_t unused;
};

/* Payload of STATUS: this, then the main process's working directory with its NUL. */
struct frame_status {
	uint64_t cpu_us;    /* of the whole tree, by its cgroup */
	uint64_t memory;    /* resident bytes of the tree; shared pages count once per process */
	uint64_t peak;      /* resident bytes that the largest process had at most */
	uint32_t processes; /* in the tree */
	uint32_t state;     /* of the main process: a letter as in /proc; 0 once it has exited */
};

enum frame_process_flags {
	FRAME_PROCESS_INPUT_OPEN = 1, /* no STDIN_END has come, and the process still reads */
	FRAME_PROCESS_EXITED = 2      /* `exit` says how; EXIT comes, too */
};

/*
 * Payload of PROCESS: this, then user, cwd and name as START had them, then the arguments, as many
 * as fit into FRAME_MAX_COMMAND bytes.
 */
struct frame_process {
	char execution[FRAME_EXECUTION_LEN];
	int32_t pid;
	uint32_t start_flags;
	uint32_t kind;
	uint32_t flags;
	int64_t started_ms; /* wall clock */
	uint64_t timeout_ms;
	uint64_t acked[FRAME_STREAMS];
	uint64_t input_received; /* the next byte of stdin to send */
	uint64_t input_taken;
	struct frame_exit exit;
};

/* A PROCESS as its receiver uses it; the pointers lead into the payload. */
struct process_frame {
	struct frame_process fixed;
	const char *user, *cwd, *name;
	const char *command; /* each argument with its NUL */
	size_t command_len;
};

void frame_append(struct buf *out, enum frame_type type, unsigned stream, uint64_t tag,
	uint64_t offset, const void *payload, size_t size);

/*
 * The frame at the start of data: its full size with *header filled, 0 when more bytes are needed,
 * or -EPROTO when no valid frame starts like this.
 */
int64_t frame_decode(const char *data, size_t len, struct frame_header *header);

/* A payload of a fixed size, copied out; -EPROTO when the size is another one. */
int frame_payload(const struct frame_header *h, const char *payload, void *out, size_t size);

void frame_append_worker(struct buf *out, const struct frame_worker *worker, const char *user);
/* *user leads into the payload. */
int frame_decode_worker(
	const char *payload, size_t size, struct frame_worker *ret, const char **user);

int frame_encode_start(struct buf *out, uint64_t tag, const struct start_request *request);
int frame_decode_start(const char *payload, size_t size, struct start_request *ret);
void start_request_finish(struct start_request *request);
int frame_decode_process(const char *payload, size_t size, struct process_frame *ret);
int frame_decode_status(
	const char *payload, size_t size, struct frame_status *ret, const char **cwd);
