/* stepwatch.profile: a function that runs as a section.
 *
 * A decorated function is an object of C: a call of it is the gate, the section's begin, the call with the arguments as
 * they came, and the section's end. It takes part in attribute access as functions do (Py_TPFLAGS_METHOD_DESCRIPTOR), so
 * a decorated method is called without a bound method between.
 *
 * What is not called once and done — coroutines, generators — is wrapped in Python (stepwatch/_decorators.py), for
 * inspect and asyncio must find real functions there; `stretches` is what those wrappers time with. */
#include "core.h"
#include "profiler.h"
#include "section.h"
#include "unseen.h"
#include <stddef.h>
#include <string.h>
#include <structmember.h>

/* --- Decorated functions ---------------------------------------------------------- */

typedef struct decorated_object {
    PyObject_HEAD vectorcallfunc call;
    sw_section *handle; /* NULL: the section is a profiler's */
    PyObject *function; /* what is called */
    PyObject *section;
    PyObject *dict; /* as functools.wraps fills it, and what the program sets */
    PyObject *weak;
} decorated_object;

/* The function's own entry, so that nothing lies between: whoever called us checks what comes back. */
static inline PyObject *call_through(PyObject *function, PyObject *const *args,
                                     size_t nargsf, PyObject *names)
{
    PyTypeObject *const type = Py_TYPE(function);
    if (PyType_HasFeature(type, Py_TPFLAGS_HAVE_VECTORCALL)) {
        vectorcallfunc entry;
        memcpy(&entry, (char *)function + type->tp_vectorcall_offset, sizeof entry);
        if (entry) {
            return entry(function, args, nargsf, names);
        }
    }
    return PyObject_Vectorcall(function, args, nargsf, names);
}

static PyObject *decorated_call(PyObject *object, PyObject *const *args, size_t nargsf,
                                PyObject *names)
{
    const decorated_object *self = (decorated_object *)object;
    sw_section *const handle = self->handle;
    PyObject *const function = self->function;
    if (!SW_GATE(handle)) {
        return call_through(function, args, nargsf, names);
    }
    /* The function may drop the last reference to its decoration. */
    Py_INCREF(object);
    sw_section_enter(handle);
    PyObject *result = call_through(function, args, nargsf, names);
    if (result) {
        sw_end(handle);
    } else {
        sw_end_error(handle);
    }
    Py_DECREF(object);
    return result;
}

/* The same as a section of a profiler. */
static PyObject *decorated_call_profiler(PyObject *object, PyObject *const *args,
                                         size_t nargsf, PyObject *names)
{
    const decorated_object *self = (decorated_object *)object;
    profiler_section *const section = (profiler_section *)self->section;
    PyObject *const function = self->function;
    if (!profiler_is_enabled(section->profiler)) {
        return call_through(function, args, nargsf, names);
    }
    Py_INCREF(object);
    /* Nothing but this call has this address while it lasts. */
    const profiler_key key = {.where = &self};
    profiler_enter(section, key, true);
    PyObject *result = call_through(function, args, nargsf, names);
    profiler_leave(section, key, result ? 0 : SW_RECORD_ERROR);
    Py_DECREF(object);
    return result;
}

/* Whether it is a section, of the recorder or of a profiler. TypeError. */
static bool section_check(const core_state *state, PyObject *object)
{
    if (Py_TYPE(object) == (PyTypeObject *)state->slot[CORE_SECTION_TYPE] ||
        Py_TYPE(object) == (PyTypeObject *)state->slot[CORE_PROFILER_SECTION_TYPE]) {
        return true;
    }
    PyErr_Format(PyExc_TypeError, "'%.100s' object is not a section",
                 Py_TYPE(object)->tp_name);
    return false;
}

static bool section_is_profilers(const core_state *state, PyObject *section)
{
    return Py_TYPE(section) == (PyTypeObject *)state->slot[CORE_PROFILER_SECTION_TYPE];
}

static PyObject *decorated_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"section", "function", NULL};
    core_state *state = PyType_GetModuleState(type);
    PyObject *section, *function;
    if (!state ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "OO:decorated", keywords, &section,
                                     &function) ||
        !section_check(state, section)) {
        return NULL;
    }
    if (!PyCallable_Check(function)) {
        PyErr_Format(PyExc_TypeError, "'%.100s' object cannot be called",
                     Py_TYPE(function)->tp_name);
        return NULL;
    }
    decorated_object *self = (decorated_object *)type->tp_alloc(type, 0);
    if (!self) {
        return NULL;
    }
    if (section_is_profilers(state, section)) {
        self->call = decorated_call_profiler;
    } else {
        self->call = decorated_call;
        self->handle = ((core_section *)section)->handle;
    }
    Py_INCREF(section);
    self->section = section;
    Py_INCREF(function);
    self->function = function;
    return (PyObject *)self;
}

static PyObject *decorated_get(PyObject *self, PyObject *object,
                               PyObject *Py_UNUSED(type))
{
    if (!object || object == Py_None) {
        Py_INCREF(self);
        return self;
    }
    return PyMethod_New(self, object);
}

/* What the decoration does not have itself, the function answers: __defaults__, __code__, cache_clear of a cache. */
static PyObject *decorated_getattr(PyObject *object, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(object, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return found;
    }
    PyErr_Clear();
    return PyObject_GetAttr(((decorated_object *)object)->function, name);
}

/* Attributes of functions that change what a call does belong to the function. */
static int decorated_setattr(PyObject *object, PyObject *name, PyObject *value)
{
    static const char *const own[] = {"__defaults__", "__kwdefaults__", "__code__"};
    for (size_t i = 0; i < sizeof own / sizeof own[0] && PyUnicode_Check(name); i++) {
        if (PyUnicode_CompareWithASCIIString(name, own[i]) == 0) {
            return PyObject_SetAttr(((decorated_object *)object)->function, name, value);
        }
    }
    return PyObject_GenericSetAttr(object, name, value);
}

static PyObject *decorated_repr(PyObject *object)
{
    const decorated_object *self = (decorated_object *)object;
    return PyUnicode_FromFormat("<%R profiled as %R>", self->function,
                                self->handle ? ((core_section *)self->section)->name
                                             : ((profiler_section *)self->section)->name);
}

/* Pickled and copied as functions are: by where they are found. */
static PyObject *decorated_reduce(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    PyObject *name = PyObject_GetAttrString(object, "__qualname__");
    if (!name && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        /* A partial or another object without a name: by what it is made of. */
        PyErr_Clear();
        decorated_object *self = (decorated_object *)object;
        return Py_BuildValue("O(OO)", Py_TYPE(object), self->section, self->function);
    }
    return name;
}

static int decorated_traverse(PyObject *object, visitproc visit, void *arg)
{
    decorated_object *self = (decorated_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->function);
    Py_VISIT(self->section);
    Py_VISIT(self->dict);
    return 0;
}

static int decorated_clear(PyObject *object)
{
    /* Not the function: a call may still come, from a destructor in the same cycle. A function reaches itself only through
     * something that clears. */
    Py_CLEAR(((decorated_object *)object)->dict);
    return 0;
}

static void decorated_dealloc(PyObject *object)
{
    decorated_object *self = (decorated_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weak) {
        PyObject_ClearWeakRefs(object);
    }
    Py_CLEAR(self->dict);
    Py_CLEAR(self->function);
    Py_CLEAR(self->section);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef decorated_methods[] = {
    {"__reduce__", decorated_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef decorated_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(decorated_object, call), READONLY,
     NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(decorated_object, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(decorated_object, weak), READONLY, NULL},
    {"__stepwatch_section__", T_OBJECT_EX, offsetof(decorated_object, section), READONLY,
     PyDoc_STR("The section that calls count for.")},
    {"__stepwatch_function__", T_OBJECT_EX, offsetof(decorated_object, function),
     READONLY, PyDoc_STR("What is called.")},
    /* torch.compile of a decorated function is that of the function. */
    {"_torchdynamo_orig_callable", T_OBJECT_EX, offsetof(decorated_object, function),
     READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyObject *decorated_address(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromVoidPtr(object);
}

/* To isinstance() a decorated function is a function, as one decorated in Python would be: inspect, doctest and
 * torch.compile ask so, and everything they then look for is there. */
static PyObject *decorated_class(PyObject *object, void *Py_UNUSED(closure))
{
    PyObject *function = object;
    while (Py_TYPE(function) == Py_TYPE(object)) {
        function = ((decorated_object *)function)->function;
    }
    PyTypeObject *type = PyFunction_Check(function) ? &PyFunction_Type : Py_TYPE(object);
    Py_INCREF(type);
    return (PyObject *)type;
}

static PyGetSetDef decorated_getset[] = {
    {"__class__", decorated_class, NULL, NULL, NULL},
    {"_torchdynamo_wrapper_id", decorated_address, NULL, NULL, NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot decorated_slots[] = {
    {Py_tp_new, decorated_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, decorated_get},
    {Py_tp_getattro, decorated_getattr},
    {Py_tp_setattro, decorated_setattr},
    {Py_tp_repr, decorated_repr},
    {Py_tp_traverse, decorated_traverse},
    {Py_tp_clear, decorated_clear},
    {Py_tp_dealloc, decorated_dealloc},
    {Py_tp_methods, decorated_methods},
    {Py_tp_members, decorated_members},
    {Py_tp_getset, decorated_getset},
    {0, NULL},
};

static PyType_Spec decorated_spec = {
    .name = "stepwatch._core.decorated",
    .basicsize = sizeof(decorated_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_METHOD_DESCRIPTOR,
    .slots = decorated_slots,
};

PyObject *core_decorate(PyObject *section, PyObject *target)
{
    PyObject *helpers = core_import("stepwatch._decorators");
    PyObject *made =
        helpers ? PyObject_CallMethod(helpers, "decorate", "OO", section, target) : NULL;
    Py_XDECREF(helpers);
    return made;
}

/* --- Calls that run in stretches -------------------------------------------------- */

/* One call of a generator: it is timed while it runs, and counts once, when it ends. `open` says that a stretch has begun
 * and `done` that the call was counted. With `inner` it is the iterator that `yield from` drives. */
typedef struct stretches_object {
    PyObject_HEAD sw_section *handle; /* NULL: the section is a profiler's */
    PyObject *section;
    PyObject *inner; /* NULL: the program says when a stretch begins and ends */
    uint64_t spent;
    uint32_t recording; /* that `spent` belongs to */
    bool open;
    bool counts; /* a stretch was recorded, and the call is not counted yet */
    bool done;
} stretches_object;

static uint64_t stretch_key(const stretches_object *self)
{
    return (uint64_t)(uintptr_t)self;
}

static profiler_key stretch_profiler_key(const stretches_object *self)
{
    return (profiler_key){.where = self, .suspends = true};
}

static void stretch_begin(stretches_object *self)
{
    if (!self->handle) {
        profiler_section *section = (profiler_section *)self->section;
        self->open = profiler_is_enabled(section->profiler) && !self->done;
        if (self->open) {
            profiler_enter(section, stretch_profiler_key(self), true);
            self->counts = true;
        }
        return;
    }
    self->open = SW_GATE(self->handle) && !self->done;
    if (!self->open) {
        return;
    }
    const uint32_t recording = sw_recording_number();
    if (recording != self->recording) {
        self->recording = recording;
        self->spent = 0;
    }
    sw_section_begin(self->handle, stretch_key(self));
    self->counts = true;
}

static void stretch_suspend(stretches_object *self)
{
    if (self->open) {
        if (self->handle) {
            sw_section_suspend(self->handle, stretch_key(self), &self->spent);
        } else {
            profiler_suspend((profiler_section *)self->section,
                             stretch_profiler_key(self), &self->spent);
        }
        self->open = false;
    }
}

/* Whatever ended it: the exception that is set is looked at, and left. */
static void stretch_finish(stretches_object *self, unsigned flags)
{
    if (self->open) {
        if (self->handle) {
            sw_section_finish(self->handle, stretch_key(self), flags, &self->spent);
        } else {
            profiler_finish((profiler_section *)self->section, stretch_profiler_key(self),
                            flags, &self->spent);
        }
        self->open = false;
        self->counts = false;
    }
    self->done = true;
}

/* How a generator ends when it is well: it returns, or is closed. */
static unsigned stretch_flags(void)
{
    PyObject *error = PyErr_Occurred();
    if (!error || PyErr_GivenExceptionMatches(error, PyExc_StopIteration) ||
        PyErr_GivenExceptionMatches(error, PyExc_StopAsyncIteration) ||
        PyErr_GivenExceptionMatches(error, PyExc_GeneratorExit)) {
        return 0;
    }
    return SW_RECORD_ERROR;
}

/* After a stretch of the inner iterator: an item, or its end. */
static PyObject *stretch_result(stretches_object *self, PyObject *item)
{
    if (item) {
        stretch_suspend(self);
    } else {
        stretch_finish(self, stretch_flags());
    }
    return item;
}

static PyObject *stretches_next(PyObject *object)
{
    stretches_object *self = (stretches_object *)object;
    PyObject *inner = self->inner;
    if (!inner) {
        PyErr_SetString(PyExc_TypeError, "there is nothing to iterate over");
        return NULL;
    }
    Py_INCREF(inner);
    stretch_begin(self);
    PyObject *item = stretch_result(self, Py_TYPE(inner)->tp_iternext(inner));
    Py_DECREF(inner);
    return item;
}

static PyObject *stretches_call(PyObject *object, const char *method, PyObject *args)
{
    stretches_object *self = (stretches_object *)object;
    PyObject *bound = self->inner ? PyObject_GetAttrString(self->inner, method) : NULL;
    if (!bound) {
        if (!self->inner) {
            PyErr_SetString(PyExc_TypeError, "there is nothing to iterate over");
        }
        return NULL;
    }
    stretch_begin(self);
    PyObject *result = PyObject_Call(bound, args, NULL);
    Py_DECREF(bound);
    return result;
}

static PyObject *stretches_send(PyObject *object, PyObject *args)
{
    return stretch_result((stretches_object *)object,
                          stretches_call(object, "send", args));
}

static PyObject *stretches_throw(PyObject *object, PyObject *args)
{
    return stretch_result((stretches_object *)object,
                          stretches_call(object, "throw", args));
}

static PyObject *stretches_close(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    PyObject *nothing = PyTuple_New(0);
    if (!nothing) {
        return NULL;
    }
    PyObject *result = stretches_call(object, "close", nothing);
    Py_DECREF(nothing);
    stretch_finish((stretches_object *)object, stretch_flags());
    return result;
}

static PyObject *stretches_begin(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    stretch_begin((stretches_object *)object);
    Py_RETURN_NONE;
}

static PyObject *stretches_suspend(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    stretch_suspend((stretches_object *)object);
    Py_RETURN_NONE;
}

static PyObject *stretches_finish(PyObject *object, PyObject *failed)
{
    const int error = PyObject_IsTrue(failed);
    if (error < 0) {
        return NULL;
    }
    stretch_finish((stretches_object *)object, error ? SW_RECORD_ERROR : 0);
    Py_RETURN_NONE;
}

static PyObject *stretches_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"section", "inner", NULL};
    core_state *state = PyType_GetModuleState(type);
    PyObject *section;
    PyObject *inner = NULL;
    if (!state ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:stretches", keywords, &section,
                                     &inner) ||
        !section_check(state, section)) {
        return NULL;
    }
    if (inner && !PyIter_Check(inner)) {
        PyErr_Format(PyExc_TypeError, "'%.100s' object is not an iterator",
                     Py_TYPE(inner)->tp_name);
        return NULL;
    }
    stretches_object *self = (stretches_object *)type->tp_alloc(type, 0);
    if (!self) {
        return NULL;
    }
    if (!section_is_profilers(state, section)) {
        self->handle = ((core_section *)section)->handle;
    }
    Py_INCREF(section);
    self->section = section;
    Py_XINCREF(inner);
    self->inner = inner;
    return (PyObject *)self;
}

static int stretches_traverse(PyObject *object, visitproc visit, void *arg)
{
    stretches_object *self = (stretches_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->inner);
    Py_VISIT(self->section);
    return 0;
}

/* A generator that is dropped between two items: what it still does is its last stretch. */
static int stretches_clear(PyObject *object)
{
    stretches_object *self = (stretches_object *)object;
    if (!self->open && self->counts) {
        stretch_begin(self);
    }
    Py_CLEAR(self->inner);
    stretch_finish(self, 0);
    return 0;
}

static void stretches_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    stretches_clear(object);
    Py_CLEAR(((stretches_object *)object)->section);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef stretches_methods[] = {
    {"send", stretches_send, METH_VARARGS, NULL},
    {"throw", stretches_throw, METH_VARARGS, NULL},
    {"close", stretches_close, METH_NOARGS, NULL},
    {"begin", stretches_begin, METH_NOARGS, PyDoc_STR("The call runs on.")},
    {"suspend", stretches_suspend, METH_NOARGS, PyDoc_STR("The call waits.")},
    {"finish", stretches_finish, METH_O, PyDoc_STR("The call is over.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot stretches_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("One call that runs in stretches.")},
    {Py_tp_new, stretches_new},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, stretches_next},
    {Py_tp_traverse, stretches_traverse},
    {Py_tp_clear, stretches_clear},
    {Py_tp_dealloc, stretches_dealloc},
    {Py_tp_methods, stretches_methods},
    {0, NULL},
};

static PyType_Spec stretches_spec = {
    .name = "stepwatch._core.stretches",
    .basicsize = sizeof(stretches_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = stretches_slots,
};

int core_decorator_add(PyObject *module)
{
    if (core_type_add(module, CORE_DECORATED_TYPE, &decorated_spec) != 0) {
        return -1;
    }
    return core_type_add(module, CORE_GENERATOR_TYPE, &stretches_spec);
}
