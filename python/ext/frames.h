/* Python's frames as its versions lay them out. A frame is known by its address only while it runs or is suspended: what
 * is found through one holds for the calling thread, with the GIL. */
#ifndef STEPWATCH_EXT_FRAMES_H
#define STEPWATCH_EXT_FRAMES_H

#include "core.h"

#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe.h>
#elif PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#else
#include <frameobject.h>
#endif

#if PY_VERSION_HEX >= 0x030b0000
typedef struct _PyInterpreterFrame core_frame;
#else
typedef struct _frame core_frame;
#endif

/* The calling thread's innermost frame; NULL when no Python code runs. A C function has none of its own, so this is the
 * frame that called it. */
static inline core_frame *core_frame_now(void)
{
#if PY_VERSION_HEX >= 0x030d0000
    return PyThreadState_GetUnchecked()->current_frame;
#elif PY_VERSION_HEX >= 0x030b0000
    return _PyThreadState_UncheckedGet()->cframe->current_frame;
#else
    return _PyThreadState_UncheckedGet()->frame;
#endif
}

/* Its code, borrowed; NULL: it has none. */
static inline PyCodeObject *core_frame_code(const core_frame *frame)
{
#if PY_VERSION_HEX >= 0x030e0000
    PyObject *code = PyStackRef_AsPyObjectBorrow(frame->f_executable);
    return PyCode_Check(code) ? (PyCodeObject *)code : NULL;
#elif PY_VERSION_HEX >= 0x030d0000
    return PyCode_Check(frame->f_executable) ? (PyCodeObject *)frame->f_executable : NULL;
#else
    return frame->f_code;
#endif
}

/* The frame that called it, or NULL. */
static inline core_frame *core_frame_back(const core_frame *frame)
{
#if PY_VERSION_HEX >= 0x030b0000
    return frame->previous;
#else
    return frame->f_back;
#endif
}

#if PY_VERSION_HEX < 0x030c0000
/* A variable of a frame by its place among plain variables, then those in cells, then those of functions around it; borrowed,
 * NULL: it has no value. Nothing is changed, as f_locals would, which keeps what it shows. */
static inline PyObject *core_frame_variable(const PyFrameObject *frame, Py_ssize_t place)
{
#if PY_VERSION_HEX >= 0x030b0000
    PyObject *value = place < frame->f_frame->f_code->co_nlocalsplus
                          ? frame->f_frame->localsplus[place]
                          : NULL;
#else
    PyObject *value = frame->f_localsplus[place];
#endif
    return value && PyCell_Check(value) ? PyCell_GET(value) : value;
}
#endif

/* Whether the frame may be suspended and run on: a generator, a coroutine, an asynchronous generator. */
static inline int core_frame_can_suspend(const core_frame *frame)
{
#if PY_VERSION_HEX >= 0x030b0000
    return frame->owner == FRAME_OWNED_BY_GENERATOR;
#else
    return frame->f_gen != NULL;
#endif
}

#endif
