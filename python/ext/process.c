/* This Python as the trace sees it: which one it is, which frameworks it has loaded, and the sampler that begins and
 * ends with a recording. */
#include "core.h"
#include <stdlib.h>
#include <stepwatch/stepwatch.h>
#include <string.h>
#include <strings.h>

/* What explains how fast a training program runs. */
static const char *const frameworks[] = {
    "accelerate",   "apex",     "bitsandbytes", "cupy",
    "dask",         "datasets", "deepspeed",    "diffusers",
    "flax",         "horovod",  "ignite",       "jax",
    "jaxlib",       "keras",    "lightgbm",     "lightning",
    "mlx",          "numba",    "numpy",        "onnxruntime",
    "optax",        "paddle",   "pandas",       "peft",
    "polars",       "pyarrow",  "ray",          "pytorch_lightning",
    "scipy",        "sklearn",  "tensorflow",   "timm",
    "tokenizers",   "torch",    "torchaudio",   "torchvision",
    "transformers", "triton",   "xgboost",      "PIL",
};

bool core_is_off(void)
{
    static const char *const words[] = {"0", "false", "no", "off"};
    const char *said = getenv("STEPWATCH_ENABLED");
    for (size_t i = 0; said && i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(said, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Puts a string object as a fact; what is none says nothing. */
static void put(const char *key, PyObject *object)
{
    const char *text = NULL;
    if (object && PyUnicode_Check(object)) {
        text = PyUnicode_AsUTF8(object);
    }
    if (text && *text) {
        sw_fact(key, text);
    }
    core_error_forget();
}

/* Facts of whatever is loaded by now. Nothing is imported, and a module that fails to tell its version has none. */
static void put_frameworks(void)
{
    PyObject *modules = PySys_GetObject("modules");
    if (!modules || !PyDict_Check(modules)) {
        return;
    }
    for (size_t i = 0; i < sizeof frameworks / sizeof frameworks[0]; i++) {
        PyObject *module = PyDict_GetItemString(modules, frameworks[i]);
        if (!module || module == Py_None) {
            continue;
        }
        char key[64];
        PyOS_snprintf(key, sizeof key, "framework.%s", frameworks[i]);
        Py_INCREF(module);
        PyObject *version = PyObject_GetAttrString(module, "__version__");
        put(key, version);
        Py_XDECREF(version);
        Py_DECREF(module);
    }
}

/* Calls a function of the module with a number, or without one where it is negative. */
static int call(PyObject *module, const char *name, double number)
{
    PyObject *function = PyObject_GetAttrString(module, name);
    if (!function) {
        PyErr_Clear();
        return 0;
    }
    PyObject *result = number < 0 ? PyObject_CallNoArgs(function)
                                  : PyObject_CallFunction(function, "d", number);
    Py_DECREF(function);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

int core_process_began(PyObject *module)
{
    char text[32];
    sw_option_value("sampler_hz", text, sizeof text);
    const double hertz = *text ? PyOS_string_to_double(text, NULL, NULL) : 0;
    if (hertz > 0 && call(module, "sampler_start", hertz) != 0) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) {
            return -1;
        }
        /* The recording goes on without samples. */
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        PyErr_NormalizeException(&type, &value, &trace);
        PySys_FormatStderr("stepwatch: there are no samples: %S\n", value);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }
    PyErr_Clear();
    if (core_memory_began() != 0) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) {
            return -1;
        }
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        PyErr_NormalizeException(&type, &value, &trace);
        PySys_FormatStderr("stepwatch: allocations are not counted: %S\n", value);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }
    return 0;
}

void core_process_ends(PyObject *module)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    put_frameworks();
    if (call(module, "sampler_stop", -1) != 0) {
        core_error_forget();
    }
    PyErr_Restore(type, value, trace);
}

PyDoc_STRVAR(
    take_constants_doc,
    "_take_constants(code, other, /)\n--\n\n"
    "Give code that has not begun to run the constants of its copy, the functions\n"
    "that it will make among them.");

/* A program's code is made by the interpreter itself and cannot be replaced by another; before 3.12 the functions in it
 * have to be, to be watched. */
static PyObject *take_constants(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyCodeObject *code, *other;
    if (!PyArg_ParseTuple(args, "O!O!:_take_constants", &PyCode_Type, &code, &PyCode_Type,
                          &other)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(code->co_consts) != PyTuple_GET_SIZE(other->co_consts)) {
        PyErr_SetString(PyExc_ValueError, "the codes are not copies of each other");
        return NULL;
    }
    PyObject *before = code->co_consts;
    Py_INCREF(other->co_consts);
    code->co_consts = other->co_consts;
    Py_DECREF(before);
    Py_RETURN_NONE;
}

static PyMethodDef process_methods[] = {
    {"_take_constants", take_constants, METH_VARARGS, take_constants_doc},
    {NULL, NULL, 0, NULL},
};

int core_process_add(PyObject *module)
{
    char version[64];
    PyOS_snprintf(version, sizeof version, "%s", Py_GetVersion());
    version[strcspn(version, " ")] = '\0';
    sw_fact("python", version);
    PyObject *implementation = PySys_GetObject("implementation");
    PyObject *name = NULL;
    if (implementation) {
        name = PyObject_GetAttrString(implementation, "name");
    }
    put("python.implementation", name);
    Py_XDECREF(name);
    put("python.executable", PySys_GetObject("executable"));
    return PyModule_AddFunctions(module, process_methods);
}
