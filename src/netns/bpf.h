/* BPF without a library: instructions as initializers, and the system call. */
#pragma once

#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OP(code_, dst, src, off_, imm_)                                                            \
	{                                                                                          \
		.code = (code_), .dst_reg = (dst), .src_reg = (src), .off = (off_), .imm = (imm_)  \
	}
#define MOVE(dst, src)       OP(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define SET(dst, value)      OP(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, (int32_t)(value))
#define ADD(dst, value)      OP(BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, value)
#define LOAD(dst, src, off)  OP(BPF_LDX | BPF_MEM | BPF_W, dst, src, off, 0)
#define STORE(dst, off, src) OP(BPF_STX | BPF_MEM | BPF_W, dst, src, off, 0)
#define PUT(dst, off, value) OP(BPF_ST | BPF_MEM | BPF_W, dst, 0, off, (int32_t)(value))
#define IF_EQUAL(dst, v, to) OP(BPF_JMP32 | BPF_JEQ | BPF_K, dst, 0, to, (int32_t)(v))
#define IF_NOT(dst, v, to)   OP(BPF_JMP32 | BPF_JNE | BPF_K, dst, 0, to, (int32_t)(v))
#define IF_NULL(dst, to)     OP(BPF_JMP | BPF_JEQ | BPF_K, dst, 0, to, 0)
#define IF_FOUND(dst, to)    OP(BPF_JMP | BPF_JNE | BPF_K, dst, 0, to, 0)
#define CALL(function)       OP(BPF_JMP | BPF_CALL, 0, 0, 0, function)
#define EXIT                 OP(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* Two instructions: the address of a map. */
#define LOAD_MAP(dst, fd)                                                                          \
	OP(BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_MAP_FD, 0, fd), OP(0, 0, 0, 0, 0)

static inline int bpf_call(int command, union bpf_attr *attr, size_t size)
{
	long r = syscall(SYS_bpf, command, attr, size);
	return r < 0 ? -errno : (int)r;
}
