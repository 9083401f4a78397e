/* stepwatch.section: a context manager that opens and closes one section of the recorder.
 *
 * There is one object per name, so that `with stepwatch.section("forward")` finds the handle of the
 * recorder with one look into a dict. It has no state of its own: the recorder keeps the stack of
 * open sections per thread, hence one object serves any number of threads and nested uses. */
#include "core.h"
#include <stepwatch/record.h>

typedef struct section_object {
    PyObject_HEAD sw_section *handle;
    PyObject *name;
} section_object;

static PyObject *section_make(PyTypeObject *type, PyObject *name)
{
    core_text text;
    if (core_text_get(name, "section() argument", &text) != 0) {
        return NULL;
    }
    section_object *self = (section_object *)type->tp_alloc(type, 0);
    if (self) {
        const size_t length = (size_t)text.length;
        self->handle =
            sw_section_get_n(text.data, length, sw_phase_of_name(text.data, length));
        Py_INCREF(name);
        self->name = name;
    }
    core_text_release(&text);
    return (PyObject *)self;
}

static PyObject *section_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"name", NULL};
    PyObject *name;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U:section", keywords, &name)) {
        return NULL;
    }
    core_state *state = PyType_GetModuleState(type);
    if (!state) {
        return NULL;
    }
    PyObject *known = PyDict_GetItemWithError(state->slot[CORE_SECTIONS], name);
    if (known) {
        Py_INCREF(known);
        return known;
    }
    if (PyErr_Occurred()) {
        return NULL;
    }
    PyObject *made = section_make(type, name);
    if (!made) {
        return NULL;
    }
    /* Another thread may have made it meanwhile; whoever came first is kept. */
    known = PyDict_SetDefault(state->slot[CORE_SECTIONS], name, made);
    Py_XINCREF(known);
    Py_DECREF(made);
    return known;
}

static void section_dealloc(section_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(self->name);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *section_repr(section_object *self)
{
    return PyUnicode_FromFormat("stepwatch.section(%R)", self->name);
}

static PyObject *section_enter(section_object *self, PyObject *Py_UNUSED(ignored))
{
    sw_begin(self->handle);
    Py_INCREF(self);
    return (PyObject *)self;
}

static PyObject *section_exit(section_object *self, PyObject *const *args,
                              Py_ssize_t count)
{
    if (count != 3) {
        PyErr_Format(PyExc_TypeError, "__exit__ expected 3 arguments, got %zd", count);
        return NULL;
    }
    if (args[0] == Py_None) {
        sw_end(self->handle);
    } else {
        sw_end_error(self->handle);
    }
    /* None: the exception goes on as it was. */
    Py_RETURN_NONE;
}

static PyObject *section_get_name(section_object *self, void *Py_UNUSED(closure))
{
    Py_INCREF(self->name);
    return self->name;
}

static PyMethodDef section_methods[] = {
    {"__enter__", (PyCFunction)section_enter, METH_NOARGS,
     PyDoc_STR("Open the section.")},
    {"__exit__", (PyCFunction)(void (*)(void))section_exit, METH_FASTCALL,
     PyDoc_STR("Close the section; an exception is counted and passes.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef section_getset[] = {
    {"name", (getter)section_get_name, NULL, PyDoc_STR("Name of the section."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(section_doc, "section(name)\n--\n\n"
                          "Context manager that times what runs inside it.\n\n"
                          "The same name gives the same object.");

static PyType_Slot section_slots[] = {
    {Py_tp_doc, (void *)section_doc},
    {Py_tp_new, section_new},
    {Py_tp_dealloc, section_dealloc},
    {Py_tp_repr, section_repr},
    {Py_tp_methods, section_methods},
    {Py_tp_getset, section_getset},
    {0, NULL},
};

/* Not a base type: the lookup of the module's state relies on the type being this one. */
static PyType_Spec section_spec = {
    .name = "stepwatch.section",
    .basicsize = sizeof(section_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = section_slots,
};

int core_section_add(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    state->slot[CORE_SECTIONS] = PyDict_New();
    if (!state->slot[CORE_SECTIONS]) {
        return -1;
    }
    return core_type_add(module, CORE_SECTION_TYPE, &section_spec);
}
