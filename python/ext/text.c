#include "core.h"

int core_text_get(PyObject *object, const char *what, core_text *out)
{
    out->owner = NULL;
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s must be str, not %.100s", what,
                     Py_TYPE(object)->tp_name);
        return -1;
    }
    out->data = PyUnicode_AsUTF8AndSize(object, &out->length);
    if (out->data) {
        return 0;
    }
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
        return -1;
    }
    PyErr_Clear();
    out->owner = PyUnicode_AsEncodedString(object, "utf-8", "backslashreplace");
    if (!out->owner) {
        return -1;
    }
    out->data = PyBytes_AS_STRING(out->owner);
    out->length = PyBytes_GET_SIZE(out->owner);
    return 0;
}

void core_text_release(core_text *text)
{
    Py_CLEAR(text->owner);
}
