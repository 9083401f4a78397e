/* Steps and waits for batches of a profiler: what stepwatch.steps, data and step do for a recording (iterators.c), which they
 * stand on, as calls of the sections "step" and "data_wait". */
#include "profiler.h"
#include "stand_in.h"
#include <stddef.h>
#include <string.h>
#include <structmember.h>

#define STEP "step"
#define WAIT "data_wait"

/* --- A pass over the batches ------------------------------------------------------ */

typedef struct pass_object {
    PyObject_HEAD PyObject *inner; /* an iterator */
    profiler_section *wait, *step; /* references; step may be NULL */
    bool record;                   /* the wait is for us to record */
    bool in_step;
} pass_object;
CORE_STANDS_IN(pass_object, inner);

/* Address of its own for each of the two calls that a pass has open. */
static profiler_key wait_key(const pass_object *self)
{
    return (profiler_key){.where = &self->wait, .suspends = true};
}

static profiler_key step_key(const pass_object *self)
{
    return (profiler_key){.where = &self->step, .suspends = true};
}

static void pass_abandon(pass_object *self)
{
    if (self->in_step) {
        self->in_step = false;
        profiler_forget(self->step, step_key(self));
    }
}

/* There is no batch: neither a step, nor a wait for one unless it failed. The exception is left as it is. */
static void pass_end(pass_object *self, bool waits)
{
    PyObject *error = PyErr_Occurred();
    if (waits && error && !PyErr_GivenExceptionMatches(error, PyExc_StopIteration)) {
        profiler_leave(self->wait, wait_key(self), SW_RECORD_ERROR);
    } else if (waits) {
        profiler_forget(self->wait, wait_key(self));
    }
    pass_abandon(self);
}

static PyObject *pass_next(PyObject *object)
{
    pass_object *self = (pass_object *)object;
    const bool on = profiler_is_enabled(self->wait->profiler);
    if (self->in_step) {
        self->in_step = false;
        profiler_leave(self->step, step_key(self), 0);
    }
    if (self->step && on) {
        self->in_step = true;
        profiler_enter(self->step, step_key(self), false);
    }
    if (on) {
        profiler_enter(self->wait, wait_key(self), self->record);
    }
    PyObject *item = Py_TYPE(self->inner)->tp_iternext(self->inner);
    if (!item) {
        pass_end(self, on);
    } else if (on) {
        profiler_leave(self->wait, wait_key(self), 0);
    }
    return item;
}

static PyObject *pass_close(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    pass_object *self = (pass_object *)object;
    pass_abandon(self);
    return core_stand_in_close(self->inner);
}

static int pass_traverse(PyObject *object, visitproc visit, void *arg)
{
    const pass_object *self = (pass_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->inner);
    Py_VISIT(self->wait);
    Py_VISIT(self->step);
    return 0;
}

static void pass_dealloc(PyObject *object)
{
    pass_object *self = (pass_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    pass_abandon(self);
    Py_CLEAR(self->inner);
    Py_CLEAR(self->wait);
    Py_CLEAR(self->step);
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
    {Py_tp_dealloc, pass_dealloc},
    {Py_tp_methods, pass_methods},
    {0, NULL},
};

static PyType_Spec pass_spec = {
    .name = "stepwatch._core.profiler_pass",
    .basicsize = sizeof(pass_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = pass_slots,
};

/* --- What can be gone through ----------------------------------------------------- */

typedef struct loop_object {
    PyObject_HEAD PyObject *iterable;
    PyObject *watched; /* the same for a recording, or NULL */
    profiler_section *wait, *step;
    PyObject *weak;
} loop_object;
CORE_STANDS_IN(loop_object, iterable);

static PyObject *loop_iter(PyObject *object)
{
    loop_object *self = (loop_object *)object;
    profiler_object *profiler = self->wait->profiler;
    const bool watched = self->watched && profiler_is_enabled(profiler);
    PyObject *inner = PyObject_GetIter(watched ? self->watched : self->iterable);
    if (!inner) {
        return NULL;
    }
    PyTypeObject *type = (PyTypeObject *)profiler->state->slot[CORE_PROFILER_PASS_TYPE];
    pass_object *pass = (pass_object *)type->tp_alloc(type, 0);
    if (!pass) {
        Py_DECREF(inner);
        return NULL;
    }
    pass->inner = inner;
    pass->record = !self->watched;
    Py_INCREF(self->wait);
    pass->wait = self->wait;
    Py_XINCREF(self->step);
    pass->step = self->step;
    return (PyObject *)pass;
}

/* `watcher`: the type that does it for a recording, or NULL. */
static PyObject *loop_new(profiler_object *profiler, PyObject *iterable,
                          profiler_section *wait, profiler_section *step,
                          PyObject *watcher)
{
    if (!wait) {
        return NULL;
    }
    if (!Py_TYPE(iterable)->tp_iter && !PySequence_Check(iterable)) {
        PyErr_Format(PyExc_TypeError, "'%.100s' object is not iterable",
                     Py_TYPE(iterable)->tp_name);
        return NULL;
    }
    PyObject *watched = NULL;
    if (watcher) {
        watched = PyObject_CallFunctionObjArgs(watcher, iterable, NULL);
        if (!watched) {
            return NULL;
        }
    }
    PyTypeObject *type = (PyTypeObject *)profiler->state->slot[CORE_PROFILER_LOOP_TYPE];
    loop_object *self = (loop_object *)type->tp_alloc(type, 0);
    if (!self) {
        Py_XDECREF(watched);
        return NULL;
    }
    Py_INCREF(iterable);
    self->iterable = iterable;
    self->watched = watched;
    Py_INCREF(wait);
    self->wait = wait;
    Py_XINCREF(step);
    self->step = step;
    return (PyObject *)self;
}

PyObject *profiler_data(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"iterable", "name", NULL};
    profiler_object *self = (profiler_object *)object;
    PyObject *iterable, *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|U:data", keywords, &iterable,
                                     &name)) {
        return NULL;
    }
    if (!name || PyUnicode_CompareWithASCIIString(name, WAIT) == 0) {
        return loop_new(self, iterable, profiler_section_named(self, WAIT), NULL,
                        self->state->slot[CORE_DATA_TYPE]);
    }
    PyObject *phase = PyUnicode_FromString(sw_phase_name(SW_PHASE_DATA_WAIT));
    PyObject *wait = phase ? profiler_section_get(self, name, Py_None, phase) : NULL;
    PyObject *loop = loop_new(self, iterable, (profiler_section *)wait, NULL, NULL);
    Py_XDECREF(phase);
    Py_XDECREF(wait);
    return loop;
}

PyObject *profiler_steps(PyObject *object, PyObject *iterable)
{
    profiler_object *self = (profiler_object *)object;
    profiler_section *step = profiler_section_named(self, STEP);
    return step ? loop_new(self, iterable, profiler_section_named(self, WAIT), step,
                           self->state->slot[CORE_STEPS_TYPE])
                : NULL;
}

static PyObject *loop_repr(PyObject *object)
{
    const loop_object *self = (loop_object *)object;
    return PyUnicode_FromFormat("<%s of %R in the profiler %R>",
                                self->step ? "steps" : "batches", self->iterable,
                                self->wait->profiler->name);
}

static int loop_traverse(PyObject *object, visitproc visit, void *arg)
{
    const loop_object *self = (loop_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->iterable);
    Py_VISIT(self->watched);
    Py_VISIT(self->wait);
    Py_VISIT(self->step);
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
    Py_CLEAR(self->watched);
    Py_CLEAR(self->wait);
    Py_CLEAR(self->step);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef loop_methods[] = {
    {"__length_hint__", core_stand_in_length_hint, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef loop_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(loop_object, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot loop_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("Batches, timed by a profiler.")},
    {Py_tp_iter, loop_iter},
    {Py_tp_getattro, core_stand_in_getattr},
    {Py_tp_repr, loop_repr},
    {Py_tp_traverse, loop_traverse},
    {Py_tp_dealloc, loop_dealloc},
    {Py_tp_methods, loop_methods},
    {Py_tp_members, loop_members},
    {Py_mp_length, core_stand_in_length},
    {Py_nb_bool, core_stand_in_bool},
    {0, NULL},
};

static PyType_Spec loop_spec = {
    .name = "stepwatch._core.profiler_loop",
    .basicsize = sizeof(loop_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = loop_slots,
};

/* --- One step by hand ------------------------------------------------------------- */

typedef struct step_object {
    PyObject_HEAD profiler_section *section;
    PyObject *recorded; /* stepwatch.step() while it is open, or NULL */
} step_object;

PyObject *profiler_step(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    profiler_object *profiler = (profiler_object *)object;
    profiler_section *section = profiler_section_named(profiler, STEP);
    PyTypeObject *type = (PyTypeObject *)profiler->state->slot[CORE_PROFILER_STEP_TYPE];
    step_object *self = section ? (step_object *)type->tp_alloc(type, 0) : NULL;
    if (self) {
        Py_INCREF(section);
        self->section = section;
    }
    return (PyObject *)self;
}

static profiler_key hand_key(const step_object *self)
{
    return (profiler_key){.where = self, .suspends = true};
}

static PyObject *step_enter(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    step_object *self = (step_object *)object;
    profiler_object *profiler = self->section->profiler;
    if (profiler_is_enabled(profiler)) {
        PyObject *recorded = PyObject_CallNoArgs(profiler->state->slot[CORE_STEP_TYPE]);
        PyObject *entered =
            recorded ? PyObject_CallMethod(recorded, "__enter__", NULL) : NULL;
        Py_XDECREF(entered);
        if (!entered) {
            Py_XDECREF(recorded);
            return NULL;
        }
        /* A step within itself ends the outer one early, as in the recording. */
        if (self->recorded) {
            profiler_leave(self->section, hand_key(self), 0);
        }
        Py_XSETREF(self->recorded, recorded);
        profiler_enter(self->section, hand_key(self), false);
    }
    Py_INCREF(object);
    return object;
}

static PyObject *step_exit(PyObject *object, PyObject *args)
{
    step_object *self = (step_object *)object;
    if (PyTuple_GET_SIZE(args) != 3) {
        PyErr_Format(PyExc_TypeError, "__exit__ expected 3 arguments, got %zd",
                     PyTuple_GET_SIZE(args));
        return NULL;
    }
    PyObject *recorded = self->recorded;
    if (recorded) {
        self->recorded = NULL;
        profiler_leave(self->section, hand_key(self),
                       core_exit_flags(PyTuple_GET_ITEM(args, 0)));
        PyObject *leave = PyObject_GetAttrString(recorded, "__exit__");
        PyObject *left = leave ? PyObject_CallObject(leave, args) : NULL;
        Py_XDECREF(leave);
        Py_DECREF(recorded);
        if (!left) {
            return NULL;
        }
        Py_DECREF(left);
    }
    Py_RETURN_NONE;
}

static int step_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((step_object *)object)->section);
    return 0;
}

static void step_dealloc(PyObject *object)
{
    step_object *self = (step_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->recorded) {
        profiler_forget(self->section, hand_key(self));
    }
    Py_CLEAR(self->recorded);
    Py_CLEAR(self->section);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef step_methods[] = {
    {"__enter__", step_enter, METH_NOARGS, PyDoc_STR("Begin the step.")},
    {"__exit__", step_exit, METH_VARARGS,
     PyDoc_STR("End the step; an exception is counted and passes.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot step_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("A step of a profiler, by hand.")},
    {Py_tp_traverse, step_traverse},
    {Py_tp_dealloc, step_dealloc},
    {Py_tp_methods, step_methods},
    {0, NULL},
};

static PyType_Spec step_spec = {
    .name = "stepwatch._core.profiler_step",
    .basicsize = sizeof(step_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = step_slots,
};

/* Only profilers make them. */
static int type_add(PyObject *module, enum core_slot slot, PyType_Spec *spec)
{
    core_state *state = PyModule_GetState(module);
    if (core_type_add(module, slot, spec) != 0) {
        return -1;
    }
    ((PyTypeObject *)state->slot[slot])->tp_new = NULL;
    return 0;
}

int profiler_loops_add(PyObject *module)
{
    if (type_add(module, CORE_PROFILER_PASS_TYPE, &pass_spec) != 0 ||
        type_add(module, CORE_PROFILER_LOOP_TYPE, &loop_spec) != 0) {
        return -1;
    }
    return type_add(module, CORE_PROFILER_STEP_TYPE, &step_spec);
}
