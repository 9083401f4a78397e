/* Frames of Python 3.9 and 3.10: objects on the heap, linked by f_back. */
#define Py_BUILD_CORE 1
#include <Python.h>

#if PY_VERSION_HEX < 0x030b0000
#include <frameobject.h>

#include "frame_layout.h"
#include <internal/pycore_interp.h>

#define UP_TO(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

const size_t layout_thread_size = UP_TO(PyThreadState, id);
#if PY_VERSION_HEX >= 0x030a0000
const size_t layout_frame_size = UP_TO(PyFrameObject, f_state);
const size_t layout_code_size = UP_TO(PyCodeObject, co_linetable);
#else
const size_t layout_frame_size = UP_TO(PyFrameObject, f_executing);
const size_t layout_code_size = UP_TO(PyCodeObject, co_lnotab);
#endif
const size_t layout_chunk_size = 0;
const size_t layout_cframe_size = 0;

#define FIELD(bytes, type, field, out)                                                   \
    memcpy((out), (const char *)(bytes) + offsetof(type, field), sizeof *(out))

void layout_thread_parse(const void *bytes, layout_thread *out)
{
    *out = (layout_thread){0};
    FIELD(bytes, PyThreadState, next, &out->next);
    FIELD(bytes, PyThreadState, prev, &out->previous);
    FIELD(bytes, PyThreadState, interp, &out->interpreter);
    FIELD(bytes, PyThreadState, id, &out->id);
    FIELD(bytes, PyThreadState, thread_id, &out->pthread);
    FIELD(bytes, PyThreadState, frame, &out->frame);
}

void layout_frame_parse(const void *bytes, layout_frame *out)
{
    uint64_t type;
    int lasti;
    FIELD(bytes, PyFrameObject, ob_base.ob_base.ob_type, &type);
    FIELD(bytes, PyFrameObject, f_back, &out->previous);
    FIELD(bytes, PyFrameObject, f_code, &out->code);
    FIELD(bytes, PyFrameObject, f_lasti, &lasti);
#if PY_VERSION_HEX >= 0x030a0000
    lasti = lasti < 0 ? -1 : lasti * (int)sizeof(_Py_CODEUNIT);
#endif
#if PY_VERSION_HEX >= 0x030a0000
    PyFrameState state;
    FIELD(bytes, PyFrameObject, f_state, &state);
    out->idle = state != FRAME_EXECUTING;
#else
    char executing;
    FIELD(bytes, PyFrameObject, f_executing, &executing);
    out->idle = executing != 1;
#endif
    out->instruction = (uint64_t)(int64_t)lasti;
    out->kind = type == (uint64_t)(uintptr_t)&PyFrame_Type ? LAYOUT_PYTHON : LAYOUT_BAD;
}

void layout_code_parse(const void *bytes, uint64_t address, layout_code *out)
{
    int first_line;
    (void)address;
    FIELD(bytes, PyCodeObject, ob_base.ob_type, &out->type);
    FIELD(bytes, PyCodeObject, co_filename, &out->file);
    FIELD(bytes, PyCodeObject, co_name, &out->name);
    FIELD(bytes, PyCodeObject, co_firstlineno, &first_line);
    out->first_line = first_line;
    FIELD(bytes, PyCodeObject, co_code, &out->size);
    out->instructions = out->size + offsetof(PyBytesObject, ob_sval);
#if PY_VERSION_HEX >= 0x030a0000
    FIELD(bytes, PyCodeObject, co_linetable, &out->lines);
#else
    FIELD(bytes, PyCodeObject, co_lnotab, &out->lines);
#endif
    out->qualname = out->name;
}

void layout_chunk_parse(const void *bytes, layout_chunk *out)
{
    (void)bytes;
    *out = (layout_chunk){0};
}

uint64_t layout_cframe_parse(const void *bytes)
{
    (void)bytes;
    return 0;
}

uint64_t layout_threads_head(uint64_t interpreter)
{
    return interpreter + offsetof(PyInterpreterState, tstate_head);
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
    (void)code;
    return (int64_t)frame->instruction;
}

uint64_t layout_instruction(const layout_frame *frame, const layout_code *code)
{
    return code->instructions + frame->instruction;
}

/* Pairs of bytes. 3.9: (addresses on, lines on), the second signed. 3.10: (length of the stretch, lines on from the stretch
 * before), -128: no line. */
size_t layout_lines(const uint8_t *table, size_t size, int32_t first_line,
                    layout_line *out, size_t room)
{
    size_t count = 0;
    uint32_t start = 0;
    int32_t line = first_line;
#if PY_VERSION_HEX < 0x030a0000
    if (room > 0) {
        out[count++] = (layout_line){0, (uint32_t)line};
    }
    for (size_t i = 0; i + 1 < size; i += 2) {
        start += table[i];
        line += (int8_t)table[i + 1];
        if (count > 0 && out[count - 1].start == start) {
            out[count - 1].line = (uint32_t)line;
        } else if (count < room) {
            out[count++] = (layout_line){start, (uint32_t)line};
        }
    }
#else
    for (size_t i = 0; i + 1 < size; i += 2) {
        const int8_t delta = (int8_t)table[i + 1];
        if (delta != -128) {
            line += delta;
        }
        if (table[i] > 0 && count < room) {
            out[count++] = (layout_line){start, delta == -128 ? 0 : (uint32_t)line};
        }
        start += table[i];
    }
#endif
    return count;
}

#endif
