/* A section of a profiler. As stepwatch.section (section.c), but its statistics are kept here, whether or not anything is
 * recorded. */
#include "frames.h"
#include "profiler.h"
#include <stddef.h>
#include <string.h>
#include <structmember.h>

/* Beyond this many names those that differ in numbers only are one, and beyond twice as many all others too: a program that
 * makes names without end must not fill the memory. */
enum { MOST_NAMES = 65536 };
#define OTHER_NAMES "(more)"

/* --- Enter and leave -------------------------------------------------------------- */

static profiler_key key_of_frame(const core_frame *frame)
{
    return (profiler_key){.where = frame,
                          .suspends = frame && core_frame_can_suspend(frame)};
}

/* Taken from the type, by contextlib: the frame that called is not the one that the call belongs to. */
static profiler_key key_above(void)
{
    const uint64_t key = core_activation_above();
    return (profiler_key){.where = (const void *)(uintptr_t)key, .suspends = key != 0};
}

static CORE_NOINLINE PyObject *section_leave(profiler_section *self, profiler_key key,
                                             PyObject *exception)
{
    profiler_leave(self, key, core_exit_flags(exception));
    Py_RETURN_NONE;
}

static bool has_to_leave(profiler_section *self)
{
    return profiler_is_enabled(self->profiler) || profiler_is_open(self);
}

static PyObject *section_call(PyObject *object, PyObject *const *args, size_t nargsf,
                              PyObject *names)
{
    profiler_section *self = (profiler_section *)object;
    const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
#if !CORE_PLAIN_METHODS
    if (count == 0 && !names) {
        if (profiler_is_enabled(self->profiler)) {
            profiler_enter(self, key_of_frame(core_frame_now()), true);
        }
        Py_INCREF(object);
        return object;
    }
    if (count == 3 && !names && (args[0] == Py_None || PyExceptionClass_Check(args[0]))) {
        if (has_to_leave(self)) {
            return section_leave(self, key_of_frame(core_frame_now()), args[0]);
        }
        Py_RETURN_NONE;
    }
#endif
    if (count != 1 || names) {
        PyErr_SetString(PyExc_TypeError,
                        "a section takes one function to decorate, or `with`");
        return NULL;
    }
    return core_decorate(object, args[0]);
}

static PyObject *section_enter_method(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    profiler_section *self = (profiler_section *)object;
    if (profiler_is_enabled(self->profiler)) {
        profiler_enter(self,
                       CORE_PLAIN_METHODS ? key_of_frame(core_frame_now()) : key_above(),
                       true);
    }
    Py_INCREF(object);
    return object;
}

static PyObject *section_exit_method(PyObject *object, PyObject *const *args,
                                     Py_ssize_t count)
{
    profiler_section *self = (profiler_section *)object;
    if (count != 3) {
        PyErr_Format(PyExc_TypeError, "__exit__ expected 3 arguments, got %zd", count);
        return NULL;
    }
    if (has_to_leave(self)) {
        return section_leave(
            self, CORE_PLAIN_METHODS ? key_of_frame(core_frame_now()) : key_above(),
            args[0]);
    }
    Py_RETURN_NONE;
}

static PyMethodDef enter_method = {"__enter__", section_enter_method, METH_NOARGS,
                                   PyDoc_STR("Open the section.")};
static PyMethodDef exit_method = {
    "__exit__", (PyCFunction)(void (*)(void))section_exit_method, METH_FASTCALL,
    PyDoc_STR("Close the section; an exception is counted and passes.")};

/* --- One object per name ---------------------------------------------------------- */

PyObject *profiler_family(PyObject *name, PyObject *otherwise)
{
    core_text text;
    if (core_text_get(name, "name", &text) != 0) {
        return NULL;
    }
    char *family = PyMem_Malloc((size_t)text.length + 1);
    const size_t length =
        family ? sw_name_family(text.data, (size_t)text.length, family) : 0;
    core_text_release(&text);
    PyObject *result = otherwise;
    if (length) {
        result = PyUnicode_DecodeUTF8(family, (Py_ssize_t)length, "replace");
    } else {
        Py_INCREF(otherwise);
    }
    PyMem_Free(family);
    return result;
}

/* Whether it is there, or may be added to so many. -1 with an exception. */
static int has_place(PyObject *dict, PyObject *name, Py_ssize_t most)
{
    return PyDict_Size(dict) < most ? 1 : PyDict_Contains(dict, name);
}

PyObject *profiler_name_kept(PyObject *dict, PyObject *name)
{
    int place = has_place(dict, name, MOST_NAMES);
    if (place > 0) {
        Py_INCREF(name);
    }
    if (place != 0) {
        return place > 0 ? name : NULL;
    }
    PyObject *others = PyUnicode_FromString(OTHER_NAMES);
    PyObject *folded = others ? profiler_family(name, others) : NULL;
    place = folded ? has_place(dict, folded, 2 * MOST_NAMES) : -1;
    if (place == 0) {
        Py_INCREF(others);
        Py_SETREF(folded, others);
    } else if (place < 0) {
        Py_CLEAR(folded);
    }
    Py_XDECREF(others);
    return folded;
}

static PyObject *section_make(profiler_object *profiler, PyObject *name)
{
    core_text text;
    if (core_text_get(name, "section() name", &text) != 0) {
        return NULL;
    }
    PyTypeObject *type =
        (PyTypeObject *)profiler->state->slot[CORE_PROFILER_SECTION_TYPE];
    profiler_section *self = (profiler_section *)type->tp_alloc(type, 0);
    if (self) {
        self->call = section_call;
        Py_INCREF(profiler);
        self->profiler = profiler;
        Py_INCREF(name);
        self->name = name;
        Py_INCREF(Py_None);
        self->category = Py_None;
        self->phase = sw_phase_of_name(text.data, (size_t)text.length);
    }
    core_text_release(&text);
    return (PyObject *)self;
}

/* The section of a name that is exactly a str. New reference. */
static PyObject *section_intern(profiler_object *profiler, PyObject *name)
{
    PyObject *found = PyDict_GetItemWithError(profiler->sections, name);
    if (found || PyErr_Occurred()) {
        Py_XINCREF(found);
        return found;
    }
    PyObject *kept = profiler_name_kept(profiler->sections, name);
    PyObject *made = kept ? section_make(profiler, kept) : NULL;
    if (made) {
        /* There may be one of that name, and be it that another thread has made it meanwhile; it is kept. */
        found = PyDict_SetDefault(profiler->sections, kept, made);
        Py_XINCREF(found);
        Py_DECREF(made);
    }
    Py_XDECREF(kept);
    return found;
}

static int section_set(profiler_section *self, PyObject *category, PyObject *phase)
{
    if (phase != Py_None) {
        const int number = core_phase_number(phase);
        if (number < 0) {
            return -1;
        }
        if (number != self->phase && !profiler_is_open(self)) {
            self->phase = number;
            self->handle = NULL;
        }
    }
    if (category != Py_None) {
        if (!PyUnicode_Check(category)) {
            PyErr_Format(PyExc_TypeError, "section() category must be str, not %.100s",
                         Py_TYPE(category)->tp_name);
            return -1;
        }
        Py_INCREF(category);
        Py_SETREF(self->category, category);
    }
    return 0;
}

PyObject *profiler_section_get(profiler_object *profiler, PyObject *name,
                               PyObject *category, PyObject *phase)
{
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "section() name must be str, not %.100s",
                     Py_TYPE(name)->tp_name);
        return NULL;
    }
    /* A subclass of str could compare in ways of its own. */
    PyObject *exact = PyUnicode_FromObject(name);
    PyObject *found = exact ? section_intern(profiler, exact) : NULL;
    Py_XDECREF(exact);
    if (found && section_set((profiler_section *)found, category, phase) != 0) {
        Py_CLEAR(found);
    }
    return found;
}

profiler_section *profiler_section_named(profiler_object *profiler, const char *name)
{
    PyObject *text = PyUnicode_FromString(name);
    PyObject *found =
        text ? profiler_section_get(profiler, text, Py_None, Py_None) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(found);
    return (profiler_section *)found;
}

/* --- The type --------------------------------------------------------------------- */

static int section_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((profiler_section *)object)->profiler);
    return 0;
}

static void section_dealloc(PyObject *object)
{
    profiler_section *self = (profiler_section *)object;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(object);
    if (self->weak) {
        PyObject_ClearWeakRefs(object);
    }
    profiler_stats_clear(&self->stats);
    profiler_ring_clear(&self->values);
    profiler_ring_clear(&self->memory);
    Py_CLEAR(self->name);
    Py_CLEAR(self->category);
    Py_CLEAR(self->profiler);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *section_repr(PyObject *object)
{
    const profiler_section *self = (profiler_section *)object;
    return PyUnicode_FromFormat("<section %R of the profiler %R: %llu calls>", self->name,
                                self->profiler->name,
                                (unsigned long long)self->stats.calls);
}

static PyObject *section_phase(PyObject *object, void *Py_UNUSED(closure))
{
    const char *name = sw_phase_name((unsigned)((profiler_section *)object)->phase);
    if (!name) {
        Py_RETURN_NONE;
    }
    return PyUnicode_FromString(name);
}

/* A copy belongs to the copy of its profiler. */
static PyObject *section_reduce(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    profiler_section *self = (profiler_section *)object;
    PyObject *operators = PyImport_ImportModule("operator");
    PyObject *get = operators ? PyObject_CallMethod(operators, "methodcaller", "sOON",
                                                    "section", self->name, self->category,
                                                    section_phase(object, NULL))
                              : NULL;
    Py_XDECREF(operators);
    return get ? Py_BuildValue("N(O)", get, self->profiler) : NULL;
}

static PyMethodDef section_methods[] = {
    {"__reduce__", section_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef section_getset[] = {
    {"phase", section_phase, NULL,
     PyDoc_STR("Phase of the step that its time counts for in a recording, or None."),
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef section_members[] = {
    {"name", T_OBJECT_EX, offsetof(profiler_section, name), READONLY,
     PyDoc_STR("Name of the section.")},
    {"category", T_OBJECT_EX, offsetof(profiler_section, category), READONLY,
     PyDoc_STR("What the program says it belongs to, or None.")},
    {"profiler", T_OBJECT_EX, offsetof(profiler_section, profiler), READONLY,
     PyDoc_STR("Whose section it is.")},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(profiler_section, call), READONLY,
     NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(profiler_section, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyDoc_STRVAR(section_doc,
             "A section of a profiler: a context manager and a decorator.\n\n"
             "    load = p.section(\"load\")\n"
             "    with load:\n"
             "        batch = next(batches)\n\n"
             "    @load\n"
             "    def read(path): ...\n");

static PyType_Slot section_slots[] = {
    {Py_tp_doc, (void *)section_doc},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, section_traverse},
    {Py_tp_dealloc, section_dealloc},
    {Py_tp_repr, section_repr},
    {Py_tp_methods, section_methods},
    {Py_tp_members, section_members},
    {Py_tp_getset, section_getset},
    {0, NULL},
};

static PyType_Spec section_spec = {
    .name = "stepwatch._core.profiler_section",
    .basicsize = sizeof(profiler_section),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = section_slots,
};

int profiler_section_add(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    if (core_type_add(module, CORE_PROFILER_SECTION_TYPE, &section_spec) != 0) {
        return -1;
    }
    PyTypeObject *type = (PyTypeObject *)state->slot[CORE_PROFILER_SECTION_TYPE];
    type->tp_new = NULL; /* profilers make them */
    return core_with_add(type, &enter_method, &exit_method);
}
