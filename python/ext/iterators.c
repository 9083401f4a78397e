/* stepwatch.steps, stepwatch.data and stepwatch.step.
 *
 * A loop over steps(loader) asks for a batch, works on it, and asks for the next: one step is the time from one question
 * to the next, and waiting for the answer is the section "data_wait". The object that steps() gives can be gone through
 * again; each pass is an epoch. */
#include "core.h"
#include "section.h"
#include <stddef.h>
#include <structmember.h>

/* Whose step is open on this thread. Only the owner may give it up: a loop that was left may be freed much later. */
CORE_THREAD_LOCAL const void *step_owner;

/* --- A pass over the batches ------------------------------------------------------ */

typedef struct pass_object {
    PyObject_HEAD PyObject *inner; /* an iterator; NULL when it is used up */
    iternextfunc next;             /* that of the iterator */
    sw_section *wait;
    bool steps; /* each batch is a step */
} pass_object;

/* The iterator has nothing more, or raised: there is no batch, so there is no step. The exception is left as it is. */
static void pass_end(pass_object *self)
{
    PyObject *error = PyErr_Occurred();
    const int failed = error && !PyErr_GivenExceptionMatches(error, PyExc_StopIteration);
    if (failed) {
        sw_end_error(self->wait);
    } else {
        sw_end(self->wait);
    }
    if (self->steps && step_owner == self) {
        sw_step_cancel();
        step_owner = NULL;
    }
}

static PyObject *pass_next(PyObject *object)
{
    pass_object *self = (pass_object *)object;
    PyObject *const inner = self->inner;
    if (!inner) {
        return NULL;
    }
    if (self->steps) {
        step_owner = self;
        sw_step_next(SW_STEP_BATCH);
    }
    sw_begin(self->wait);
    PyObject *item = self->next(inner);
    if (item) {
        sw_end(self->wait);
    } else {
        pass_end(self);
    }
    return item;
}

/* Left before its end: the step that is open did not come to one. */
static void pass_abandon(pass_object *self)
{
    if (self->steps && step_owner == self) {
        step_owner = NULL;
        sw_step_abandon();
    }
}

static PyObject *pass_length_hint(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    const pass_object *self = (pass_object *)object;
    const Py_ssize_t length = self->inner ? PyObject_LengthHint(self->inner, 0) : 0;
    return length < 0 ? NULL : PyLong_FromSsize_t(length);
}

static PyObject *pass_close(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    pass_object *self = (pass_object *)object;
    pass_abandon(self);
    PyObject *inner = self->inner;
    self->inner = NULL;
    PyObject *close = inner ? PyObject_GetAttrString(inner, "close") : NULL;
    PyObject *result = close ? PyObject_CallNoArgs(close) : NULL;
    if (!close && (!inner || PyErr_ExceptionMatches(PyExc_AttributeError))) {
        PyErr_Clear();
        Py_INCREF(Py_None);
        result = Py_None;
    }
    Py_XDECREF(close);
    Py_XDECREF(inner);
    return result;
}

static int pass_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((pass_object *)object)->inner);
    return 0;
}

static int pass_clear(PyObject *object)
{
    Py_CLEAR(((pass_object *)object)->inner);
    return 0;
}

static void pass_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    pass_abandon((pass_object *)object);
    pass_clear(object);
    type->tp_free(object);
    Py_DECREF(type);
}

/* What a loader's iterator has besides items stays reachable. */
static PyObject *pass_getattr(PyObject *object, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(object, name);
    PyObject *inner = ((pass_object *)object)->inner;
    if (found || !inner || !PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return found;
    }
    PyErr_Clear();
    return PyObject_GetAttr(inner, name);
}

static PyMethodDef pass_methods[] = {
    {"__length_hint__", pass_length_hint, METH_NOARGS, NULL},
    {"close", pass_close, METH_NOARGS, PyDoc_STR("Leave the pass before its end.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot pass_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("One pass over the batches.")},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, pass_next},
    {Py_tp_getattro, pass_getattr},
    {Py_tp_traverse, pass_traverse},
    {Py_tp_clear, pass_clear},
    {Py_tp_dealloc, pass_dealloc},
    {Py_tp_methods, pass_methods},
    {0, NULL},
};

static PyType_Spec pass_spec = {
    .name = "stepwatch._core.batches",
    .basicsize = sizeof(pass_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = pass_slots,
};

/* --- What can be gone through ----------------------------------------------------- */

typedef struct loop_object {
    PyObject_HEAD PyObject *iterable;
    PyObject *weak;
    uint32_t epoch; /* of the next pass, where the iterable itself cannot be remembered */
    bool steps;
} loop_object;

/* Which pass over this iterable begins: many programs write steps(loader) anew in every epoch. The table holds
 * (weak reference, count) under the object's address. */
static uint32_t loop_epoch(core_state *state, loop_object *self)
{
    uint32_t epoch = self->epoch++;
    PyObject *table = state->slot[CORE_EPOCHS];
    PyObject *key = PyLong_FromVoidPtr(self->iterable);
    PyObject *weak = key ? PyWeakref_NewRef(self->iterable, NULL) : NULL;
    if (weak) {
        PyObject *known = PyDict_GetItemWithError(table, key);
        /* A weak reference without a callback is the same object as long as the target lives. */
        if (known && PyTuple_GET_ITEM(known, 0) == weak) {
            epoch = (uint32_t)PyLong_AsUnsignedLongMask(PyTuple_GET_ITEM(known, 1));
        } else {
            epoch = 0;
        }
        if (PyDict_Size(table) > 256) {
            PyDict_Clear(table); /* Loaders made without end are counted anew. */
        }
        PyObject *entry = Py_BuildValue("Ok", weak, (unsigned long)epoch + 1);
        if (entry) {
            PyDict_SetItem(table, key, entry);
            Py_DECREF(entry);
        }
    }
    Py_XDECREF(weak);
    Py_XDECREF(key);
    PyErr_Clear();
    return epoch;
}

static PyObject *loop_iter(PyObject *object)
{
    loop_object *self = (loop_object *)object;
    core_state *state = PyType_GetModuleState(Py_TYPE(object));
    if (!state) {
        return NULL;
    }
    PyObject *inner = PyObject_GetIter(self->iterable);
    if (!inner) {
        return NULL;
    }
    PyTypeObject *type = (PyTypeObject *)state->slot[CORE_BATCHES_TYPE];
    pass_object *pass = (pass_object *)type->tp_alloc(type, 0);
    if (!pass) {
        Py_DECREF(inner);
        return NULL;
    }
    pass->inner = inner;
    pass->next = Py_TYPE(inner)->tp_iternext;
    pass->wait = sw_section_get_n("data_wait", 9, SW_PHASE_DATA_WAIT);
    pass->steps = self->steps;
    if (self->steps) {
        sw_epoch(loop_epoch(state, self));
    }
    return (PyObject *)pass;
}

static PyObject *loop_make(PyTypeObject *type, PyObject *args, PyObject *kwargs,
                           const char *format, bool steps)
{
    static char *keywords[] = {"", NULL};
    PyObject *iterable;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, keywords, &iterable)) {
        return NULL;
    }
    if (!Py_TYPE(iterable)->tp_iter && !PySequence_Check(iterable)) {
        PyErr_Format(PyExc_TypeError, "'%.100s' object is not iterable",
                     Py_TYPE(iterable)->tp_name);
        return NULL;
    }
    loop_object *self = (loop_object *)type->tp_alloc(type, 0);
    if (self) {
        Py_INCREF(iterable);
        self->iterable = iterable;
        self->steps = steps;
    }
    return (PyObject *)self;
}

static PyObject *steps_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return loop_make(type, args, kwargs, "O:steps", true);
}

static PyObject *data_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return loop_make(type, args, kwargs, "O:data", false);
}

static Py_ssize_t loop_length(PyObject *object)
{
    return PyObject_Size(((loop_object *)object)->iterable);
}

static int loop_bool(PyObject *object)
{
    return PyObject_IsTrue(((loop_object *)object)->iterable);
}

static PyObject *loop_length_hint(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    const Py_ssize_t length = PyObject_LengthHint(((loop_object *)object)->iterable, 0);
    return length < 0 ? NULL : PyLong_FromSsize_t(length);
}

static PyObject *loop_getattr(PyObject *object, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(object, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return found;
    }
    PyErr_Clear();
    return PyObject_GetAttr(((loop_object *)object)->iterable, name);
}

static PyObject *loop_repr(PyObject *object)
{
    const loop_object *self = (loop_object *)object;
    return PyUnicode_FromFormat("stepwatch.%s(%R)", self->steps ? "steps" : "data",
                                self->iterable);
}

static PyObject *loop_reduce(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    return Py_BuildValue("O(O)", Py_TYPE(object), ((loop_object *)object)->iterable);
}

static int loop_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((loop_object *)object)->iterable);
    return 0;
}

static void loop_dealloc(PyObject *object)
{
    loop_object *self = (loop_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weak) {
        PyObject_ClearWeakRefs(object);
    }
    Py_CLEAR(self->iterable);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef loop_methods[] = {
    {"__length_hint__", loop_length_hint, METH_NOARGS, NULL},
    {"__reduce__", loop_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef loop_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(loop_object, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyDoc_STRVAR(
    steps_doc,
    "steps(iterable, /)\n--\n\n"
    "Go through batches; each is a step, and waiting for it is data_wait.\n\n"
    "A step lasts until the next batch is asked for. A pass over the batches is an\n"
    "epoch; attributes and len() are those of the iterable.\n\n"
    "    for batch in stepwatch.steps(loader):\n"
    "        train(batch)\n");

PyDoc_STRVAR(data_doc,
             "data(iterable, /)\n--\n\n"
             "Go through batches and time the waiting for them (data_wait) only.\n\n"
             "    for batch in stepwatch.data(loader):\n"
             "        validate(batch)\n");

#define LOOP_SLOTS(doc, make)                                                            \
    {Py_tp_doc, (void *)doc}, {Py_tp_new, make}, {Py_tp_iter, loop_iter},                \
        {Py_tp_getattro, loop_getattr}, {Py_tp_repr, loop_repr},                         \
        {Py_tp_traverse, loop_traverse}, {Py_tp_dealloc, loop_dealloc},                  \
        {Py_tp_methods, loop_methods}, {Py_tp_members, loop_members},                    \
        {Py_mp_length, loop_length}, {Py_nb_bool, loop_bool},                            \
    {                                                                                    \
        0, NULL                                                                          \
    }

static PyType_Slot steps_slots[] = {LOOP_SLOTS(steps_doc, steps_new)};
static PyType_Slot data_slots[] = {LOOP_SLOTS(data_doc, data_new)};

static PyType_Spec steps_spec = {
    .name = "stepwatch.steps",
    .basicsize = sizeof(loop_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = steps_slots,
};

static PyType_Spec data_spec = {
    .name = "stepwatch.data",
    .basicsize = sizeof(loop_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = data_slots,
};

/* --- One step by hand ------------------------------------------------------------- */

typedef struct step_object {
    PyObject_HEAD
} step_object;

static PyObject *step_enter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    step_owner = self;
    sw_step_begin_unit(SW_STEP_MANUAL);
    Py_INCREF(self);
    return self;
}

/* A step within a step ends the outer one early; then there is nothing left to end. */
static PyObject *step_exit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3) {
        PyErr_Format(PyExc_TypeError, "__exit__ expected 3 arguments, got %zd", count);
        return NULL;
    }
    if (step_owner == self) {
        step_owner = NULL;
        if (args[0] == Py_None) {
            sw_step_end();
        } else {
            sw_step_abandon();
        }
    }
    Py_RETURN_NONE;
}

static PyMethodDef step_methods[] = {
    {"__enter__", step_enter, METH_NOARGS, PyDoc_STR("Begin the step.")},
    {"__exit__", (PyCFunction)(void (*)(void))step_exit, METH_FASTCALL,
     PyDoc_STR("End the step; an exception makes it incomplete, and passes.")},
    {NULL, NULL, 0, NULL},
};

static void step_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

PyDoc_STRVAR(step_doc, "step()\n--\n\n"
                       "One step, by hand: a context manager.\n\n"
                       "    with stepwatch.step():\n"
                       "        train(batch)\n");

static PyType_Slot step_slots[] = {
    {Py_tp_doc, (void *)step_doc},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, step_dealloc},
    {Py_tp_methods, step_methods},
    {0, NULL},
};

static PyType_Spec step_spec = {
    .name = "stepwatch.step",
    .basicsize = sizeof(step_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = step_slots,
};

int core_iterators_add(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    state->slot[CORE_EPOCHS] = PyDict_New();
    if (!state->slot[CORE_EPOCHS] ||
        core_type_add(module, CORE_BATCHES_TYPE, &pass_spec) != 0 ||
        core_type_add(module, CORE_STEPS_TYPE, &steps_spec) != 0 ||
        core_type_add(module, CORE_DATA_TYPE, &data_spec) != 0) {
        return -1;
    }
    return core_type_add(module, CORE_STEP_TYPE, &step_spec);
}
