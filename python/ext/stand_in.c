#include "stand_in.h"

static PyObject *inner_of(PyObject *object)
{
    return ((core_stand_in *)object)->inner;
}

Py_ssize_t core_stand_in_length(PyObject *object)
{
    return PyObject_Size(inner_of(object));
}

int core_stand_in_bool(PyObject *object)
{
    return PyObject_IsTrue(inner_of(object));
}

PyObject *core_stand_in_length_hint(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    PyObject *inner = inner_of(object);
    const Py_ssize_t length = inner ? PyObject_LengthHint(inner, 0) : 0;
    return length < 0 ? NULL : PyLong_FromSsize_t(length);
}

PyObject *core_stand_in_close(PyObject *inner)
{
    PyObject *close = inner ? PyObject_GetAttrString(inner, "close") : NULL;
    PyObject *result = close ? PyObject_CallNoArgs(close) : NULL;
    if (!close && (!inner || PyErr_ExceptionMatches(PyExc_AttributeError))) {
        PyErr_Clear();
        Py_INCREF(Py_None);
        result = Py_None;
    }
    Py_XDECREF(close);
    return result;
}

PyObject *core_stand_in_getattr(PyObject *object, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(object, name);
    PyObject *inner = inner_of(object);
    if (found || !inner || !PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return found;
    }
    PyErr_Clear();
    return PyObject_GetAttr(inner, name);
}
