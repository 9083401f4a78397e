/* Where the sampler finds things in the interpreter's memory. It works on copies of that memory and on addresses as
 * numbers: nothing here follows a pointer. frame_layout_39.c serves Python 3.9 and 3.10, where a frame is an object on the
 * heap; frame_layout_311.c serves 3.11 and later, where most frames lie in the thread's data stack. */
#ifndef STEPWATCH_EXT_FRAME_LAYOUT_H
#define STEPWATCH_EXT_FRAME_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A PyThreadState. */
typedef struct layout_thread {
    uint64_t next, previous, interpreter, id;
    uint64_t pthread; /* pthread_t */
    uint32_t tid;     /* of the kernel; 0: this version does not know */
    uint64_t frame;   /* innermost frame; where it is known through a cframe only: 0 */
    uint64_t cframe;  /* 0: this version has none */
    uint64_t chunk;   /* newest piece of the data stack; 0: this version has none */
    uint64_t top;     /* its end */
} layout_thread;

enum layout_kind {
    LAYOUT_PYTHON, /* runs code */
    LAYOUT_SHIM,   /* marks where C called Python: not shown */
    LAYOUT_BAD     /* no frame */
};

typedef struct layout_frame {
    uint64_t code, previous;
    uint64_t instruction; /* see layout_offset */
    enum layout_kind kind;
    bool idle; /* certainly not executing: created, suspended or done */
} layout_frame;

/* A code object, as far as it says who it is. */
typedef struct layout_code {
    uint64_t type, size; /* size: of its instructions, in some unit */
    uint64_t file, name, qualname, lines, instructions;
    int64_t first_line; /* as wide as the rest: compared byte by byte */
} layout_code;

/* A piece of the data stack. */
typedef struct layout_chunk {
    uint64_t previous, size, used; /* bytes; used: meaningful for all but the newest */
} layout_chunk;

/* From `start` (bytes from the first instruction) on it is this line; 0: none. */
typedef struct layout_line {
    uint32_t start, line;
} layout_line;

/* Bytes to copy for each; those of a thread state begin at its address. */
extern const size_t layout_thread_size, layout_frame_size, layout_code_size,
    layout_chunk_size, layout_cframe_size;

void layout_thread_parse(const void *bytes, layout_thread *out);
void layout_frame_parse(const void *bytes, layout_frame *out);
void layout_code_parse(const void *bytes, uint64_t address, layout_code *out);
void layout_chunk_parse(const void *bytes, layout_chunk *out);
uint64_t layout_cframe_parse(const void *bytes);

/* Address of the pointer to the first thread state of an interpreter (PyInterpreterState *). */
uint64_t layout_threads_head(uint64_t interpreter);
/* Has the main thread see pending calls soon. Up to 3.12 Py_AddPendingCall does so only when the main thread itself calls it:
 * otherwise a program that never gives up the GIL would never see them. The one thing that is written, not read. */
void layout_wake_main(void *interpreter);
/* Bytes from the first instruction to the one that runs; -1: before the first. */
int64_t layout_offset(const layout_frame *frame, const layout_code *code);
/* Address of that instruction. */
uint64_t layout_instruction(const layout_frame *frame, const layout_code *code);
/* Unpacks a line table. The number of entries, at most `room`, in order of `start`. */
size_t layout_lines(const uint8_t *table, size_t size, int32_t first_line,
                    layout_line *out, size_t room);

/* The line that `offset` bytes from the first instruction are in; the first line of the code where that is not known. */
static inline uint32_t layout_line_find(const layout_line *lines, uint32_t count,
                                        int64_t offset, int64_t first_line)
{
    if (offset < 0 || count == 0) {
        return first_line > 0 ? (uint32_t)first_line : 0;
    }
    uint32_t low = 0, high = count; /* lines[low].start <= offset */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (lines[middle].start <= (uint64_t)offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return lines[low].line;
}

/* A character as UTF-8, at most 4 bytes; how many. */
static inline size_t layout_put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        if (c >= 0xd800 && c < 0xe000) {
            c = 0xfffd; /* a lone surrogate has no UTF-8 */
        }
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 63));
        out[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | (c >> 18 & 7));
    out[1] = (char)(0x80 | (c >> 12 & 63));
    out[2] = (char)(0x80 | (c >> 6 & 63));
    out[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* What an instruction says about where the thread is. */
enum layout_op { LAYOUT_OP_PLAIN, LAYOUT_OP_CALL, LAYOUT_OP_OPERATOR };
enum layout_op layout_op(uint8_t opcode);

#endif
