/* Objects of C that stand for something of the program's and time what is asked of it.
 *
 * `timed` is called, subscripted or gone through in the place of a dataset, an iterator, a function; whatever else it is
 * asked, the object behind it answers. `timed_method` takes the place of a method of a class, so that the program's own
 * objects stay as they are. Neither has a frame of its own: tracebacks are those of the program alone. */
#include "brief.h"
#include "stages.h"
#include <stddef.h>
#include <string.h>
#include <structmember.h>

PyObject *core_call_through(PyObject *function, PyObject *const *args, size_t nargsf,
                            PyObject *names)
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

/* --- An object in the place of another ------------------------------------------------------ */

typedef struct timed_object {
    PyObject_HEAD vectorcallfunc call;
    PyObject *target;
    PyObject *stage; /* a core_stage */
    PyObject *
        context; /* a dict of stages for what is called within; NULL: that of the caller */
    /* Of what makes batches, where it need not be asked for every sample by our hands: its dataset, as a timed object, and
     * the stage of its collation. */
    PyObject *samples, *collate;
    PyObject *
        fetcher; /* of a method that was found there: a timed object that has these two */
    uint32_t batches;
    bool plain; /* the target has its own dataset at present */
    PyObject *weak;
} timed_object;

/* Whether what follows is timed; then the object lives until timed_end. */
typedef struct timed_run {
    core_stage_run run;
    PyObject *context;
    bool on;
} timed_run;

static inline void timed_begin(timed_object *self, timed_run *run)
{
    core_stage *stage = (core_stage *)self->stage;
    run->on = SW_GATE(core_stage_gate) &&
              !(stage->kind == SW_STAGE_TRANSFORM && core_stage_inside());
    if (run->on) {
        Py_INCREF(self);
        if (self->context) {
            run->context = core_stage_context_set(self->context);
        }
        core_stage_begin(stage, &run->run);
    }
}

static inline PyObject *timed_end(timed_object *self, timed_run *run, PyObject *result)
{
    if (run->on) {
        core_stage_end((core_stage *)self->stage, &run->run, result);
        if (self->context) {
            core_stage_context_set(run->context);
        }
        Py_DECREF(self);
    }
    return result;
}

/* --- Batches of many short samples ---

 * Timing a sample takes longer than giving it, where that means to look into a list. So of most batches of such samples only
 * the whole is timed: what is not collation is their time, and their number is known. */

#define SAMPLES_FIRST 8u  /* batches in which each is timed */
#define SAMPLES_EVERY 16u /* … and afterwards one in so many */

/* Samples of a batch whose indices are these; 0: not known. */
static uint64_t samples_of(PyObject *indices)
{
    return PyList_Check(indices) || PyTuple_Check(indices) ? (uint64_t)Py_SIZE(indices)
                                                           : 0;
}

/* Gives the fetcher of torch its own dataset, or ours in its place. No exception is left. */
static void fetch_choose(timed_object *fetcher, bool can_be_counted)
{
    timed_object *samples = (timed_object *)fetcher->samples;
    const uint32_t batch = fetcher->batches++;
    const bool plain = can_be_counted && batch >= SAMPLES_FIRST &&
                       batch % SAMPLES_EVERY != 0 &&
                       core_stage_is_short((core_stage *)samples->stage);
    if (plain == fetcher->plain) {
        return;
    }
    PyObject *now = plain ? samples->target : fetcher->samples;
    if (PyObject_SetAttrString(fetcher->target, "dataset", now) == 0) {
        fetcher->plain = plain;
    } else {
        PyErr_Clear();
    }
}

/* What is left of a batch that was made, without its collation, was for its samples. */
static void fetch_count(timed_object *fetcher, const core_stage *whole, uint64_t samples)
{
    const core_stage *collate = (core_stage *)fetcher->collate;
    const uint64_t end = collate->begin >= whole->begin ? collate->begin : whole->end;
    core_stage_add_many((core_stage *)((timed_object *)fetcher->samples)->stage, samples,
                        whole->begin, end);
}

static PyObject *timed_call(PyObject *object, PyObject *const *args, size_t nargsf,
                            PyObject *names);

void core_timed_anew(PyObject *object)
{
    const PyTypeObject *type = Py_TYPE(object);
    if (type->tp_call == PyVectorcall_Call &&
        type->tp_vectorcall_offset == offsetof(timed_object, call) &&
        ((timed_object *)object)->call == timed_call) {
        ((timed_object *)object)->plain = false;
    }
}

static PyObject *timed_call(PyObject *object, PyObject *const *args, size_t nargsf,
                            PyObject *names)
{
    timed_object *self = (timed_object *)object;
    timed_object *fetcher = (timed_object *)self->fetcher;
    timed_run run;
    if (core_brief) {
        return core_call_through(self->target, args, nargsf, names);
    }
    if (!fetcher) {
        timed_begin(self, &run);
        return timed_end(self, &run,
                         core_call_through(self->target, args, nargsf, names));
    }
    const uint64_t samples = PyVectorcall_NARGS(nargsf) == 1 ? samples_of(args[0]) : 0;
    Py_INCREF(fetcher);
    fetch_choose(fetcher, samples > 0);
    timed_begin(self, &run);
    PyObject *result = core_call_through(self->target, args, nargsf, names);
    (void)timed_end(self, &run, result);
    if (result && run.on && fetcher->plain) {
        fetch_count(fetcher, (core_stage *)self->stage, samples);
    }
    Py_DECREF(fetcher);
    return result;
}

static PyObject *timed_item(PyObject *object, PyObject *key)
{
    timed_object *self = (timed_object *)object;
    timed_run run;
    if (core_brief) {
        return PyObject_GetItem(self->target, key);
    }
    timed_begin(self, &run);
    return timed_end(self, &run, PyObject_GetItem(self->target, key));
}

static PyObject *timed_next(PyObject *object)
{
    timed_object *self = (timed_object *)object;
    const iternextfunc next = Py_TYPE(self->target)->tp_iternext;
    if (!next) {
        return PyErr_Format(PyExc_TypeError, "'%.100s' object is not an iterator",
                            Py_TYPE(self->target)->tp_name);
    }
    timed_run run;
    timed_begin(self, &run);
    return timed_end(self, &run, next(self->target));
}

static PyObject *timed_make(PyTypeObject *type, PyObject *target, PyObject *stage,
                            PyObject *context)
{
    timed_object *self = (timed_object *)type->tp_alloc(type, 0);
    if (self) {
        self->call = timed_call;
        Py_INCREF(target);
        self->target = target;
        Py_INCREF(stage);
        self->stage = stage;
        Py_XINCREF(context);
        self->context = context;
    }
    return (PyObject *)self;
}

static PyObject *timed_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"target", "stage", "context", "samples", "collate", NULL};
    core_state *state = PyType_GetModuleState(type);
    PyObject *target, *stage, *context = NULL, *samples = NULL, *collate = NULL;
    if (!state || !PyArg_ParseTupleAndKeywords(
                      args, kwargs, "OO!|O!O!O!:timed", keywords, &target,
                      state->slot[CORE_STAGE_TYPE], &stage, &PyDict_Type, &context, type,
                      &samples, state->slot[CORE_STAGE_TYPE], &collate)) {
        return NULL;
    }
    timed_object *made = (timed_object *)timed_make(type, target, stage, context);
    if (made && samples && collate) {
        Py_INCREF(samples);
        made->samples = samples;
        Py_INCREF(collate);
        made->collate = collate;
    }
    return (PyObject *)made;
}

static bool name_is(PyObject *name, const char *text)
{
    return PyUnicode_Check(name) && PyUnicode_READ_CHAR(name, 0) == (Py_UCS4)text[0] &&
           PyUnicode_CompareWithASCIIString(name, text) == 0;
}

/* What is timed when it is called as a method of the target: a dataset's way of giving several samples at once, and what
 * makes a batch. */
static bool is_asked(const timed_object *self, PyObject *name)
{
    const core_stage *stage = (core_stage *)self->stage;
    return stage->kind == SW_STAGE_FETCH ? name_is(name, "fetch")
                                         : name_is(name, "__getitems__");
}

/* What is asked of the target, timed. torch looks before every batch whether it is there, and so the usual error, whose
 * sentence nobody reads, would cost more than a sample does. */
static PyObject *timed_asked(timed_object *self, PyObject *name)
{
    PyObject *found = NULL;
#if PY_VERSION_HEX >= 0x030d0000
    const int is_there = PyObject_GetOptionalAttr(self->target, name, &found);
#else
    const int is_there = _PyObject_LookupAttr(self->target, name, &found);
#endif
    if (is_there == 0) {
        PyErr_SetObject(PyExc_AttributeError, name);
    } else if (is_there > 0 && PyCallable_Check(found)) {
        Py_SETREF(found, timed_make(Py_TYPE(self), found, self->stage, self->context));
        if (found && self->samples) {
            Py_INCREF(self);
            ((timed_object *)found)->fetcher = (PyObject *)self;
        }
    }
    return found;
}

/* Everything is the target's, but how this is copied, and what is asked of it. */
static PyObject *timed_getattr(PyObject *object, PyObject *name)
{
    timed_object *self = (timed_object *)object;
    if (name_is(name, "__reduce__") || name_is(name, "__reduce_ex__")) {
        return PyObject_GenericGetAttr(object, name);
    }
    return is_asked(self, name) ? timed_asked(self, name)
                                : PyObject_GetAttr(self->target, name);
}

static int timed_setattr(PyObject *object, PyObject *name, PyObject *value)
{
    return PyObject_SetAttr(((timed_object *)object)->target, name, value);
}

/* A copy is the target itself: wherever it is unpickled, nothing of ours is needed. */
static PyObject *timed_reduce(PyObject *object, PyObject *Py_UNUSED(args))
{
    PyObject *module = PyImport_ImportModule("operator");
    PyObject *getitem = module ? PyObject_GetAttrString(module, "getitem") : NULL;
    Py_XDECREF(module);
    return getitem
               ? Py_BuildValue("N((O)i)", getitem, ((timed_object *)object)->target, 0)
               : NULL;
}

static PyObject *timed_repr(PyObject *object)
{
    return PyObject_Repr(((timed_object *)object)->target);
}

static PyObject *timed_str(PyObject *object)
{
    return PyObject_Str(((timed_object *)object)->target);
}

static Py_hash_t timed_hash(PyObject *object)
{
    return PyObject_Hash(((timed_object *)object)->target);
}

static PyObject *timed_compare(PyObject *object, PyObject *other, int operation)
{
    if (Py_TYPE(other) == Py_TYPE(object)) {
        other = ((timed_object *)other)->target;
    }
    return PyObject_RichCompare(((timed_object *)object)->target, other, operation);
}

static int timed_bool(PyObject *object)
{
    return PyObject_IsTrue(((timed_object *)object)->target);
}

static Py_ssize_t timed_length(PyObject *object)
{
    return PyObject_Size(((timed_object *)object)->target);
}

/* An iterator stays timed; anything else gives an iterator of its own. */
static PyObject *timed_iter(PyObject *object)
{
    PyObject *target = ((timed_object *)object)->target;
    PyObject *iterator = PyObject_GetIter(target);
    if (iterator == target) {
        Py_DECREF(iterator);
        Py_INCREF(object);
        return object;
    }
    return iterator;
}

static int timed_traverse(PyObject *object, visitproc visit, void *arg)
{
    timed_object *self = (timed_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->target);
    Py_VISIT(self->stage);
    Py_VISIT(self->context);
    Py_VISIT(self->samples);
    Py_VISIT(self->collate);
    Py_VISIT(self->fetcher);
    return 0;
}

/* The target stays: whoever holds the object may still ask it. Cycles through it are broken elsewhere. */
static int timed_clear(PyObject *object)
{
    timed_object *self = (timed_object *)object;
    Py_CLEAR(self->context);
    Py_CLEAR(self->samples);
    Py_CLEAR(self->collate);
    Py_CLEAR(self->fetcher);
    return 0;
}

static void timed_dealloc(PyObject *object)
{
    timed_object *self = (timed_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weak) {
        PyObject_ClearWeakRefs(object);
    }
    timed_clear(object);
    Py_CLEAR(self->target);
    Py_CLEAR(self->stage);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef timed_methods[] = {
    {"__reduce__", timed_reduce, METH_VARARGS, NULL},
    {"__reduce_ex__", timed_reduce, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef timed_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(timed_object, call), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(timed_object, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot timed_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR("timed(target, stage, context=None, samples=None, collate=None)\n"
                       "--\n\n"
                       "Stands for the target and times calls, items, next.")},
    {Py_tp_new, timed_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_iter, timed_iter},
    {Py_tp_iternext, timed_next},
    {Py_mp_subscript, timed_item},
    {Py_mp_length, timed_length},
    {Py_nb_bool, timed_bool},
    {Py_tp_getattro, timed_getattr},
    {Py_tp_setattro, timed_setattr},
    {Py_tp_repr, timed_repr},
    {Py_tp_str, timed_str},
    {Py_tp_hash, timed_hash},
    {Py_tp_richcompare, timed_compare},
    {Py_tp_traverse, timed_traverse},
    {Py_tp_clear, timed_clear},
    {Py_tp_dealloc, timed_dealloc},
    {Py_tp_methods, timed_methods},
    {Py_tp_members, timed_members},
    {0, NULL},
};

static PyType_Spec timed_spec = {
    .name = "stepwatch._core.timed",
    .basicsize = sizeof(timed_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = timed_slots,
};

/* --- A method of the program's classes ------------------------------------------------------ */

typedef struct method_object {
    PyObject_HEAD vectorcallfunc call;
    PyObject *function; /* what was there; also __wrapped__ */
} method_object;

/* The stage for this class of objects in this thread's batch, borrowed; NULL: nobody wants to know. No exception is left. */
static PyObject *method_stage(PyTypeObject *type)
{
    PyObject *context = SW_GATE(core_stage_gate) ? core_stage_context() : NULL;
    if (!context || core_stage_inside()) {
        return NULL;
    }
    PyObject *stage = PyDict_GetItemWithError(context, (PyObject *)type);
    if (!stage && PyErr_Occurred()) {
        PyErr_Clear();
    }
    return stage;
}

static PyObject *method_call(PyObject *object, PyObject *const *args, size_t nargsf,
                             PyObject *names)
{
    PyObject *const function = ((method_object *)object)->function;
    PyObject *stage =
        PyVectorcall_NARGS(nargsf) > 0 ? method_stage(Py_TYPE(args[0])) : NULL;
    if (!stage) {
        return core_call_through(function, args, nargsf, names);
    }
    Py_INCREF(stage);
    Py_INCREF(function);
    core_stage_run run;
    core_stage_begin((core_stage *)stage, &run);
    PyObject *result = core_call_through(function, args, nargsf, names);
    core_stage_end((core_stage *)stage, &run, result);
    Py_DECREF(function);
    Py_DECREF(stage);
    return result;
}

static PyObject *method_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"function", NULL};
    PyObject *function;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:timed_method", keywords,
                                     &function)) {
        return NULL;
    }
    if (!PyCallable_Check(function)) {
        return PyErr_Format(PyExc_TypeError, "'%.100s' object cannot be called",
                            Py_TYPE(function)->tp_name);
    }
    method_object *self = (method_object *)type->tp_alloc(type, 0);
    if (self) {
        self->call = method_call;
        Py_INCREF(function);
        self->function = function;
    }
    return (PyObject *)self;
}

static PyObject *method_get(PyObject *self, PyObject *object, PyObject *Py_UNUSED(type))
{
    if (!object || object == Py_None) {
        Py_INCREF(self);
        return self;
    }
    return PyMethod_New(self, object);
}

static PyObject *method_getattr(PyObject *object, PyObject *name)
{
    method_object *self = (method_object *)object;
    if (name_is(name, "__wrapped__")) {
        Py_INCREF(self->function);
        return self->function;
    }
    return PyObject_GetAttr(self->function, name);
}

static PyObject *method_repr(PyObject *object)
{
    return PyObject_Repr(((method_object *)object)->function);
}

static int method_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((method_object *)object)->function);
    return 0;
}

static void method_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_CLEAR(((method_object *)object)->function);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMemberDef method_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(method_object, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot method_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("timed_method(function)\n--\n\n"
                                  "A method that is timed where a batch is made.")},
    {Py_tp_new, method_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, method_get},
    {Py_tp_getattro, method_getattr},
    {Py_tp_repr, method_repr},
    {Py_tp_traverse, method_traverse},
    {Py_tp_dealloc, method_dealloc},
    {Py_tp_members, method_members},
    {0, NULL},
};

static PyType_Spec method_spec = {
    .name = "stepwatch._core.timed_method",
    .basicsize = sizeof(method_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_METHOD_DESCRIPTOR,
    .slots = method_slots,
};

int core_timed_add(PyObject *module)
{
    if (core_type_add(module, CORE_TIMED_TYPE, &timed_spec) != 0) {
        return -1;
    }
    return core_type_add(module, CORE_TIMED_METHOD_TYPE, &method_spec);
}
