/* Loops seen through hooks in the code (up to Python 3.11).
 *
 * Code of the user's gets its hooks just before it runs for the first time (stepwatch/_loop_code.py). A `for` loop takes its
 * iterator from `hook(iterable)`: that of the iterable, as ever, or one that hands on what the iterable's gives and tells of it.
 * It is freed when the loop is left, whichever way. A `while` loop applies `+hook` in each iteration and where it is left; a
 * hook that is of no interest any more is overwritten. */
#include "frames.h"
#include "loops.h"
#include "unseen.h"
#include "user_code.h"

#if PY_VERSION_HEX < 0x030c0000
#include <opcode.h>
#include <string.h>
#include <structmember.h>

enum { MOST_CODES = 20000, MOST_TEXTS = 200 };

enum hook_role {
    HOOK_FOR,     /* called with the iterable */
    HOOK_WHILE,   /* applied in each iteration */
    HOOK_LEAVE,   /* applied where the program goes on */
    HOOK_HANDLER, /* applied where an exception is caught */
    HOOK_MODULE   /* stands for the code of a module */
};

/* The loop that several hooks have in common. */
typedef struct shared_loop {
    core_loop *loop;
    Py_ssize_t users;
} shared_loop;

typedef struct hook_object {
    PyObject_HEAD vectorcallfunc call;
    enum hook_role role;
    shared_loop *shared;
    PyObject *code; /* of a module */
} hook_object;

typedef struct iterator_object {
    PyObject_HEAD PyObject *inner;
    PyObject *hook;
    bool tracked; /* a pass of it goes on */
    bool asked;   /* for the item that comes next */
} iterator_object;

static PyTypeObject *hook_type, *iterator_type;
static unsigned converted, converted_texts;

/* --- Passes ------------------------------------------------------------------------------ */

static core_pass *pass_find(const core_loop *loop, const void *key)
{
    for (unsigned i = core_pass_depth(); i-- > 0;) {
        core_pass *pass = core_pass_at(i);
        if (pass->key == key && pass->loop == loop) {
            return pass;
        }
    }
    return NULL;
}

/* Passes of while loops may have ended by an exception that nobody told of; those of for loops end with their iterator. */
static void passes_check(core_frame *frame)
{
    for (unsigned i = 0; i < core_pass_depth(); i++) {
        core_pass *pass = core_pass_at(i);
        if (pass->loop && pass->loop->is_for) {
            continue;
        }
        core_frame *one = frame;
        while (one && one != pass->key) {
            one = core_frame_back(one);
        }
        if (!pass->loop || !one || pass->loop->owner != core_frame_code(one)) {
            core_pass_end(pass, PASS_LEFT);
            return;
        }
    }
}

/* --- An iterator that tells --------------------------------------------------------------- */

static core_loop *iterator_loop(const iterator_object *self)
{
    return ((hook_object *)self->hook)->shared->loop;
}

static core_pass *iterator_pass(iterator_object *self)
{
    core_pass *pass = self->tracked && core_loops_on && core_loops_here()
                          ? pass_find(iterator_loop(self), self)
                          : NULL;
    self->tracked = pass != NULL;
    return pass;
}

static PyObject *iterator_next(PyObject *object)
{
    iterator_object *self = (iterator_object *)object;
    PyObject *inner = self->inner;
    if (!inner) {
        return NULL;
    }
    if (!self->tracked) {
        return Py_TYPE(inner)->tp_iternext(inner);
    }
    core_pass *pass = iterator_pass(self);
    if (pass && !self->asked) {
        self->tracked = core_pass_ask(pass);
    }
    self->asked = false;
    PyObject *item = Py_TYPE(inner)->tp_iternext(inner);
    /* The passes may be others by now. */
    pass = self->tracked ? iterator_pass(self) : NULL;
    if (pass && item) {
        core_pass_got(pass);
    } else if (pass) {
        PyObject *error = PyErr_Occurred();
        const bool failed =
            error && !PyErr_GivenExceptionMatches(error, PyExc_StopIteration);
        core_pass_end(pass, failed ? PASS_LEFT : PASS_ENDED);
        self->tracked = false;
    }
    return item;
}

static int iterator_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((iterator_object *)object)->inner);
    Py_VISIT(((iterator_object *)object)->hook);
    return 0;
}

static int iterator_clear(PyObject *object)
{
    Py_CLEAR(((iterator_object *)object)->inner);
    return 0;
}

static void iterator_dealloc(PyObject *object)
{
    iterator_object *self = (iterator_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    core_pass *pass = iterator_pass(self);
    if (pass) {
        core_pass_end(pass, PASS_LEFT);
    }
    Py_CLEAR(self->inner);
    Py_CLEAR(self->hook);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyType_Slot iterator_slots[] = {
    {Py_tp_iter, PyObject_SelfIter},     {Py_tp_iternext, iterator_next},
    {Py_tp_traverse, iterator_traverse}, {Py_tp_clear, iterator_clear},
    {Py_tp_dealloc, iterator_dealloc},   {0, NULL},
};

static PyType_Spec iterator_spec = {
    .name = "stepwatch._core.loop_iterator",
    .basicsize = sizeof(iterator_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = iterator_slots,
};

/* --- Hooks --------------------------------------------------------------------------------- */

static PyObject *hook_iterate(hook_object *hook, PyObject *iterable)
{
    core_loop *loop = hook->shared->loop;
    Py_INCREF(iterable);
    if (!core_loops_on || loop->state == LOOP_GIVEN_UP) {
        return iterable;
    }
    if (!core_loops_here()) {
        (void)core_loop_elsewhere(loop);
        return iterable;
    }
    iterator_object *self = (iterator_object *)iterator_type->tp_alloc(iterator_type, 0);
    if (!self) {
        PyErr_Clear();
        return iterable;
    }
    Py_INCREF(hook);
    self->hook = (PyObject *)hook;
    passes_check(core_frame_now());
    self->tracked = self->asked = core_pass_begin(loop, self, false) != NULL;
    if (!self->tracked) {
        Py_DECREF(self);
        return iterable;
    }
    /* What it takes to begin is part of the first wait. */
    self->inner = PyObject_GetIter(iterable);
    Py_DECREF(iterable);
    if (!self->inner) {
        Py_CLEAR(self); /* ends the pass */
    }
    return (PyObject *)self;
}

/* The code of a module, in place of the one that Python was given. */
static PyObject *hook_run(hook_object *hook)
{
#if PY_VERSION_HEX >= 0x030b0000
    /* The frame that stands for it steps out of the chain meanwhile: samplers and debuggers shall find one module. */
    _PyCFrame *now = PyThreadState_Get()->cframe;
    core_frame *frame = now->current_frame;
    now->current_frame = frame->previous;
    PyObject *result = PyEval_EvalCode(hook->code, frame->f_globals, frame->f_locals);
    now->current_frame = frame;
    return result;
#else
    (void)hook;
    PyErr_SetString(PyExc_SystemError, "no code to run");
    return NULL;
#endif
}

/* Overwrites the instructions that load and apply this hook by a jump over them. An index with a prefix is loaded and
 * thrown away as before: the prefix would be the jump's, too. */
static void hook_remove(core_frame *frame)
{
#if PY_VERSION_HEX >= 0x030b0000
    _Py_CODEUNIT *apply = frame->prev_instr;
    _Py_CODEUNIT *first = _PyCode_CODE(frame->f_code);
    if (apply < first + 2 || _Py_OPCODE(*apply) != UNARY_POSITIVE) {
        return;
    }
    const int before = _Py_OPCODE(apply[-2]);
    if (_Py_OPCODE(apply[-1]) == LOAD_CONST && before != EXTENDED_ARG &&
        before != LOAD_FAST__LOAD_CONST) {
        apply[-1] = _Py_MAKECODEUNIT(JUMP_FORWARD, 2);
    } else {
        *apply = _Py_MAKECODEUNIT(NOP, 0);
    }
#else
#if PY_VERSION_HEX >= 0x030a0000
    const Py_ssize_t at = (Py_ssize_t)frame->f_lasti * 2;
    const unsigned char over = 2;
#else
    const Py_ssize_t at = frame->f_lasti;
    const unsigned char over = 4;
#endif
    PyObject *bytes = frame->f_code->co_code;
    unsigned char *apply = (unsigned char *)PyBytes_AS_STRING(bytes) + at;
    if (at < 4 || at >= PyBytes_GET_SIZE(bytes) || *apply != UNARY_POSITIVE) {
        return;
    }
    if (apply[-2] == LOAD_CONST && apply[-4] != EXTENDED_ARG) {
        apply[-2] = JUMP_FORWARD;
        apply[-1] = over;
    } else {
        *apply = NOP;
    }
#endif
}

static void hook_while(const hook_object *hook, core_frame *frame)
{
    core_loop *loop = hook->shared->loop;
    if (!core_loops_on || loop->state == LOOP_GIVEN_UP) {
        hook_remove(frame);
        return;
    }
    if (!core_loops_here()) {
        (void)core_loop_elsewhere(loop);
        return;
    }
    core_pass *pass = pass_find(loop, frame);
    if (pass) {
        (void)core_pass_ask(pass);
        return;
    }
    passes_check(frame);
    loop->owner = core_frame_code(frame);
    (void)core_pass_begin(loop, frame, false);
}

static PyObject *hook_apply(PyObject *self)
{
    hook_object *hook = (hook_object *)self;
    core_frame *frame = core_frame_now();
    Py_INCREF(self);
    switch (hook->role) {
    case HOOK_MODULE:
        Py_DECREF(self);
        return hook_run(hook);
    case HOOK_WHILE:
        hook_while(hook, frame);
        break;
    case HOOK_LEAVE:
    case HOOK_HANDLER:
        if (core_loops_on && core_loops_here()) {
            core_pass *pass = pass_find(hook->shared->loop, frame);
            if (pass) {
                core_pass_end(pass, hook->role == HOOK_LEAVE ? PASS_COMPLETE : PASS_LEFT);
            }
        }
        break;
    default:
        break;
    }
    return self;
}

static PyObject *hook_call(PyObject *self, PyObject *const *args, size_t flags,
                           PyObject *Py_UNUSED(names))
{
    if (PyVectorcall_NARGS(flags) != 1) {
        PyErr_SetString(PyExc_TypeError, "a loop hook takes one argument");
        return NULL;
    }
    return hook_iterate((hook_object *)self, args[0]);
}

static void hook_dealloc(PyObject *self)
{
    hook_object *hook = (hook_object *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (hook->shared && --hook->shared->users == 0) {
        core_loop_free(hook->shared->loop);
        PyMem_Free(hook->shared);
    }
    Py_CLEAR(hook->code);
    type->tp_free(self);
    Py_DECREF(type);
}

/* Code that is copied to another process by value takes no hook along: iter() and +0 change nothing. */
static PyObject *hook_reduce(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    if (((hook_object *)self)->role == HOOK_FOR) {
        PyObject *eval = PyDict_GetItemString(PyEval_GetBuiltins(), "eval");
        return eval ? Py_BuildValue("O(s)", eval, "iter") : NULL;
    }
    return Py_BuildValue("O()", &PyLong_Type);
}

static PyObject *hook_repr(PyObject *Py_UNUSED(self))
{
    return PyUnicode_FromString("<stepwatch loop hook>");
}

static PyMethodDef hook_methods[] = {
    {"__reduce__", hook_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef hook_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(hook_object, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot hook_slots[] = {
    {Py_nb_positive, hook_apply},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_dealloc, hook_dealloc},
    {Py_tp_methods, hook_methods},
    {Py_tp_members, hook_members},
    {Py_tp_repr, hook_repr},
    {0, NULL},
};

static PyType_Spec hook_spec = {
    .name = "stepwatch._core.loop_hook",
    .basicsize = sizeof(hook_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = hook_slots,
};

static hook_object *hook_new(enum hook_role role, shared_loop *shared)
{
    hook_object *hook = (hook_object *)hook_type->tp_alloc(hook_type, 0);
    if (hook) {
        hook->call = hook_call;
        hook->role = role;
        hook->shared = shared;
        if (shared) {
            shared->users++;
        }
    }
    return hook;
}

/* make(code, line, is_for, counts_steps) for the rewriter: the hooks of one loop, as a tuple. */
static PyObject *hooks_make(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyCodeObject *code;
    unsigned line;
    int is_for, counts_steps;
    if (!PyArg_ParseTuple(args, "O!Ipp:make", &PyCode_Type, &code, &line, &is_for,
                          &counts_steps)) {
        return NULL;
    }
    shared_loop *shared = PyMem_Calloc(1, sizeof *shared);
    if (!shared) {
        return PyErr_NoMemory();
    }
    shared->loop = core_loop_new(code, line, is_for);
    if (!shared->loop) {
        PyMem_Free(shared);
        return PyErr_NoMemory();
    }
    shared->loop->counts_steps = counts_steps;
    shared->users = 1; /* this function, until all are there */
    PyObject *result = PyTuple_New(is_for ? 1 : 3);
    for (Py_ssize_t i = 0; result && i < PyTuple_GET_SIZE(result); i++) {
        PyObject *hook = (PyObject *)hook_new(
            is_for ? HOOK_FOR : (enum hook_role)(HOOK_WHILE + i), shared);
        if (hook) {
            PyTuple_SET_ITEM(result, i, hook);
        } else {
            Py_CLEAR(result);
        }
    }
    if (--shared->users == 0) {
        core_loop_free(shared->loop);
        PyMem_Free(shared);
    }
    return result;
}

/* --- Code ------------------------------------------------------------------------------------ */

#if PY_VERSION_HEX >= 0x030b0000
/* The code that Python is about to run cannot grow. It becomes one that runs the other in its place, and whose own frame is
 * not seen: what comes before the first instruction that can be traced is none to tracebacks and debuggers. */
static int become(PyCodeObject *code, PyCodeObject *other)
{
    if (Py_SIZE(code) < 3) {
        return 0;
    }
    hook_object *hook = hook_new(HOOK_MODULE, NULL);
    PyObject *constants = hook ? PyTuple_Pack(1, hook) : NULL;
    PyObject *exceptions = PyBytes_FromStringAndSize(NULL, 0);
    Py_XDECREF(hook);
    if (!constants || !exceptions) {
        Py_XDECREF(constants);
        Py_XDECREF(exceptions);
        return -1;
    }
    Py_INCREF(other);
    hook->code = (PyObject *)other;
    PyObject *old_constants = code->co_consts;
    PyObject *old_exceptions = code->co_exceptiontable;
    code->co_consts = constants;
    code->co_exceptiontable = exceptions;
    Py_DECREF(old_constants);
    Py_DECREF(old_exceptions);
    _Py_CODEUNIT *at = _PyCode_CODE(code);
    at[0] = _Py_MAKECODEUNIT(LOAD_CONST, 0);
    at[1] = _Py_MAKECODEUNIT(UNARY_POSITIVE, 0);
    at[2] = _Py_MAKECODEUNIT(RETURN_VALUE, 0);
    code->_co_firsttraceable = (int)Py_SIZE(code);
    return 0;
}
#else
/* Takes over what the other consists of; nothing has run it yet. */
static int become(PyCodeObject *code, PyCodeObject *other)
{
#define TAKE(field)                                                                      \
    do {                                                                                 \
        PyObject *old = code->field;                                                     \
        Py_INCREF(other->field);                                                         \
        code->field = other->field;                                                      \
        Py_DECREF(old);                                                                  \
    } while (0)
    TAKE(co_code);
    TAKE(co_consts);
#if PY_VERSION_HEX >= 0x030a0000
    TAKE(co_linetable);
#else
    TAKE(co_lnotab);
#endif
#undef TAKE
    code->co_stacksize = other->co_stacksize;
    return 0;
}
#endif

/* Whether nobody but Python itself will look at this code: it was read from a file, or made of a text, to be run once. */
static bool may_become(PyCodeObject *code)
{
    if (PyUnicode_CompareWithASCIIString(code->co_name, "<module>") != 0 ||
        (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0) {
        return false;
    }
#if PY_VERSION_HEX < 0x030b0000
    if (code->co_zombieframe || code->co_opcache_map) {
        return false; /* It has run before. */
    }
#endif
    if (Py_REFCNT(code) <= 2) {
        return true;
    }
    core_frame *frame = core_frame_now();
    const char *caller =
        frame ? PyUnicode_AsUTF8(frame->f_code->co_filename) : "<frozen importlib>";
    if (!caller) {
        PyErr_Clear();
        return false;
    }
    return strncmp(caller, "<frozen importlib", 17) == 0 ||
           strncmp(caller, "<frozen runpy", 13) == 0 || strstr(caller, "/runpy.py") ||
           strstr(caller, "/IPython/") || strstr(caller, "/ipykernel/");
}

int core_loop_events_start(PyObject *Py_UNUSED(module))
{
    return 0;
}

int core_loop_events_watch(PyObject *module, PyObject *code)
{
    PyCodeObject *old = (PyCodeObject *)code;
    const char *file = PyUnicode_AsUTF8(old->co_filename);
    if (!file || converted > MOST_CODES || !may_become(old) ||
        (strcmp(file, "<string>") == 0 && ++converted_texts > MOST_TEXTS)) {
        return file ? 0 : -1;
    }
    converted++;
    PyObject *rewriter = core_import("stepwatch._loop_code");
    PyObject *make = PyObject_GetAttrString(module, "_loops_make");
    PyObject *new = rewriter &&make
                        ? PyObject_CallMethod(rewriter, "prepare", "OO", code, make)
                        : NULL;
    int result = new ? 0 : -1;
    if (new &&new != code && PyCode_Check(new)) {
        result = become(old, (PyCodeObject *)new);
    }
    Py_XDECREF(new);
    Py_XDECREF(make);
    Py_XDECREF(rewriter);
    return result;
}

void core_loop_events_choose(core_loop *Py_UNUSED(loop)) {}

void core_loop_events_stop(void) {}

PyDoc_STRVAR(
    restore_doc,
    "_loops_restore(constants, codes, /)\n--\n\n"
    "Put originals in the place of codes with hooks: codes[id(with hooks)] is the "
    "original.\nThe tuple may be in use by a frame that runs.");

static PyObject *hooks_restore(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *constants, *codes;
    if (!PyArg_ParseTuple(args, "O!O!:_loops_restore", &PyTuple_Type, &constants,
                          &PyDict_Type, &codes)) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); i++) {
        PyObject *constant = PyTuple_GET_ITEM(constants, i);
        PyObject *key = PyCode_Check(constant) ? PyLong_FromVoidPtr(constant) : NULL;
        PyObject *original = key ? PyDict_GetItemWithError(codes, key) : NULL;
        Py_XDECREF(key);
        if (original) {
            Py_INCREF(original);
            PyTuple_SET_ITEM(constants, i, original);
            Py_DECREF(constant);
        } else if (PyErr_Occurred()) {
            return NULL;
        }
    }
    Py_RETURN_NONE;
}

/* For others who change the code of a module before it runs. */
static PyObject *hooks_code(PyObject *Py_UNUSED(module), PyObject *code)
{
    PyObject *constants = PyCode_Check(code) ? ((PyCodeObject *)code)->co_consts : NULL;
    if (constants && PyTuple_GET_SIZE(constants) == 1 &&
        Py_TYPE(PyTuple_GET_ITEM(constants, 0)) == hook_type) {
        const hook_object *hook = (hook_object *)PyTuple_GET_ITEM(constants, 0);
        if (hook->role == HOOK_MODULE) {
            code = hook->code;
        }
    }
    Py_INCREF(code);
    return code;
}

static PyMethodDef hooks_methods[] = {
    {"_loops_code", hooks_code, METH_O,
     PyDoc_STR("The code that runs in the place of this one.")},
    {"_loops_make", hooks_make, METH_VARARGS, PyDoc_STR("The hooks of one loop.")},
    {"_loops_restore", hooks_restore, METH_VARARGS, restore_doc},
    {NULL, NULL, 0, NULL},
};

int core_loop_events_add(PyObject *module)
{
    if (!hook_type) {
        hook_type = (PyTypeObject *)PyType_FromSpec(&hook_spec);
        iterator_type = (PyTypeObject *)PyType_FromSpec(&iterator_spec);
    }
    if (!hook_type || !iterator_type) {
        return -1;
    }
    return PyModule_AddFunctions(module, hooks_methods);
}
#endif
