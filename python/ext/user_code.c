/* The user's own code, told from the standard library, installed packages and this one.
 *
 * A file's answer never changes, so it is kept by the file name object: code objects of one file share it. */
#include "user_code.h"
#include <opcode.h>
#if PY_VERSION_HEX >= 0x030d0000
#include <opcode_ids.h>
#endif
#include <string.h>
#if PY_VERSION_HEX < 0x030b0000
#include <frameobject.h>
#endif

/* str → True or False, in the main interpreter. */
static PyObject *known;
/* Folders that are not the user's, each with a slash at its end. Made once; other interpreters only read the text. */
static PyObject *foreign;

static void foreign_add(PyObject *path)
{
    if (path && PyUnicode_Check(path) && PyUnicode_GetLength(path) > 1) {
        PyObject *folder = PyUnicode_FromFormat("%U/", path);
        if (folder) {
            (void)PyList_Append(foreign, folder);
            Py_DECREF(folder);
        }
    }
    PyErr_Clear();
}

/* The standard library lies where its os module does. */
static void foreign_find(PyObject *module)
{
    PyObject *os = PyImport_ImportModule("os");
    PyObject *own = PyModule_GetFilenameObject(module);
    PyObject *files[] = {os ? PyModule_GetFilenameObject(os) : NULL, own};
    for (size_t i = 0; i < 2; i++) {
        if (files[i]) {
            const Py_ssize_t length = PyUnicode_GetLength(files[i]);
            const Py_ssize_t slash = PyUnicode_FindChar(files[i], '/', 0, length, -1);
            PyObject *folder = slash > 0 ? PyUnicode_Substring(files[i], 0, slash) : NULL;
            foreign_add(folder);
            Py_XDECREF(folder);
            Py_DECREF(files[i]);
        }
        core_error_forget();
    }
    Py_XDECREF(os);
}

static bool is_user_file(PyObject *file)
{
    Py_ssize_t length = 0;
    const char *text = PyUnicode_AsUTF8AndSize(file, &length);
    if (!text) {
        PyErr_Clear();
        return false;
    }
    if (strstr(text, "/site-packages/") || strstr(text, "/dist-packages/")) {
        return false;
    }
    if (text[0] == '<') {
        /* A cell of a notebook or a prompt is the user's; frozen modules and generated code are not. */
        return strncmp(text, "<ipython-input", 14) == 0 || strcmp(text, "<stdin>") == 0 ||
               strcmp(text, "<string>") == 0;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(foreign); i++) {
        if (PyUnicode_Tailmatch(file, PyList_GET_ITEM(foreign, i), 0, length, -1) == 1) {
            return false;
        }
    }
    PyErr_Clear();
    return true;
}

bool core_is_user_file(PyObject *file)
{
    if (!core_in_main_interpreter()) {
        return foreign && is_user_file(file);
    }
    PyObject *answer = PyDict_GetItemWithError(known, file);
    if (!answer) {
        PyErr_Clear();
        if (PyDict_Size(known) > 65536) {
            PyDict_Clear(known);
        }
        answer = is_user_file(file) ? Py_True : Py_False;
        if (PyDict_SetItem(known, file, answer) != 0) {
            PyErr_Clear();
        }
    }
    return answer == Py_True;
}

bool core_is_user_code(PyCodeObject *code)
{
    return core_is_user_file(code->co_filename);
}

/* The innermost frame of the user's code, from `frame` outward; takes its reference and gives one. */
static PyFrameObject *user_frame(PyFrameObject *frame, core_user_site *out)
{
    while (frame) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        if (core_is_user_code(code)) {
            *out = (core_user_site){code, PyFrame_GetLineNumber(frame)};
            return frame;
        }
        Py_DECREF(code);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    return NULL;
}

bool core_user_site_find(core_user_site *out)
{
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    frame = user_frame(frame, out);
    Py_XDECREF(frame);
    return frame != NULL;
}

uint64_t core_user_place(void)
{
    enum { FRAMES = 6 }; /* Enough for helpers around an iterator. */
    uint64_t place = 0;
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    core_user_site site;
    for (int i = 0; i < FRAMES && (frame = user_frame(frame, &site)); i++) {
        place = (place ^ (uint64_t)(uintptr_t)site.code ^ (uint64_t)site.line) *
                UINT64_C(0x9e3779b97f4a7c15);
        Py_DECREF(site.code);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return place;
}

/* The instruction that the frame is at. */
static int opcode_at(PyFrameObject *frame, PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030b0000
    const int at = PyFrame_GetLasti(frame);
    PyObject *bytes = PyCode_GetCode(code);
#else
    const int at = frame->f_lasti * (PY_VERSION_HEX >= 0x030a0000 ? 2 : 1);
    PyObject *bytes = code->co_code;
    Py_XINCREF(bytes);
#endif
    int opcode = -1;
    if (bytes && at >= 0 && at < PyBytes_GET_SIZE(bytes)) {
        opcode = (unsigned char)PyBytes_AS_STRING(bytes)[at];
    }
    Py_XDECREF(bytes);
    core_error_forget();
    return opcode;
}

bool core_user_at_for(void)
{
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    core_user_site site;
    while ((frame = user_frame(frame, &site))) {
        const bool gives =
            site.code->co_flags & CO_GENERATOR ||
            PyUnicode_CompareWithASCIIString(site.code->co_name, "__next__") == 0;
        const int opcode = gives ? -1 : opcode_at(frame, site.code);
        PyFrameObject *back = gives ? PyFrame_GetBack(frame) : NULL;
        Py_DECREF(site.code);
        Py_DECREF(frame);
        frame = back;
        if (!gives) {
            return opcode == FOR_ITER;
        }
    }
    return false;
}

int core_user_code_add(PyObject *module)
{
    if (known || !core_in_main_interpreter()) {
        return 0;
    }
    known = PyDict_New();
    foreign = PyList_New(0);
    if (!known || !foreign) {
        return -1;
    }
    foreign_find(module);
    return 0;
}
