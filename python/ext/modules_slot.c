/* Calls of modules, seen without a function of Python's in between.
 *
 * The interpreter calls an object through the slot tp_call of its type, in which all classes with a __call__ in Python have the
 * same function. Modules are called a dozen times a step, and a function of Python's around each call costs more than all
 * that is recorded of it; so the slots of the classes of modules are pointed here instead. Attributes stay as they are: neither the
 * program nor torch.compile can tell.
 *
 * Python fills in the slots of a class when it is made and, of it and all below it, when its __call__ is set. So classes are taken
 * when an object of theirs is built, and looked through again where steps begin: more and more rarely, for no more than a
 * thousandth of the time, and where torch's own slot was filled in meanwhile. Only with the GIL. */
#include "brief.h"
#include "loader_pass.h"
#include "modules.h"
#include "ticks.h"
#include "training.h"
#include <stdbool.h>

static struct {
    PyTypeObject *base;   /* torch's Module; NULL: nothing is taken */
    ternaryfunc usual;    /* what the slots had */
    PyObject *compiler;   /* the dict in which torch keeps that something compiles */
    PyObject *flag;       /* the name of that */
    PyObject *subclasses; /* type.__subclasses__ */
    int64_t looked;       /* the step of the last look at all classes */
    int64_t next;         /* of the next one: at twice as many steps */
    uint64_t due;         /* not before this, in ticks, for there are hundreds */
} taken;

enum { LOOK_SHARE = 1000, MOST_CALLED = 64 };

/* Classes whose objects were called, for while steps are watched in brief: then their slots are what they were, and a call costs
 * nothing. There are few of them, and hundreds that are not called. */
static struct {
    struct called {
        PyTypeObject *type; /* to be compared only */
        PyObject *weak;
        bool
            stays; /* what a model is; its calls are seen in any step, for a validation begins with one */
    } list[MOST_CALLED];
    size_t count;
} called;

/* The entry of a class, new if there is room; NULL: there is none. */
static struct called *called_get(PyTypeObject *type)
{
    for (size_t i = 0; i < called.count; i++) {
        if (called.list[i].type == type) {
            return &called.list[i];
        }
    }
    if (called.count == MOST_CALLED) {
        return NULL;
    }
    PyObject *weak = PyWeakref_NewRef((PyObject *)type, NULL);
    if (!weak) {
        core_error_forget();
        return NULL;
    }
    called.list[called.count] = (struct called){type, weak, false};
    return &called.list[called.count++];
}

static void called_forget(void)
{
    while (called.count > 0) {
        called.count--;
        Py_CLEAR(called.list[called.count].weak);
    }
}

bool core_compiles(void)
{
    PyObject *flag = taken.compiler ? PyDict_GetItem(taken.compiler, taken.flag) : NULL;
    return flag == Py_True;
}

/* Calls of modules of this thread that were passed by in brief: what they call is passed by, too, also where that ends meanwhile. */
CORE_THREAD_LOCAL unsigned passed_by;

static PyObject *pass_by(PyObject *self, PyObject *args, PyObject *kwargs)
{
    ternaryfunc usual = taken.usual;
    passed_by++;
    PyObject *result = usual(self, args, kwargs);
    passed_by--;
    return result;
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    ternaryfunc usual = taken.usual;
    if (passed_by) {
        return usual(self, args, kwargs);
    }
    if (core_brief) {
        if (core_module_trains(self)) {
            return pass_by(self, args, kwargs);
        }
        if (!core_brief_sees(self)) {
            return pass_by(self, args, kwargs);
        }
        core_brief_end();
    }
    PyObject *section = core_compiles() ? NULL : core_module_begin(self);
    if (!section) {
        return PyErr_Occurred() ? NULL : usual(self, args, kwargs);
    }
    (void)called_get(Py_TYPE(self));
    PyObject *result = usual(self, args, kwargs);
    core_module_end(section, !result);
    Py_DECREF(section);
    return result;
}

static void point(PyTypeObject *type, bool here)
{
    if (type->tp_call == (here ? taken.usual : call)) {
        type->tp_call = here ? call : taken.usual;
    }
}

/* A class and all below it. 0, or -1 with an exception. */
static int point_all(PyTypeObject *type, bool here)
{
    point(type, here);
    PyObject *below = PyObject_CallOneArg(taken.subclasses, (PyObject *)type);
    int failed = below && PyList_Check(below) ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(below); i++) {
        PyObject *one = PyList_GET_ITEM(below, i);
        failed = PyType_Check(one) ? point_all((PyTypeObject *)one, here) : 0;
    }
    Py_XDECREF(below);
    return failed;
}

void core_module_slot_stays(PyTypeObject *type)
{
    struct called *entry = called_get(type);
    if (entry) {
        entry->stays = true;
    }
}

void core_module_slots_rest(bool rest)
{
    /* Types belong to the main interpreter. */
    for (size_t i = 0; taken.base && i < called.count && core_in_main_interpreter();
         i++) {
        const struct called *entry = &called.list[i];
        PyObject *type = entry->stays ? NULL : core_referred(entry->weak);
        if (type) {
            point((PyTypeObject *)type, !rest);
            Py_DECREF(type);
        }
    }
}

void core_module_slot_take(PyTypeObject *type)
{
    if (taken.base && PyType_IsSubtype(type, taken.base)) {
        point(type, true);
    }
}

void core_module_slots_look(int64_t step)
{
    /* Who sets the __call__ of all modules sets that of torch's. */
    const bool lost = taken.base && taken.base->tp_call == taken.usual;
    /* A batch that nothing is trained with leaves the number as it is. */
    const bool due = step >= 0 && (step >= taken.next || step < taken.looked) &&
                     core_ticks() >= taken.due;
    if (!taken.base || !(lost || due) || !core_in_main_interpreter()) {
        return;
    }
    const uint64_t began = core_ticks();
    taken.looked = step;
    taken.next = step < 1 ? 1 : step * 2;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (point_all(taken.base, true) != 0) {
        core_error_forget();
    }
    PyErr_Restore(type, value, trace);
    const uint64_t now = core_ticks();
    taken.due = now + (now - began) * LOOK_SHARE;
}

static void slots_free(void)
{
    called_forget();
    Py_CLEAR(taken.base);
    Py_CLEAR(taken.compiler);
    Py_CLEAR(taken.flag);
    Py_CLEAR(taken.subclasses);
}

PyObject *core_module_slots(PyObject *Py_UNUSED(self), PyObject *const *args,
                            Py_ssize_t count)
{
    if (count != 2 || !PyType_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "module_slots(class, module, /)");
        return NULL;
    }
    PyTypeObject *base = (PyTypeObject *)args[0];
    if (taken.base || !base->tp_call || !(base->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        return PyBool_FromLong(taken.base == base);
    }
    Py_INCREF(base);
    taken.base = base;
    taken.looked = -1;
    taken.next = 0;
    taken.due = 0;
    taken.usual = base->tp_call;
    taken.compiler = PyModule_Check(args[1]) ? PyModule_GetDict(args[1]) : NULL;
    Py_XINCREF(taken.compiler);
    taken.flag = PyUnicode_InternFromString("_is_compiling_flag");
    taken.subclasses = PyObject_GetAttrString((PyObject *)&PyType_Type, "__subclasses__");
    if (!taken.flag || !taken.subclasses || point_all(base, true) != 0) {
        slots_free();
        return NULL;
    }
    Py_RETURN_TRUE;
}

PyObject *core_module_slots_back(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    if (taken.base) {
        const int failed = point_all(taken.base, false);
        slots_free();
        if (failed) {
            return NULL;
        }
    }
    Py_RETURN_NONE;
}
