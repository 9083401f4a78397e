/* Frames of Python 3.11 and later: in pieces of the thread's data stack, in generators, and (3.12 and later) one on the C
 * stack wherever C called Python. */
#define Py_BUILD_CORE 1 /* before Python.h: 3.12 declares some functions in two ways */
#include <Python.h>

#if PY_VERSION_HEX >= 0x030b0000
#include "frame_layout.h"
#include "frames.h"
#include <internal/pycore_interp.h>

#define UP_TO(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

const size_t layout_thread_size = UP_TO(PyThreadState, datastack_limit);
const size_t layout_frame_size = offsetof(struct _PyInterpreterFrame, localsplus);
const size_t layout_code_size = UP_TO(PyCodeObject, co_linetable);
const size_t layout_chunk_size = offsetof(_PyStackChunk, data);
#if PY_VERSION_HEX < 0x030d0000
const size_t layout_cframe_size = sizeof(_PyCFrame);
#else
const size_t layout_cframe_size = 0;
#endif

#define FIELD(bytes, type, field, out)                                                   \
    memcpy((out), (const char *)(bytes) + offsetof(type, field), sizeof *(out))

void layout_thread_parse(const void *bytes, layout_thread *out)
{
    unsigned long tid;
    *out = (layout_thread){0};
    FIELD(bytes, PyThreadState, next, &out->next);
    FIELD(bytes, PyThreadState, prev, &out->previous);
    FIELD(bytes, PyThreadState, interp, &out->interpreter);
    FIELD(bytes, PyThreadState, id, &out->id);
    FIELD(bytes, PyThreadState, thread_id, &out->pthread);
    FIELD(bytes, PyThreadState, native_thread_id, &tid);
    FIELD(bytes, PyThreadState, datastack_chunk, &out->chunk);
    FIELD(bytes, PyThreadState, datastack_top, &out->top);
    out->tid = (uint32_t)tid;
#if PY_VERSION_HEX >= 0x030d0000
    FIELD(bytes, PyThreadState, current_frame, &out->frame);
#else
    FIELD(bytes, PyThreadState, cframe, &out->cframe);
#endif
}

uint64_t layout_cframe_parse(const void *bytes)
{
    uint64_t frame = 0;
#if PY_VERSION_HEX < 0x030d0000
    FIELD(bytes, _PyCFrame, current_frame, &frame);
#else
    (void)bytes;
#endif
    return frame;
}

void layout_frame_parse(const void *bytes, layout_frame *out)
{
    char owner;
    out->idle = false; /* only generators know */
#if PY_VERSION_HEX >= 0x030d0000
    FIELD(bytes, struct _PyInterpreterFrame, f_executable, &out->code);
    FIELD(bytes, struct _PyInterpreterFrame, instr_ptr, &out->instruction);
#else
    FIELD(bytes, struct _PyInterpreterFrame, f_code, &out->code);
    FIELD(bytes, struct _PyInterpreterFrame, prev_instr, &out->instruction);
#endif
#if PY_VERSION_HEX >= 0x030e0000
    out->code &= ~(uint64_t)7; /* the low bits say who counts the reference */
#endif
    FIELD(bytes, struct _PyInterpreterFrame, previous, &out->previous);
    FIELD(bytes, struct _PyInterpreterFrame, owner, &owner);
#if PY_VERSION_HEX >= 0x030e0000
    const int shim = FRAME_OWNED_BY_INTERPRETER, last = FRAME_OWNED_BY_CSTACK;
#elif PY_VERSION_HEX >= 0x030c0000
    const int shim = FRAME_OWNED_BY_CSTACK, last = FRAME_OWNED_BY_CSTACK;
#else
    const int shim = -1, last = FRAME_OWNED_BY_FRAME_OBJECT;
#endif
    if (owner < 0 || owner > last) {
        out->kind = LAYOUT_BAD;
    } else if (owner == shim || owner == 3) {
        out->kind = LAYOUT_SHIM;
    } else {
        out->kind = LAYOUT_PYTHON;
    }
}

void layout_code_parse(const void *bytes, uint64_t address, layout_code *out)
{
    int first_line;
    FIELD(bytes, PyCodeObject, ob_base.ob_base.ob_type, &out->type);
    FIELD(bytes, PyCodeObject, ob_base.ob_size, &out->size);
    FIELD(bytes, PyCodeObject, co_filename, &out->file);
    FIELD(bytes, PyCodeObject, co_name, &out->name);
    FIELD(bytes, PyCodeObject, co_qualname, &out->qualname);
    FIELD(bytes, PyCodeObject, co_linetable, &out->lines);
    FIELD(bytes, PyCodeObject, co_firstlineno, &first_line);
    out->first_line = first_line;
    out->instructions = address + offsetof(PyCodeObject, co_code_adaptive);
}

void layout_chunk_parse(const void *bytes, layout_chunk *out)
{
    FIELD(bytes, _PyStackChunk, previous, &out->previous);
    FIELD(bytes, _PyStackChunk, size, &out->size);
    FIELD(bytes, _PyStackChunk, top, &out->used);
    out->used = layout_chunk_size + out->used * sizeof(PyObject *);
}

uint64_t layout_threads_head(uint64_t interpreter)
{
    return interpreter + offsetof(PyInterpreterState, threads.head);
}

void layout_wake_main(void *interpreter)
{
#if PY_VERSION_HEX < 0x030d0000
    PyInterpreterState *at = interpreter;
    __atomic_store_n(&at->ceval.eval_breaker._value, 1, __ATOMIC_RELAXED);
#else
    (void)interpreter;
#endif
}

int64_t layout_offset(const layout_frame *frame, const layout_code *code)
{
    return (int64_t)(frame->instruction - code->instructions);
}

uint64_t layout_instruction(const layout_frame *frame, const layout_code *code)
{
    (void)code;
    return frame->instruction;
}

/* 6 bits a byte, least first; bit 6: more follow. */
static int32_t read_signed(const uint8_t *table, size_t size, size_t at)
{
    uint32_t value = 0;
    for (unsigned shift = 0; at < size && shift < 32; at++, shift += 6) {
        value |= (uint32_t)(table[at] & 63) << shift;
        if (!(table[at] & 64)) {
            break;
        }
    }
    return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

/* Entries begin with a byte that has bit 7: bits 3–6 say what follows, bits 0–2 how many code units it is for, less one. */
size_t layout_lines(const uint8_t *table, size_t size, int32_t first_line,
                    layout_line *out, size_t room)
{
    size_t count = 0;
    uint32_t start = 0;
    int32_t line = first_line;
    for (size_t at = 0; at < size;) {
        const uint8_t head = table[at++];
        const unsigned form = head >> 3 & 15;
        if (form == 13 || form == 14) { /* without columns, or long */
            line += read_signed(table, size, at);
        } else if (form >= 10 && form <= 12) { /* on one line, up to two further on */
            line += (int32_t)form - 10;
        }
        const uint32_t shown = form == 15 ? 0 : (uint32_t)line;
        if (count > 0 && out[count - 1].line == shown) {
            /* The same line goes on. */
        } else if (count < room) {
            out[count++] = (layout_line){start, shown};
        }
        start += ((head & 7u) + 1) * (uint32_t)sizeof(_Py_CODEUNIT);
        while (at < size && !(table[at] & 128)) {
            at++;
        }
    }
    return count;
}

#endif
