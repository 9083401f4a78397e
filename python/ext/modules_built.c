/* Where objects were built: the place in the user's code, remembered when their constructor runs.
 *
 * A model is built from hundreds of parts, so this is quick: it looks for the innermost frame of the user's code that is
 * not a constructor itself and notes its code and line. Parts that are built meanwhile, by the same instruction of the
 * same frame, need no note of their own. The notes are a ring: an object is looked for by its address, and if that was
 * pushed out, the newest one of its class answers. */
#include "frames.h"
#include "modules.h"
#include "user_code.h"

enum { NOTES = 1024, DEEPEST = 200 };

typedef struct built_note {
    const void *object;
    const void *type;
    PyCodeObject *code; /* a reference */
    int line;
} built_note;

static built_note notes[NOTES];
static size_t next_note;
/* Who built last: more from there are parts. */
static const void *last_frame;
static const void *last_code;
static int last_instruction;

/* The code that the frame runs; NULL: none. */
static PyCodeObject *frame_code(core_frame *frame)
{
#if PY_VERSION_HEX >= 0x030e0000
    PyObject *code = PyStackRef_AsPyObjectBorrow(frame->f_executable);
#elif PY_VERSION_HEX >= 0x030d0000
    PyObject *code = frame->f_executable;
#else
    PyObject *code = (PyObject *)frame->f_code;
#endif
    return code && PyCode_Check(code) ? (PyCodeObject *)code : NULL;
}

static core_frame *frame_back(core_frame *frame)
{
#if PY_VERSION_HEX >= 0x030b0000
    return frame->previous;
#else
    return frame->f_back;
#endif
}

static int frame_instruction(core_frame *frame)
{
#if PY_VERSION_HEX >= 0x030b0000
    return _PyInterpreterFrame_LASTI(frame);
#else
    return frame->f_lasti;
#endif
}

static int code_line(PyCodeObject *code, int instruction)
{
#if PY_VERSION_HEX >= 0x030a0000
    return PyCode_Addr2Line(code, instruction * (int)sizeof(_Py_CODEUNIT));
#else
    return PyCode_Addr2Line(code, instruction);
#endif
}

static bool is_constructor(const PyCodeObject *code)
{
    return PyUnicode_CompareWithASCIIString(code->co_name, "__init__") == 0;
}

PyObject *core_module_built(PyObject *Py_UNUSED(module), PyObject *object)
{
    core_module_slot_take(Py_TYPE(object));
    core_frame *frame = core_frame_now();
    PyCodeObject *code = NULL;
    for (int depth = 0; frame && depth < DEEPEST; depth++, frame = frame_back(frame)) {
        code = frame_code(frame);
        if (code && core_is_user_code(code) && !is_constructor(code)) {
            break;
        }
        code = NULL;
    }
    if (!code) {
        Py_RETURN_NONE;
    }
    const int instruction = frame_instruction(frame);
    if (frame == last_frame && code == last_code && instruction == last_instruction) {
        Py_RETURN_NONE;
    }
    last_frame = frame;
    last_code = code;
    last_instruction = instruction;
    built_note *note = &notes[next_note++ % NOTES];
    PyCodeObject *before = note->code;
    Py_INCREF(code);
    *note = (built_note){object, Py_TYPE(object), code, code_line(code, instruction)};
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

PyObject *core_module_site(PyObject *Py_UNUSED(module), PyObject *object)
{
    const built_note *found = NULL;
    for (size_t i = 0; i < NOTES && i < next_note; i++) {
        const built_note *note = &notes[(next_note - 1 - i) % NOTES];
        if (note->type != Py_TYPE(object)) {
            continue;
        }
        if (note->object == object) {
            found = note;
            break;
        }
        found = found ? found : note;
    }
    if (!found) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("(OiO)", found->code->co_filename, found->line,
#if PY_VERSION_HEX >= 0x030b0000
                         found->code->co_qualname
#else
                         found->code->co_name
#endif
    );
}
