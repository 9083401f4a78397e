/* Methods of tensors that may wait for a device: item, cpu, to …
 *
 * In torch these are method descriptors of C, and torch.compile takes them for that: a Python function in their place has
 * frames of its own, which it compiles, warns about and stops at. What is put there is therefore a method descriptor too, of
 * the same type, name and text, so that tracing finds what it knows. On a tensor in host memory a call costs two calls into
 * torch more than before, none of which makes an object. */
#include "waits.h"
#include <string.h>

/* X(name of the method, what its calls are) */
#define CALLS(X)                                                                         \
    X(item, ASKS)                                                                        \
    X(__bool__, ASKS)                                                                    \
    X(__float__, ASKS)                                                                   \
    X(__int__, ASKS)                                                                     \
    X(__index__, ASKS)                                                                   \
    X(tolist, FETCHES)                                                                   \
    X(cpu, FETCHES)                                                                      \
    X(numpy, FETCHES)                                                                    \
    X(cuda, SENDS)                                                                       \
    X(to, MOVES)

enum sort {
    ASKS,    /* for a value */
    FETCHES, /* a copy in host memory */
    SENDS,   /* a copy to the device */
    MOVES    /* it depends on the arguments */
};

enum call {
#define CALL_ENUM(name, sort) CALL_##name,
    CALLS(CALL_ENUM)
#undef CALL_ENUM
        CALL_COUNT
};

typedef struct tensor_call {
    const char *name;
    enum sort sort;
    PyCFunction function;
    PyMethodDef method;  /* ours */
    PyObject *original;  /* the method descriptor that stood there */
    PyObject *call_name; /* "Tensor.item" */
} tensor_call;

/* What torch says of a tensor, as C functions. */
static struct {
    PyObject *base; /* the type of all tensors */
    PyObject *device;
    getter is_cpu, is_meta;
    void *is_cpu_closure, *is_meta_closure;
    PyCFunction overridden; /* whether a subclass or a mode wants to see what is called */
    PyObject *overridden_self;
    PyObject *text_device, *text_non_blocking, *text_type, *text_nbytes, *text_is_pinned;
} torch;

static sw_section *gate, *sync_section, *h2d_section;

static PyObject *tensor_called(enum call which, PyObject *self, PyObject *const *args,
                               Py_ssize_t count, PyObject *names);

#define CALL_FUNCTION(name, sort)                                                        \
    static PyObject *call_##name(PyObject *self, PyObject *const *args,                  \
                                 Py_ssize_t count, PyObject *names)                      \
    {                                                                                    \
        return tensor_called(CALL_##name, self, args, count, names);                     \
    }
CALLS(CALL_FUNCTION)

static tensor_call calls[CALL_COUNT] = {
#define CALL_ENTRY(name, sort)                                                           \
    {#name, sort, (PyCFunction)(void (*)(void))call_##name, {0}, NULL, NULL},
    CALLS(CALL_ENTRY)};

/* --- The call itself ---------------------------------------------------------------- */

/* Calls what stood there, with the arguments as they came. */
static PyObject *forward(const tensor_call *call, PyObject *self, PyObject *const *args,
                         Py_ssize_t count, PyObject *names)
{
    const size_t given = (size_t)(count + (names ? PyTuple_GET_SIZE(names) : 0));
    PyObject *few[8];
    PyObject **all = few;
    if (given >= sizeof few / sizeof few[0]) {
        all = PyMem_Malloc((given + 1) * sizeof *all);
        if (!all) {
            return PyErr_NoMemory();
        }
    }
    all[0] = self;
    if (given) {
        memcpy(all + 1, args, given * sizeof *all);
    }
    PyObject *result = PyObject_Vectorcall(call->original, all, (size_t)count + 1, names);
    if (all != few) {
        PyMem_Free(all);
    }
    return result;
}

/* What a function of torch answers; false also when it failed. */
static bool is_true(PyObject *answer)
{
    const bool truth = answer == Py_True;
    if (!answer) {
        PyErr_Clear();
    }
    Py_XDECREF(answer);
    return truth;
}

static bool in_host_memory(PyObject *tensor)
{
    return is_true(torch.is_cpu(tensor, torch.is_cpu_closure));
}

/* An argument by position or by name, borrowed; NULL: it is not there. */
static PyObject *argument(Py_ssize_t position, PyObject *name, PyObject *const *args,
                          Py_ssize_t count, PyObject *names)
{
    if (position >= 0 && position < count) {
        return args[position];
    }
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++) {
        if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i), name) == 0) {
            return args[count + i];
        }
    }
    PyErr_Clear();
    return NULL;
}

/* Where `to` goes: 0 host memory, 1 a device, -1 it stays, or nobody can tell. */
static int goal_of_text(const char *text)
{
    if (!text) {
        PyErr_Clear();
        return -1;
    }
    if (strncmp(text, "meta", 4) == 0) {
        return -1;
    }
    return strncmp(text, "cpu", 3) != 0;
}

static int goal_of(PyObject *place)
{
    if (!place) {
        return -1;
    }
    if (PyUnicode_Check(place)) {
        return goal_of_text(PyUnicode_AsUTF8(place));
    }
    if (PyLong_CheckExact(place)) {
        return 1; /* the number of a device */
    }
    if (Py_TYPE(place) == (PyTypeObject *)torch.device) {
        PyObject *type = PyObject_GetAttr(place, torch.text_type);
        const int goal = goal_of_text(type ? PyUnicode_AsUTF8(type) : NULL);
        Py_XDECREF(type);
        return goal;
    }
    if (PyObject_TypeCheck(place, (PyTypeObject *)torch.base)) {
        return !in_host_memory(place);
    }
    return -1; /* a dtype */
}

/* Tensors that stand for others while something is traced hold nothing that could be moved. */
static bool is_stand_in(PyObject *tensor)
{
    const char *name = strrchr(Py_TYPE(tensor)->tp_name, '.');
    name = name ? name + 1 : Py_TYPE(tensor)->tp_name;
    return strcmp(name, "FakeTensor") == 0 || strcmp(name, "FunctionalTensor") == 0 ||
           is_true(torch.is_meta(tensor, torch.is_meta_closure));
}

static bool says_non_blocking(const tensor_call *call, PyObject *const *args,
                              Py_ssize_t count, PyObject *names)
{
    /* to(device, dtype, non_blocking), to(other, non_blocking), cuda(device, non_blocking) */
    Py_ssize_t position = -1;
    if (call->sort == SENDS) {
        position = 1;
    } else if (call->sort == MOVES && count) {
        position = PyObject_TypeCheck(args[0], (PyTypeObject *)torch.base) ? 1 : 2;
    }
    return argument(position, torch.text_non_blocking, args, count, names) == Py_True;
}

static uint64_t bytes_of(PyObject *tensor)
{
    PyObject *number = PyObject_GetAttr(tensor, torch.text_nbytes);
    const uint64_t bytes = number ? PyLong_AsUnsignedLongLong(number) : 0;
    Py_XDECREF(number);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return bytes;
}

/* Times a call that waits, and counts it if it went well. */
static PyObject *call_timed(const tensor_call *call, enum sw_wait_kind kind,
                            PyObject *self, PyObject *const *args, Py_ssize_t count,
                            PyObject *names)
{
    core_wait wait = {.call = call->call_name, .kind = kind, .bytes = bytes_of(self)};
    if (kind != SW_WAIT_SYNC) {
        wait.unblocked = says_non_blocking(call, args, count, names);
        wait.pinned =
            kind == SW_WAIT_H2D &&
            is_true(PyObject_CallMethodObjArgs(self, torch.text_is_pinned, NULL));
    }
    /* A copy that nobody waits for is only launched; that is part of what the program does there. */
    sw_section *section = kind == SW_WAIT_H2D ? h2d_section : sync_section;
    if (kind == SW_WAIT_D2H && wait.unblocked) {
        section = NULL;
    }
    if (section) {
        sw_begin(section);
    }
    wait.begin = sw_now();
    PyObject *result = forward(call, self, args, count, names);
    wait.end = sw_now();
    if (section && result) {
        sw_end(section);
    } else if (section) {
        sw_end_error(section);
    }
    if (result) {
        core_waited(&wait);
    }
    return result;
}

static PyObject *tensor_called(enum call which, PyObject *self, PyObject *const *args,
                               Py_ssize_t count, PyObject *names)
{
    const tensor_call *call = &calls[which];
    /* Where a subclass or a mode is asked first, it calls this again when it has done its part. */
    if (!SW_GATE(gate) || is_true(torch.overridden(torch.overridden_self, self))) {
        return forward(call, self, args, count, names);
    }
    const bool here = in_host_memory(self);
    int goal = call->sort == SENDS;
    if (call->sort == MOVES) {
        goal = goal_of(argument(0, torch.text_device, args, count, names));
    }
    if (here ? goal != 1 : goal != 0) {
        return forward(call, self, args, count, names);
    }
    if (is_stand_in(self)) {
        return forward(call, self, args, count, names);
    }
    enum sw_wait_kind kind = here ? SW_WAIT_H2D : SW_WAIT_D2H;
    if (call->sort == ASKS) {
        kind = SW_WAIT_SYNC;
    }
    return call_timed(call, kind, self, args, count, names);
}

/* --- Putting them in place ---------------------------------------------------------------- */

static int getter_of(PyObject *descriptor, getter *out, void **closure)
{
    if (Py_TYPE(descriptor) != &PyGetSetDescr_Type) {
        PyErr_SetString(PyExc_TypeError, "an attribute of tensors is not what it was");
        return -1;
    }
    PyGetSetDef *const def = ((PyGetSetDescrObject *)descriptor)->d_getset;
    *out = def->get;
    *closure = def->closure;
    return 0;
}

static int texts_make(void)
{
    torch.text_device = PyUnicode_InternFromString("device");
    torch.text_non_blocking = PyUnicode_InternFromString("non_blocking");
    torch.text_type = PyUnicode_InternFromString("type");
    torch.text_nbytes = PyUnicode_InternFromString("nbytes");
    torch.text_is_pinned = PyUnicode_InternFromString("is_pinned");
    return PyErr_Occurred() ? -1 : 0;
}

/* The descriptor that stands for one method of tensors; NULL with an exception set, or without: there is no such method. */
static PyObject *descriptor_make(tensor_call *call)
{
    PyObject *original = PyObject_GetAttrString(torch.base, call->name);
    if (!original || Py_TYPE(original) != &PyMethodDescr_Type) {
        Py_XDECREF(original);
        PyErr_Clear();
        return NULL;
    }
    Py_XSETREF(call->original, original);
    Py_XSETREF(call->call_name, PyUnicode_FromFormat("Tensor.%s", call->name));
    call->method = *((PyMethodDescrObject *)original)->d_method;
    call->method.ml_meth = call->function;
    call->method.ml_flags = METH_FASTCALL | METH_KEYWORDS;
    return call->call_name
               ? PyDescr_NewMethod(((PyMethodDescrObject *)original)->d_common.d_type,
                                   &call->method)
               : NULL;
}

static PyObject *tensor_calls(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *base, *device, *overridden, *is_cpu, *is_meta;
    if (!PyArg_ParseTuple(args, "O!O!O!OO:tensor_calls", &PyType_Type, &base,
                          &PyType_Type, &device, &PyCFunction_Type, &overridden, &is_cpu,
                          &is_meta)) {
        return NULL;
    }
    if (PyCFunction_GET_FLAGS(overridden) != METH_O) {
        PyErr_SetString(PyExc_TypeError, "a function of torch is not what it was");
        return NULL;
    }
    if (getter_of(is_cpu, &torch.is_cpu, &torch.is_cpu_closure) != 0 ||
        getter_of(is_meta, &torch.is_meta, &torch.is_meta_closure) != 0 ||
        texts_make() != 0) {
        return NULL;
    }
    torch.overridden = PyCFunction_GET_FUNCTION(overridden);
    torch.overridden_self = PyCFunction_GET_SELF(overridden);
    /* What was put in place stays usable for ever, and so must what it uses. */
    Py_INCREF(base);
    Py_INCREF(device);
    Py_INCREF(overridden);
    torch.base = base;
    torch.device = device;
    PyObject *made = PyDict_New();
    for (size_t i = 0; made && i < CALL_COUNT; i++) {
        PyObject *descriptor = descriptor_make(&calls[i]);
        if (!descriptor && !PyErr_Occurred()) {
            continue;
        }
        if (!descriptor || PyDict_SetItemString(made, calls[i].name, descriptor) != 0) {
            Py_CLEAR(made);
        }
        Py_XDECREF(descriptor);
    }
    return made;
}

static PyMethodDef tensor_calls_methods[] = {
    {"tensor_calls", tensor_calls, METH_VARARGS,
     PyDoc_STR(
         "tensor_calls(base, device, overridden, is_cpu, is_meta, /)\n--\n\n"
         "Method descriptors by name, for the methods of tensors that may wait for a "
         "device.")},
    {NULL, NULL, 0, NULL},
};

int core_tensor_calls_add(PyObject *module)
{
    gate = sw_section_get_n("", 0, SW_PHASE_INHERIT);
    sync_section = sw_section_get_n("sync", 4, SW_PHASE_SYNC);
    h2d_section = sw_section_get_n("h2d", 3, SW_PHASE_H2D);
    return PyModule_AddFunctions(module, tensor_calls_methods);
}
