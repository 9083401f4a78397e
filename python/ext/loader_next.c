/* next() of a loader's iterator, seen without a function of Python's in between.
 *
 * The adapter has put a function in the place of the iterators' __next__, which asks and tells around the original. That is found by who
 * calls __next__ by name. A for loop and next() go through the slot tp_iternext of the class, though, which leads here: the same is done
 * in C, and the original is called directly, unless there is more to do for a batch than that. Python fills the slot in
 * again when somebody sets __next__, and then the function is found. Only with the GIL, in the main interpreter. */
#include "brief.h"
#include "loader_pass.h"
#include "quick.h"
#include "training.h"

static struct {
    PyObject *passes;   /* dict by address of the iterators; NULL: nothing is taken */
    PyObject *function; /* what stands for __next__ */
    PyObject *original;
    PyObject *name; /* "__next__" */
    iternextfunc usual;
    core_loader_pass *newest; /* of the iterator that was asked last; borrowed */
} taken;

void core_loader_pass_forget(const core_loader_pass *pass)
{
    if (taken.newest == pass) {
        taken.newest = NULL;
    }
}

/* The pass of this iterator, borrowed; NULL: none, or there is more to do than we can. No exception is left. */
static core_loader_pass *pass_now(PyObject *iterator)
{
    core_loader_pass *pass = taken.newest;
    if (!pass || !core_loader_pass_is_of(pass, iterator)) {
        PyObject *found =
            taken.passes ? core_loader_pass_find(taken.passes, iterator) : NULL;
        if (!found || !core_loader_pass_type ||
            !PyObject_TypeCheck(found, (PyTypeObject *)core_loader_pass_type)) {
            PyErr_Clear();
            return NULL;
        }
        pass = taken.newest = (core_loader_pass *)found;
    }
    return pass->direct ? pass : NULL;
}

/* What is done for a batch where it is not quick. */
static CORE_NOINLINE PyObject *next_looked(PyObject *iterator)
{
    core_loader_pass *pass = pass_now(iterator);
    if (!pass) {
        return taken.usual(iterator);
    }
    PyObject *original = taken.original;
    Py_INCREF(pass);
    Py_INCREF(original);
    core_loader_ask(pass, iterator);
    PyObject *batch = PyObject_CallOneArg(original, iterator);
    if (batch && core_brief) {
        core_loader_got_briefly(pass);
        if (core_train_waits()) {
            core_quick_saw(iterator, pass);
        } else {
            core_quick_begin(core_train_self, iterator, pass);
        }
    } else if (batch) {
        core_loader_got(pass);
    } else {
        core_train_over(iterator, !PyErr_ExceptionMatches(PyExc_StopIteration));
    }
    Py_DECREF(original);
    Py_DECREF(pass);
    return batch;
}

/* It was waited for quickly, and there is none, or somebody was told of it. */
static CORE_NOINLINE void next_over(PyObject *iterator, const PyObject *batch)
{
    core_quick_settle();
    if (batch) {
        core_train_got();
    } else {
        core_train_over(iterator, !PyErr_ExceptionMatches(PyExc_StopIteration));
    }
}

/* A part of another's wait. */
static CORE_NOINLINE PyObject *next_nested(PyObject *iterator)
{
    const uint64_t began = core_ticks();
    PyObject *batch = PyObject_CallOneArg(taken.original, iterator);
    if (batch && core_quick_is_nested(iterator)) {
        core_quick_count(&core_quick_now, core_ticks() - began);
    } else if (!batch) {
        core_quick_settle();
        core_train_nested();
        core_train_over(iterator, !PyErr_ExceptionMatches(PyExc_StopIteration));
    }
    return batch;
}

static PyObject *slot_next(PyObject *iterator)
{
    if (!core_quick_wait(iterator)) {
        return core_quick_is_nested(iterator) ? next_nested(iterator)
                                              : next_looked(iterator);
    }
    PyObject *batch = PyObject_CallOneArg(taken.original, iterator);
    if (!batch || !core_quick_got()) {
        next_over(iterator, batch);
    }
    return batch;
}

PyObject *core_loader_slot(PyObject *Py_UNUSED(module), PyObject *object)
{
    if (!PyType_Check(object)) {
        return PyErr_Format(PyExc_TypeError, "a class is expected, not %.100s",
                            Py_TYPE(object)->tp_name);
    }
    PyTypeObject *type = (PyTypeObject *)object;
    if (!taken.passes || type->tp_iternext == slot_next || !type->tp_iternext ||
        !(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        Py_RETURN_NONE;
    }
    PyObject *found = PyObject_GetAttr(object, taken.name);
    if (found == taken.function && (!taken.usual || taken.usual == type->tp_iternext)) {
        taken.usual = type->tp_iternext;
        type->tp_iternext = slot_next;
    }
    PyErr_Clear();
    Py_XDECREF(found);
    Py_RETURN_NONE;
}

PyObject *core_loader_slots(PyObject *Py_UNUSED(module), PyObject *const *args,
                            Py_ssize_t count)
{
    if (count != 3 || !(args[0] == Py_None || PyDict_Check(args[0]))) {
        PyErr_SetString(PyExc_TypeError, "loader_slots(passes, function, original, /)");
        return NULL;
    }
    if (!taken.name && !(taken.name = PyUnicode_InternFromString("__next__"))) {
        return NULL;
    }
    PyObject **const kept[] = {&taken.passes, &taken.function, &taken.original};
    for (int i = 0; i < 3 && core_in_main_interpreter(); i++) {
        PyObject *value = args[0] == Py_None ? NULL : args[i];
        Py_XINCREF(value);
        Py_XSETREF(*kept[i], value);
    }
    taken.newest = NULL;
    Py_RETURN_NONE;
}
