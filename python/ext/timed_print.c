/* A print that runs as a section.
 *
 * It is what print is, a builtin function of the module builtins, with its name and signature, and has no frame: a stream
 * that looks for its caller, pickle, inspect and torch.compile find what they would have found. */
#include "core.h"
#include <stepwatch/stepwatch.h>

static sw_section *section;
static PyObject *original; /* kept for ever: so are the functions made from it */
static PyMethodDef method;

static PyObject *timed(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count,
                       PyObject *names)
{
    if (!SW_GATE(section)) {
        return PyObject_Vectorcall(original, args, (size_t)count, names);
    }
    sw_section_enter(section);
    PyObject *result = PyObject_Vectorcall(original, args, (size_t)count, names);
    if (result) {
        sw_end(section);
    } else {
        sw_end_error(section);
    }
    return result;
}

static PyObject *timed_print(PyObject *Py_UNUSED(module), PyObject *function)
{
    if (Py_TYPE(function) != &PyCFunction_Type) {
        PyErr_SetString(PyExc_TypeError, "print is not Python's own");
        return NULL;
    }
    const PyCFunctionObject *from = (PyCFunctionObject *)function;
    if (!original) {
        Py_INCREF(function);
        original = function;
        method = *from->m_ml;
        method.ml_meth = (PyCFunction)(void (*)(void))timed;
        method.ml_flags = METH_FASTCALL | METH_KEYWORDS;
    }
    if (original != function) {
        PyErr_SetString(PyExc_ValueError, "there is a timed print already");
        return NULL;
    }
    return PyCFunction_NewEx(&method, from->m_self, from->m_module);
}

static PyMethodDef timed_print_methods[] = {
    {"timed_print", timed_print, METH_O,
     PyDoc_STR("timed_print(print, /)\n--\n\nA print whose calls are timed.")},
    {NULL, NULL, 0, NULL},
};

int core_timed_print_add(PyObject *module)
{
    section = sw_section_get_n("print", 5, SW_PHASE_LOGGING);
    return PyModule_AddFunctions(module, timed_print_methods);
}
