/* What stands in for functions of torch's rests while steps are watched in brief: it costs nothing then.
 *
 * A function that asks whether it has anything to do costs a quarter of a microsecond where a computation has had the caches, and a
 * step has half a dozen of them. So the function stays the object that it is, and is given other code: that of the function it
 * stands for, whose names it knows. Optimizers are found in a cell of a function of torch's; there what counts updates takes the
 * place. A compiler of torch's keeps in mind what code it has met, so once one is at work nothing rests any more. */
#include "resting.h"
#include "modules.h"
#include "training.h"
#include <structmember.h>

enum { MOST = 128 };

typedef struct resting {
    PyObject *holder; /* a function, or a cell; a reference, like the others */
    PyObject *seen;   /* its code, or what the cell has, where it is at work */
    PyObject *plain;  /* and where it rests */
    bool backward;    /* it tells of backwards */
} resting;

static struct {
    resting list[MOST];
    size_t count;
    enum core_rest now;
    bool never;
    PyObject *code; /* "__code__" */
} rests;

/* Puts `wanted` where `expected` is; what somebody else has put there stays. */
static void exchange(const resting *each, PyObject *expected, PyObject *wanted)
{
    if (PyCell_Check(each->holder)) {
        if (PyCell_GET(each->holder) == expected) {
            (void)PyCell_Set(each->holder, wanted);
        }
        return;
    }
    if (PyFunction_GET_CODE(each->holder) == expected) {
        (void)PyObject_SetAttr(each->holder, rests.code, wanted);
    }
}

static void settle(const resting *each)
{
    const bool rest = rests.now == CORE_REST_ALL ||
                      (rests.now == CORE_REST_BUT_BACKWARD && !each->backward);
    exchange(each, rest ? each->seen : each->plain, rest ? each->plain : each->seen);
}

void core_rests(enum core_rest rest)
{
    rest = rests.never ? CORE_REST_ENDS : rest;
    if (rests.now == rest || !core_in_main_interpreter()) {
        return;
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    rests.now = rest;
    for (size_t i = 0; i < rests.count; i++) {
        settle(&rests.list[i]);
        /* An audit hook of the program's may have refused. */
        core_error_forget();
    }
    PyErr_Restore(type, value, trace);
}

void core_rests_never(void)
{
    rests.never = true;
    core_rests(CORE_REST_ENDS);
}

/* --- What counts updates ---------------------------------------------------------------------- */

typedef struct stepped_object {
    PyObject_HEAD vectorcallfunc call;
    PyObject *function; /* the step of a class of optimizers */
} stepped_object;

static PyObject *stepped_call(PyObject *object, PyObject *const *args, size_t nargsf,
                              PyObject *names)
{
    PyObject *function = ((stepped_object *)object)->function;
    PyObject *optimizer = PyVectorcall_NARGS(nargsf) > 0 ? args[0] : NULL;
    Py_INCREF(function);
    core_optimizer_begins();
    PyObject *result = PyObject_Vectorcall(function, args, nargsf, names);
    /* Those that another one calls are part of its step. */
    const bool outermost = core_optimizer_ends();
    Py_DECREF(function);
    if (result && optimizer && outermost) {
        core_train_updated(optimizer);
    }
    return result;
}

static PyObject *stepped_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"function", NULL};
    PyObject *function;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:stepped", keywords, &function)) {
        return NULL;
    }
    stepped_object *self = (stepped_object *)type->tp_alloc(type, 0);
    if (self) {
        self->call = stepped_call;
        Py_INCREF(function);
        self->function = function;
    }
    return (PyObject *)self;
}

static int stepped_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((stepped_object *)object)->function);
    return 0;
}

static void stepped_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_CLEAR(((stepped_object *)object)->function);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *stepped_getattr(PyObject *object, PyObject *name)
{
    return PyObject_GetAttr(((stepped_object *)object)->function, name);
}

static PyMemberDef stepped_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(stepped_object, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot stepped_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("stepped(function)\n--\n\n"
                                  "The step of optimizers, which only counts them.")},
    {Py_tp_new, stepped_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_getattro, stepped_getattr},
    {Py_tp_traverse, stepped_traverse},
    {Py_tp_dealloc, stepped_dealloc},
    {Py_tp_members, stepped_members},
    {0, NULL},
};

static PyType_Spec stepped_spec = {
    .name = "stepwatch._core.stepped",
    .basicsize = sizeof(stepped_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = stepped_slots,
};

/* --- What the adapters call ------------------------------------------------------------------- */

static PyObject *rest(PyObject *holder, PyObject *seen, PyObject *plain, bool backward)
{
    if (!core_in_main_interpreter() || rests.count == MOST) {
        Py_RETURN_FALSE;
    }
    resting *each = &rests.list[rests.count++];
    *each = (resting){holder, seen, plain, backward};
    Py_INCREF(holder);
    Py_INCREF(seen);
    Py_INCREF(plain);
    if (rests.now != CORE_REST_ENDS) {
        settle(each);
        core_error_forget();
    }
    Py_RETURN_TRUE;
}

static PyObject *rest_code(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *function, *plain;
    int backward = 0;
    if (!PyArg_ParseTuple(args, "O!O!|p:rest_code", &PyFunction_Type, &function,
                          &PyCode_Type, &plain, &backward)) {
        return NULL;
    }
    return rest(function, PyFunction_GET_CODE(function), plain, backward);
}

static PyObject *rest_cell(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *cell, *plain;
    if (!PyArg_ParseTuple(args, "O!O:rest_cell", &PyCell_Type, &cell, &plain)) {
        return NULL;
    }
    PyObject *seen = PyCell_GET(cell);
    return seen ? rest(cell, seen, plain, false) : PyBool_FromLong(0);
}

static PyObject *rests_forget(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    core_rests(CORE_REST_ENDS);
    while (rests.count > 0) {
        resting each = rests.list[--rests.count];
        Py_DECREF(each.holder);
        Py_DECREF(each.seen);
        Py_DECREF(each.plain);
    }
    Py_RETURN_NONE;
}

static PyObject *rests_never(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    core_rests_never();
    Py_RETURN_NONE;
}

static PyMethodDef resting_methods[] = {
    {"rest_code", rest_code, METH_VARARGS,
     PyDoc_STR("rest_code(function, code, backward=False, /)\n--\n\n"
               "Give the function this code while steps are watched in brief;\n"
               "backward: it tells of backwards.")},
    {"rest_cell", rest_cell, METH_VARARGS,
     PyDoc_STR("rest_cell(cell, content, /)\n--\n\n"
               "Give the cell this content while steps are watched in brief.")},
    {"rests_forget", rests_forget, METH_NOARGS,
     PyDoc_STR("Put everything back, and exchange it no more.")},
    {"rests_never", rests_never, METH_NOARGS,
     PyDoc_STR("A compiler looks at what stands there: nothing is exchanged any more.")},
    {NULL, NULL, 0, NULL},
};

int core_resting_add(PyObject *module)
{
    if (!rests.code && core_in_main_interpreter()) {
        rests.code = PyUnicode_InternFromString("__code__");
        if (!rests.code) {
            return -1;
        }
    }
    if (PyModule_AddFunctions(module, resting_methods) != 0) {
        return -1;
    }
    return core_type_add(module, CORE_STEPPED_TYPE, &stepped_spec);
}
