/* What Python says of a training, and is told: see training.h. */
#include "quick.h"
#include "sampler.h"
#include "section.h"
#include "training_state.h"

static int int_of(PyObject *object)
{
    const long value = PyLong_AsLong(object);
    return value > INT_MAX || value < INT_MIN ? -1 : (int)value;
}

static int arity(const char *name, Py_ssize_t count, Py_ssize_t least, Py_ssize_t most)
{
    if (count < least || count > most) {
        PyErr_Format(PyExc_TypeError, "%s() takes from %zd to %zd arguments, %zd given",
                     name, least, most, count);
        return -1;
    }
    return 0;
}

/* The source, the owner, and what else a question has. */
typedef struct train_asked {
    int rank;
    PyObject *owner;
    PyObject *group; /* NULL: none */
} train_asked;

static int asked_get(const char *name, PyObject *const *args, Py_ssize_t count,
                     Py_ssize_t most, train_asked *out)
{
    if (arity(name, count, 2, most) != 0) {
        return -1;
    }
    out->rank = int_of(args[0]);
    if (out->rank == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (out->rank < TRAIN_LOOP || out->rank > TRAIN_FRAMEWORK) {
        PyErr_Format(PyExc_ValueError, "%s(): there is no source %d of steps", name,
                     out->rank);
        return -1;
    }
    out->owner = args[1];
    out->group = count > 2 && args[2] != Py_None ? args[2] : NULL;
    return 0;
}

static PyObject *train_wait(PyObject *Py_UNUSED(module), PyObject *const *args,
                            Py_ssize_t count)
{
    train_asked asked;
    if (asked_get("train_wait", args, count, 4, &asked) != 0) {
        return NULL;
    }
    const bool evaluating = count > 3 && PyObject_IsTrue(args[3]) == 1;
    return PyLong_FromLong(
        core_train_ask(asked.rank, asked.owner, asked.group, evaluating));
}

static PyObject *train_got(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(owner))
{
    core_train_got();
    Py_RETURN_NONE;
}

static PyObject *train_end(PyObject *Py_UNUSED(module), PyObject *owner)
{
    core_train_over(owner, false);
    Py_RETURN_NONE;
}

static PyObject *train_failed(PyObject *Py_UNUSED(module), PyObject *owner)
{
    core_train_over(owner, true);
    Py_RETURN_NONE;
}

static PyObject *train_epoch(PyObject *Py_UNUSED(module), PyObject *object)
{
    train_state *state = core_train_state();
    if (!state) {
        return PyLong_FromLong(0);
    }
    return PyLong_FromUnsignedLong(core_group_get(&state->groups, object)->passes++);
}

static PyObject *train_step(PyObject *Py_UNUSED(module), PyObject *const *args,
                            Py_ssize_t count)
{
    train_asked asked;
    if (asked_get("train_step", args, count, 4, &asked) != 0) {
        return NULL;
    }
    int unit = SW_STEP_BATCH;
    if (count > 3) {
        unit = int_of(args[3]);
        if (unit == -1 && PyErr_Occurred()) {
            return NULL;
        }
    }
    train_state *state = core_train_state();
    const bool began = state && core_train_question(state, asked.rank, asked.owner,
                                                    asked.group, false, unit) == 1;
    return PyBool_FromLong(began);
}

/* As train_step for frameworks, whose loops own their steps. */
static PyObject *framework_step(PyObject *Py_UNUSED(module), PyObject *owner)
{
    train_state *state;
    if (!core_quick_ask(owner, core_ticks()) && (state = core_train_state())) {
        (void)core_train_question(state, TRAIN_FRAMEWORK, owner, owner, false,
                                  SW_STEP_BATCH);
    }
    Py_RETURN_NONE;
}

static PyObject *train_step_end(PyObject *Py_UNUSED(module), PyObject *const *args,
                                Py_ssize_t count)
{
    train_asked asked;
    if (asked_get("train_step_end", args, count, 3, &asked) != 0) {
        return NULL;
    }
    const bool forget = count == 3 && args[2] == Py_None;
    const bool complete = count < 3 || PyObject_IsTrue(args[2]) == 1;
    train_state *state = core_train_state();
    if (state && state->open && state->open_rank == asked.rank &&
        state->owner == asked.owner) {
        core_train_validation_end(state);
        state->open = false;
        if (forget) {
            sw_step_cancel();
            sampler_forget_step();
        } else if (complete) {
            sw_step_end();
        } else {
            sw_step_abandon();
        }
        core_allocators_step();
        core_holders_look(false);
    }
    Py_RETURN_NONE;
}

static PyObject *train_release(PyObject *Py_UNUSED(module), PyObject *owner)
{
    core_train_release(owner);
    Py_RETURN_NONE;
}

static PyObject *train_works(PyObject *Py_UNUSED(module), PyObject *const *args,
                             Py_ssize_t count)
{
    if (arity("train_works", count, 0, 1) != 0) {
        return NULL;
    }
    core_train_works(count == 0 || PyObject_IsTrue(args[0]) == 1);
    Py_RETURN_NONE;
}

static PyObject *train_update(PyObject *Py_UNUSED(module), PyObject *owner)
{
    core_train_update(owner);
    Py_RETURN_NONE;
}

static PyObject *train_optimizer(PyObject *Py_UNUSED(module),
                                 PyObject *Py_UNUSED(ignored))
{
    core_optimizer_known = true;
    Py_RETURN_NONE;
}

static PyObject *train_evaluates(PyObject *Py_UNUSED(module), PyObject *trained)
{
    core_train_evaluates(PyObject_IsTrue(trained) == 1);
    Py_RETURN_NONE;
}

static PyObject *train_waits(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(core_train_waits());
}

static PyObject *train_resumes(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    core_train_resumes();
    Py_RETURN_NONE;
}

/* For tests and notes: (source that gives steps, whether a step is open, whether this is validation). */
static PyObject *train_now(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    const train_state *state = core_train_state();
    return state ? Py_BuildValue("(iOO)", state->open ? state->open_rank : state->rank,
                                 state->open ? Py_True : Py_False,
                                 state->validating ? Py_True : Py_False)
                 : Py_BuildValue("(iOO)", 0, Py_False, Py_False);
}

static PyObject *train_aside(PyObject *Py_UNUSED(module), PyObject *const *args,
                             Py_ssize_t count)
{
    if (arity("train_aside", count, 0, 1) != 0) {
        return NULL;
    }
    if (count == 1) {
        core_train_set_aside(PyObject_IsTrue(args[0]) == 1);
    }
    return PyBool_FromLong(core_train_aside());
}

static PyObject *on_step(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *watcher;
    long long every = 1, after = 0;
    if (!PyArg_ParseTuple(args, "O|LL:on_step", &watcher, &every, &after)) {
        return NULL;
    }
    core_train_watch(watcher, every, after);
    Py_RETURN_NONE;
}

#define FAST(function) (PyCFunction)(void (*)(void)) function

static PyMethodDef training_methods[] = {
    {"train_wait", FAST(train_wait), METH_FASTCALL,
     PyDoc_STR("train_wait(source, owner, group=None, evaluating=False, /)\n--\n\n"
               "A loop asks for its next batch: 1 a step began, 0 it is part of one,\n"
               "2 of a validation.")},
    {"train_got", train_got, METH_O, PyDoc_STR("The batch is there.")},
    {"train_end", train_end, METH_O, PyDoc_STR("There is no further batch.")},
    {"train_failed", train_failed, METH_O, PyDoc_STR("Asking for the batch raised.")},
    {"train_epoch", train_epoch, METH_O,
     PyDoc_STR("A pass begins; return its number, from 0.")},
    {"train_step", FAST(train_step), METH_FASTCALL,
     PyDoc_STR("train_step(source, owner, group=None, unit=1, /)\n--\n\n"
               "Begin a step, and end the open one; tell whether this source may.")},
    {"framework_step", framework_step, METH_O,
     PyDoc_STR("A framework's loop begins a step, and ends the open one.")},
    {"train_step_end", FAST(train_step_end), METH_FASTCALL,
     PyDoc_STR("train_step_end(source, owner, complete=True, /)\n--\n\n"
               "End the step, and begin none; None: there was no batch, forget it.")},
    {"train_release", train_release, METH_O,
     PyDoc_STR("The owner gives no further steps; others may.")},
    {"train_works", FAST(train_works), METH_FASTCALL,
     PyDoc_STR("train_works(backward=True, /)\n--\n\nTraining happens here.")},
    {"train_update", train_update, METH_O, PyDoc_STR("An optimizer step has ended.")},
    {"train_optimizer", train_optimizer, METH_NOARGS,
     PyDoc_STR("There is an optimizer; its steps are waited for.")},
    {"train_evaluates", train_evaluates, METH_O,
     PyDoc_STR("A module is called in eval mode and without gradients.")},
    {"train_waits", train_waits, METH_NOARGS,
     PyDoc_STR("Whether this thread is making, or waiting for, a batch.")},
    {"train_resumes", train_resumes, METH_NOARGS,
     PyDoc_STR("What follows is no validation, though nothing is trained yet.")},
    {"train_now", train_now, METH_NOARGS,
     PyDoc_STR("(source, a step is open, this is validation)")},
    {"train_aside", FAST(train_aside), METH_FASTCALL,
     PyDoc_STR(
         "train_aside(begin=…, /)\n--\n\n"
         "What this thread does from here (True) to where that is taken back (False) is\n"
         "no part of the training; return whether that is so.")},
    {"on_step", on_step, METH_VARARGS,
     PyDoc_STR(
         "on_step(function, every=1, after=0, /)\n--\n\n"
         "Call this with the number of each step that begins, or of one in so many, and\n"
         "with none below ``after`` unless numbers begin anew; None: nobody.")},
    {"_owner_gone", core_train_owner_gone, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int core_training_add(PyObject *module)
{
    if (PyModule_AddFunctions(module, training_methods) != 0) {
        return -1;
    }
    PyObject *gone = NULL;
    if (core_in_main_interpreter()) {
        gone = PyObject_GetAttrString(module, "_owner_gone");
        if (!gone) {
            return -1;
        }
    }
    core_train_prepare(gone);
    return 0;
}
