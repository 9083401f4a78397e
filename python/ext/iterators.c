/* stepwatch.steps, stepwatch.data and stepwatch.step.
 *
 * A loop over steps(loader) asks for a batch, works on it, and asks for the next: one step is the time from one question
 * to the next, and waiting for the answer is the section "data_wait". The object that steps() gives can be gone through
 * again; each pass is an epoch. */
#include "core.h"
#include "section.h"
#include "stand_in.h"
#include "training.h"
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
CORE_STANDS_IN(pass_object, inner);

/* The iterator has nothing more, or raised: there is no batch, so there is no step. The exception is left as it is. */
static void pass_end(pass_object *self)
{
    PyObject *error = PyErr_Occurred();
    const int failed = error && !PyErr_GivenExceptionMatches(error, PyExc_StopIteration);
    if (core_train_wait_end()) {
        if (failed) {
            sw_end_error(self->wait);
        } else {
            sw_end(self->wait);
        }
    }
    if (self->steps && step_owner == self) {
        sw_step_cancel();
        step_owner = NULL;
        core_holders_look(true);
    }
}

static PyObject *pass_next(PyObject *object)
{
    pass_object *self = (pass_object *)object;
    PyObject *const inner = self->inner;
    if (!inner) {
        return NULL;
    }
    Py_INCREF(inner); /* it, or who watches steps, may close the pass */
    if (self->steps) {
        core_train_explicit();
        step_owner = self;
        if (core_holders_due()) {
            sw_step_end();
            core_holders_look(false);
        }
        sw_step_next(SW_STEP_BATCH);
        core_train_told();
        core_allocators_step();
    }
    /* A loader that is watched by itself waits within this. */
    if (core_train_wait_begin()) {
        sw_begin(self->wait);
    }
    PyObject *item = self->next(inner);
    if (item) {
        if (core_train_wait_end()) {
            sw_end(self->wait);
        }
    } else {
        pass_end(self);
    }
    Py_DECREF(inner);
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

static PyObject *pass_close(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    pass_object *self = (pass_object *)object;
    pass_abandon(self);
    PyObject *inner = self->inner;
    self->inner = NULL;
    PyObject *result = core_stand_in_close(inner);
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

static PyMethodDef pass_methods[] = {
    {"__length_hint__", core_stand_in_length_hint, METH_NOARGS, NULL},
    {"close", pass_close, METH_NOARGS, PyDoc_STR("Leave the pass before its end.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot pass_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("One pass over the batches.")},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, pass_next},
    {Py_tp_getattro, core_stand_in_getattr},
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
    PyObject *place; /* where in the program it was made, or NULL */
    uint32_t
        epoch; /* of the next pass, where neither iterable nor place can be remembered */
    bool steps;
} loop_object;
CORE_STANDS_IN(loop_object, iterable);

/* Return the number of passes that the table holds under the key, 0 where it holds none. The entry is
 * (object, passes); with an object given, only an entry of that one counts. */
static uint32_t epochs_get(PyObject *table, PyObject *key, PyObject *object)
{
    PyObject *entry = PyDict_GetItemWithError(table, key);
    if (!entry || (object && PyTuple_GET_ITEM(entry, 0) != object)) {
        return 0;
    }
    return (uint32_t)PyLong_AsUnsignedLongMask(PyTuple_GET_ITEM(entry, 1));
}

static void epochs_set(PyObject *table, PyObject *key, PyObject *object, uint32_t passes)
{
    PyObject *entry = Py_BuildValue("Ok", object, (unsigned long)passes);
    if (entry) {
        PyDict_SetItem(table, key, entry);
        Py_DECREF(entry);
    }
}

/* Make the table one of this recording, and keep it small. */
static void epochs_begin(PyObject *table)
{
    const uint32_t recording = (uint32_t)sw_recording_number();
    /* Loaders made without end are counted anew. */
    if (epochs_get(table, Py_None, NULL) != recording || PyDict_Size(table) > 256) {
        PyDict_Clear(table);
        epochs_set(table, Py_None, Py_None, recording);
    }
}

/* Which pass over this iterable begins: many programs write steps(loader) anew in every epoch, and many
 * write steps(tqdm(loader)) or steps(batches()), which is another object each time. An object that was
 * seen before goes on counting; another one goes on where the last one at the same place in the program
 * has stopped. The table holds (weak reference, passes) under the object's address and (None, passes)
 * under the place. */
static uint32_t loop_epoch(core_state *state, loop_object *self)
{
    PyObject *table = state->slot[CORE_EPOCHS];
    epochs_begin(table);
    PyObject *key = PyLong_FromVoidPtr(self->iterable);
    /* A weak reference without a callback is the same object as long as the target lives. */
    PyObject *weak = key ? PyWeakref_NewRef(self->iterable, NULL) : NULL;
    PyErr_Clear();
    uint32_t epoch = weak ? epochs_get(table, key, weak) : 0;
    const uint32_t there =
        self->place ? epochs_get(table, self->place, NULL) : self->epoch++;
    if (epoch == 0) {
        epoch = there;
    }
    if (weak) {
        epochs_set(table, key, weak, epoch + 1);
    }
    if (self->place && epoch >= there) {
        epochs_set(table, self->place, Py_None, epoch + 1);
    }
    Py_XDECREF(weak);
    Py_XDECREF(key);
    PyErr_Clear();
    return epoch;
}

/* The place in the program that calls: (code, line), or NULL where no Python code does. */
static PyObject *place_of_call(void)
{
    PyFrameObject *frame = PyEval_GetFrame();
    if (!frame) {
        return NULL;
    }
    PyObject *place =
        Py_BuildValue("Ni", PyFrame_GetCode(frame), PyFrame_GetLineNumber(frame));
    if (!place) {
        PyErr_Clear();
    }
    return place;
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
        self->place = steps ? place_of_call() : NULL;
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
    Py_VISIT(((loop_object *)object)->place);
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
    Py_CLEAR(self->place);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef loop_methods[] = {
    {"__length_hint__", core_stand_in_length_hint, METH_NOARGS, NULL},
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
        {Py_tp_getattro, core_stand_in_getattr}, {Py_tp_repr, loop_repr},                \
        {Py_tp_traverse, loop_traverse}, {Py_tp_dealloc, loop_dealloc},                  \
        {Py_tp_methods, loop_methods}, {Py_tp_members, loop_members},                    \
        {Py_mp_length, core_stand_in_length}, {Py_nb_bool, core_stand_in_bool},          \
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
    core_train_explicit();
    step_owner = self;
    sw_step_begin_unit(SW_STEP_MANUAL);
    core_train_told();
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
        core_allocators_step();
        core_holders_look(false);
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
