/* stepwatch.section: a context manager that opens and closes one section of the recorder.
 *
 * There is one object per name and phase, so that `with stepwatch.section("forward")` finds the
 * handle of the recorder with one look into a table. It has no state of its own: the recorder keeps
 * the stack of open sections per thread, hence one object serves any number of threads and nested
 * uses.
 *
 * Up to 3.13 `with` makes two bound methods each time, which costs more than all the rest. So the type
 * has, for `__enter__` and `__exit__`, a descriptor that answers with the object itself, and calling
 * the object tells the two apart by the number of arguments: none enters, three leave, one is a
 * function to decorate. On the type the descriptor answers with a plain method: who asks there
 * (contextlib.ExitStack) passes the object as first argument. */
#include "section.h"
#include "brief.h"
#include "core.h"
#include "frames.h"
#include <stddef.h>
#include <string.h>
#include <structmember.h>

#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_moduleobject.h>
#define MODULE_STATE(module) _PyModule_GetState(module) /* without a call */
#else
#define MODULE_STATE(module) PyModule_GetState(module)
#endif

/* Beyond this many names the recorder has no more of them either; a program that makes names without end must not
 * fill the memory with objects. */
enum { MOST_SECTIONS = 65536 };

/* --- Which activation ------------------------------------------------------------- */

/* Whether the frame belongs to contextlib, whose exit stacks leave for somebody else, some of them in coroutines of
 * their own. */
static int frame_is_contextlib(PyObject *globals)
{
    PyObject *name =
        PyDict_Check(globals) ? PyDict_GetItemString(globals, "__name__") : NULL;
    return name && PyUnicode_Check(name) &&
           PyUnicode_CompareWithASCIIString(name, "contextlib") == 0;
}

uint64_t core_activation_above(void)
{
    core_frame *frame = core_frame_now();
    while (frame) {
        if (core_frame_can_suspend(frame) && !frame_is_contextlib(frame->f_globals)) {
            return (uint64_t)(uintptr_t)frame;
        }
#if PY_VERSION_HEX >= 0x030b0000
        frame = frame->previous;
#else
        frame = frame->f_back;
#endif
    }
    return 0;
}

/* --- Enter and leave -------------------------------------------------------------- */

unsigned core_exit_flags(PyObject *exception)
{
    return exception == Py_None || exception == PyExc_GeneratorExit ? 0 : SW_RECORD_ERROR;
}

/* How many sections with a key this thread may have open: while there are none, which frame leaves needs no look. More
 * than there are is harmless. */
CORE_THREAD_LOCAL unsigned keyed;

/* These two are apart from what calls them so that a section that is off saves no registers. */
static CORE_NOINLINE PyObject *section_enter(PyObject *object)
{
    sw_section *const handle = ((core_section *)object)->handle;
    const core_frame *frame = core_frame_now();
    Py_INCREF(object);
    if (frame && core_frame_can_suspend(frame)) {
        keyed++;
        sw_section_begin(handle, (uint64_t)(uintptr_t)frame);
    } else {
        sw_section_enter(handle);
    }
    return object;
}

static CORE_NOINLINE PyObject *section_leave(PyObject *object, PyObject *exception)
{
    sw_section *const handle = ((core_section *)object)->handle;
    if (keyed == 0 && exception == Py_None) {
        sw_section_leave(handle);
        Py_RETURN_NONE;
    }
    const core_frame *frame = core_frame_now();
    if (frame && core_frame_can_suspend(frame)) {
        keyed -= keyed != 0;
        sw_section_end(handle, (uint64_t)(uintptr_t)frame, core_exit_flags(exception));
    } else if (exception == Py_None) {
        sw_section_leave(handle);
    } else {
        sw_section_end(handle, 0, core_exit_flags(exception));
    }
    /* None: the exception goes on as it was. */
    Py_RETURN_NONE;
}

static CORE_NOINLINE PyObject *section_decorate(PyObject *self, PyObject *const *args,
                                                Py_ssize_t count, PyObject *names)
{
    if (count != 1 || names) {
        PyErr_SetString(PyExc_TypeError,
                        "a section takes one function to decorate, or `with`");
        return NULL;
    }
    return core_decorate(self, args[0]);
}

static PyObject *section_call(PyObject *object, PyObject *const *args, size_t nargsf,
                              PyObject *names)
{
    const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
#if !CORE_PLAIN_METHODS
    if (count == 0 && !names) {
        if (SW_GATE(((core_section *)object)->handle)) {
            return section_enter(object);
        }
        Py_INCREF(object);
        return object;
    }
    /* Three arguments as `with` passes them. */
    if (count == 3 && !names && (args[0] == Py_None || PyExceptionClass_Check(args[0]))) {
        if (SW_GATE(((core_section *)object)->handle)) {
            return section_leave(object, args[0]);
        }
        Py_RETURN_NONE;
    }
#endif
    return section_decorate(object, args, count, names);
}

/* The methods of the type. On 3.14 `with` calls them without binding; before, only who takes them from the type does,
 * and then the frame that called is not the one that the section belongs to. */
static PyObject *section_enter_method(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    sw_section *const handle = ((core_section *)object)->handle;
    if (SW_GATE(handle)) {
        if (CORE_PLAIN_METHODS) {
            return section_enter(object);
        }
        sw_section_begin(handle, core_activation_above());
    }
    Py_INCREF(object);
    return object;
}

static PyObject *section_exit_method(PyObject *object, PyObject *const *args,
                                     Py_ssize_t count)
{
    if (count != 3) {
        PyErr_Format(PyExc_TypeError, "__exit__ expected 3 arguments, got %zd", count);
        return NULL;
    }
    sw_section *const handle = ((core_section *)object)->handle;
    if (SW_GATE(handle)) {
        if (CORE_PLAIN_METHODS) {
            return section_leave(object, args[0]);
        }
        sw_section_end(handle, core_activation_above(), core_exit_flags(args[0]));
    }
    Py_RETURN_NONE;
}

static PyMethodDef enter_method = {"__enter__", section_enter_method, METH_NOARGS,
                                   PyDoc_STR("Open the section.")};
static PyMethodDef exit_method = {
    "__exit__", (PyCFunction)(void (*)(void))section_exit_method, METH_FASTCALL,
    PyDoc_STR("Close the section; an exception is counted and passes.")};

/* --- The descriptor --------------------------------------------------------------- */

typedef struct method_object {
    PyObject_HEAD PyObject *plain; /* what the type shows */
} method_object;

static PyObject *method_get(PyObject *self, PyObject *object, PyObject *Py_UNUSED(type))
{
    PyObject *answer = object ? object : ((method_object *)self)->plain;
    Py_INCREF(answer);
    return answer;
}

static int method_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((method_object *)self)->plain);
    return 0;
}

static int method_clear(PyObject *self)
{
    Py_CLEAR(((method_object *)self)->plain);
    return 0;
}

static void method_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    method_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef method_members[] = {
    {"__wrapped__", T_OBJECT_EX, offsetof(method_object, plain), READONLY,
     PyDoc_STR("The method as the type shows it.")},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot method_slots[] = {
    {Py_tp_descr_get, method_get},   {Py_tp_traverse, method_traverse},
    {Py_tp_clear, method_clear},     {Py_tp_dealloc, method_dealloc},
    {Py_tp_members, method_members}, {0, NULL},
};

static PyType_Spec method_spec = {
    .name = "stepwatch._core.section_method",
    .basicsize = sizeof(method_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = method_slots,
};

/* Puts a method into a type, behind a descriptor where that pays. */
static int method_add(PyTypeObject *type, PyTypeObject *kind, PyMethodDef *method)
{
    PyObject *plain = PyDescr_NewMethod(type, method);
    if (!plain) {
        return -1;
    }
    PyObject *entry = plain;
    if (!CORE_PLAIN_METHODS) {
        entry = kind->tp_alloc(kind, 0);
        if (!entry) {
            Py_DECREF(plain);
            return -1;
        }
        ((method_object *)entry)->plain = plain;
    }
    const int result = PyDict_SetItemString(type->tp_dict, method->ml_name, entry);
    Py_DECREF(entry);
    return result;
}

int core_with_add(PyTypeObject *type, PyMethodDef *enter, PyMethodDef *leave)
{
    PyObject *kind = PyType_FromSpec(&method_spec);
    if (!kind) {
        return -1;
    }
    int result = method_add(type, (PyTypeObject *)kind, enter);
    if (result == 0) {
        result = method_add(type, (PyTypeObject *)kind, leave);
    }
    Py_DECREF(kind);
#if PY_VERSION_HEX >= 0x030a0000
    /* The interpreter has a short way to types that cannot change. */
    type->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
#endif
    PyType_Modified(type);
    return result;
}

/* --- One object per name and phase ------------------------------------------------ */

int core_phase_number(PyObject *phase)
{
    core_text text;
    if (core_text_get(phase, "section() phase", &text) != 0) {
        return -1;
    }
    int found = -1;
    for (unsigned i = 0; i < SW_PHASE_COUNT && found < 0; i++) {
        const char *name = sw_phase_name(i);
        if (strlen(name) == (size_t)text.length &&
            memcmp(name, text.data, (size_t)text.length) == 0) {
            found = (int)i;
        }
    }
    if (found < 0) {
        /* A usual name for a phase is as good a hint as any: "dataload" is data_wait. */
        const int near = sw_phase_of_name(text.data, (size_t)text.length);
        char all[SW_PHASE_COUNT * 16];
        size_t used = 0;
        for (unsigned i = 0; i < SW_PHASE_COUNT; i++) {
            used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s",
                                     i ? ", " : "", sw_phase_name(i));
        }
        if (near < SW_PHASE_COUNT) {
            PyErr_Format(PyExc_ValueError,
                         "no phase %R; did you mean '%s'? There are: %s", phase,
                         sw_phase_name((unsigned)near), all);
        } else {
            PyErr_Format(PyExc_ValueError, "no phase %R; there are: %s", phase, all);
        }
    }
    core_text_release(&text);
    return found;
}

static PyObject *section_make(PyTypeObject *type, PyObject *name, int phase,
                              const core_text *text)
{
    core_section *self = (core_section *)type->tp_alloc(type, 0);
    if (self) {
        self->call = section_call;
        self->handle = sw_section_get_n(text->data, (size_t)text->length, phase);
        self->phase = phase;
        Py_INCREF(name);
        self->name = name;
    }
    return (PyObject *)self;
}

/* The section of a name and a phase's number. New reference. */
static PyObject *section_intern(PyTypeObject *type, PyObject *sections, PyObject *name,
                                int phase, const core_text *text)
{
    PyObject *key = Py_BuildValue("Oi", name, phase);
    PyObject *known = key ? PyDict_GetItemWithError(sections, key) : NULL;
    if (!key || known || PyErr_Occurred()) {
        Py_XINCREF(known);
        Py_XDECREF(key);
        return known;
    }
    PyObject *made = section_make(type, name, phase, text);
    if (made && PyDict_Size(sections) < MOST_SECTIONS) {
        /* Another thread may have made it meanwhile; whoever came first is kept. */
        known = PyDict_SetDefault(sections, key, made);
        Py_XINCREF(known);
        Py_DECREF(made);
        made = known;
    }
    Py_DECREF(key);
    return made;
}

/* Whether code that runs in this frame is the program's, and not that of an adapter of a framework; -1: it asks for another. What
 * stands in for packages of the guides is a program's. */
static int frame_is_of_program(PyObject *frame)
{
    PyObject *globals = PyObject_GetAttrString(frame, "f_globals");
    PyObject *name = globals ? PyDict_GetItemString(globals, "__name__") : NULL;
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    int yes = 1;
    if (text && strcmp(text, "stepwatch._decorators") == 0) {
        yes = -1;
    } else if (text && strncmp(text, "stepwatch.", 10) == 0) {
        yes = strncmp(text, "stepwatch.compat.", 17) == 0;
    }
    Py_XDECREF(globals);
    core_error_forget();
    return yes;
}

/* Whether a section is asked for by the program itself. */
static bool asked_by_program(void)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    int yes = -1;
    Py_XINCREF(frame);
    while (frame && yes < 0) {
        yes = frame_is_of_program(frame);
        PyObject *before = (PyObject *)PyFrame_GetBack((PyFrameObject *)frame);
        Py_DECREF(frame);
        frame = before;
    }
    Py_XDECREF(frame);
    return yes > 0;
}

static PyObject *section_find(PyTypeObject *type, PyObject *name, PyObject *phase)
{
    core_state *state = PyType_GetModuleState(type);
    if (!state) {
        return NULL;
    }
    core_text text;
    if (core_text_get(name, "section() name", &text) != 0) {
        return NULL;
    }
    int number = SW_PHASE_INHERIT;
    PyObject *found = NULL;
    /* A subclass of str could compare in ways of its own. */
    PyObject *exact = PyUnicode_FromObject(name);
    if (exact) {
        number = phase == Py_None ? sw_phase_of_name(text.data, (size_t)text.length)
                                  : core_phase_number(phase);
        if (number >= 0) {
            found =
                section_intern(type, state->slot[CORE_SECTIONS], exact, number, &text);
        }
        Py_DECREF(exact);
    }
    core_text_release(&text);
    if (found && core_brief_may && asked_by_program()) {
        core_brief_never();
    }
    return found;
}

static PyObject *section_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"name", "phase", NULL};
    PyObject *name;
    PyObject *phase = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|O:section", keywords, &name,
                                     &phase)) {
        return NULL;
    }
    return section_find(type, name, phase);
}

/* Any other way to call the type. */
static CORE_NOINLINE PyObject *section_type_call_any(PyObject *type,
                                                     PyObject *const *args,
                                                     Py_ssize_t count, PyObject *names)
{
    const Py_ssize_t given = count + (names ? PyTuple_GET_SIZE(names) : 0);
    PyObject *const positional = PyTuple_New(count);
    PyObject *const keywords = names ? PyDict_New() : NULL;
    PyObject *result = NULL;
    int bad = !positional || (names && !keywords);
    for (Py_ssize_t i = 0; i < given && !bad; i++) {
        if (i < count) {
            Py_INCREF(args[i]);
            PyTuple_SET_ITEM(positional, i, args[i]);
        } else {
            bad = PyDict_SetItem(keywords, PyTuple_GET_ITEM(names, i - count), args[i]);
        }
    }
    if (!bad) {
        result = section_new((PyTypeObject *)type, positional, keywords);
    }
    Py_XDECREF(positional);
    Py_XDECREF(keywords);
    return result;
}

/* The section of a name that is not in the table of recent ones, and now is. */
static CORE_NOINLINE PyObject *section_type_call_new(PyObject *type, PyObject *name,
                                                     core_recent *recent)
{
    PyObject *found = section_find((PyTypeObject *)type, name, Py_None);
    if (found) {
        Py_INCREF(name);
        Py_XSETREF(recent->name, name);
        Py_INCREF(found);
        Py_XSETREF(recent->section, found);
    }
    return found;
}

/* section("name"), as it stands in a loop: the string of the program is the same object each time, so its address finds
 * the section. The table keeps the string, so the address stays its own. What is unusual is apart, so that the usual case
 * saves no registers. */
static PyObject *section_type_call(PyObject *type, PyObject *const *args, size_t nargsf,
                                   PyObject *names)
{
    const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    if (names || count != 1 || !PyUnicode_CheckExact(args[0])) {
        return section_type_call_any(type, args, count, names);
    }
#ifndef Py_GIL_DISABLED
    core_state *state = MODULE_STATE(((PyHeapTypeObject *)type)->ht_module);
    PyObject *const name = args[0];
    core_recent *recent =
        &state->recent[((uintptr_t)name >> 4) %
                       (sizeof(state->recent) / sizeof(state->recent[0]))];
    if (recent->name == name) {
        Py_INCREF(recent->section);
        return recent->section;
    }
    return section_type_call_new(type, name, recent);
#else
    return section_find((PyTypeObject *)type, args[0], Py_None);
#endif
}

/* --- The type --------------------------------------------------------------------- */

static void section_dealloc(core_section *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (self->weak) {
        PyObject_ClearWeakRefs((PyObject *)self);
    }
    Py_CLEAR(self->name);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *section_phase(core_section *self, void *Py_UNUSED(closure))
{
    const char *name = sw_phase_name((unsigned)self->phase);
    if (!name) {
        Py_RETURN_NONE;
    }
    return PyUnicode_FromString(name);
}

static PyObject *section_repr(core_section *self)
{
    const char *phase = sw_phase_name((unsigned)self->phase);
    core_text text;
    if (!phase || core_text_get(self->name, "name", &text) != 0) {
        PyErr_Clear();
        return PyUnicode_FromFormat("stepwatch.section(%R)", self->name);
    }
    const int usual = sw_phase_of_name(text.data, (size_t)text.length) == self->phase;
    core_text_release(&text);
    return usual ? PyUnicode_FromFormat("stepwatch.section(%R)", self->name)
                 : PyUnicode_FromFormat("stepwatch.section(%R, phase='%s')", self->name,
                                        phase);
}

static PyObject *section_name(core_section *self, void *Py_UNUSED(closure))
{
    Py_INCREF(self->name);
    return self->name;
}

/* Pickled and copied by name: the same section on the other side. */
static PyObject *section_reduce(core_section *self, PyObject *Py_UNUSED(ignored))
{
    return Py_BuildValue("O(ON)", Py_TYPE(self), self->name, section_phase(self, NULL));
}

static PyMethodDef section_methods[] = {
    {"__reduce__", (PyCFunction)section_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef section_getset[] = {
    {"name", (getter)section_name, NULL, PyDoc_STR("Name of the section."), NULL},
    {"phase", (getter)section_phase, NULL,
     PyDoc_STR("Phase of the step that its time counts for, or None."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef section_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(core_section, call), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(core_section, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyDoc_STRVAR(
    section_doc,
    "section(name, phase=None)\n--\n\n"
    "Time what runs inside it: a context manager and a decorator.\n\n"
    "The same name and phase give the same object. Without a phase the usual names\n"
    "(\"forward\", \"data\", \"optimizer_step\") have theirs.\n\n"
    "    with stepwatch.section(\"augment\"):\n"
    "        images = flip(images)\n\n"
    "    @stepwatch.section(\"augment\")\n"
    "    def flip(images): ...\n");

static PyType_Slot section_slots[] = {
    {Py_tp_doc, (void *)section_doc},
    {Py_tp_new, section_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_dealloc, section_dealloc},
    {Py_tp_repr, section_repr},
    {Py_tp_methods, section_methods},
    {Py_tp_members, section_members},
    {Py_tp_getset, section_getset},
    {0, NULL},
};

/* Not a base type: the lookup of the module's state relies on the type being this one. */
static PyType_Spec section_spec = {
    .name = "stepwatch.section",
    .basicsize = sizeof(core_section),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = section_slots,
};

int core_section_add(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    state->slot[CORE_SECTIONS] = PyDict_New();
    if (!state->slot[CORE_SECTIONS] ||
        core_type_add(module, CORE_SECTION_TYPE, &section_spec) != 0) {
        return -1;
    }
    PyTypeObject *type = (PyTypeObject *)state->slot[CORE_SECTION_TYPE];
    type->tp_vectorcall = section_type_call;
    return core_with_add(type, &enter_method, &exit_method);
}
