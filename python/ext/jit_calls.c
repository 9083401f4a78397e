/* Calls of functions that a compiler has made, seen without anything that the program could notice.
 *
 * jaxlib's compiled functions keep the C function that runs a call in the object itself, as the protocol of vector calls
 * has it. For objects that are watched that pointer leads here; the object stays what it was, so nothing is compiled
 * again, pickled differently or found changed. What a call means for the steps is decided in Python
 * (integrations/jax_steps.py) from the first few calls of each function; after that only numbers are compared here. */
#include "loops.h"
#include "section.h"
#include "training_state.h"
#include "user_code.h"
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* What a function is in the training loop; the numbers are Python's, too. */
enum jit_role {
    JIT_UNDECIDED = 0, /* Python looks at each call */
    JIT_OWNER = 1,     /* a call begins a step */
    JIT_MEMBER = 2,    /* called in most steps, or seldom and alone */
    JIT_EVALUATES = 3, /* a call is part of a validation */
    JIT_QUIET = 4      /* nothing to do with steps */
};

/* A function of the program: all the compiled objects that were made of it. Never freed. */
typedef struct jit_function {
    sw_section *section;
    PyObject *number; /* what Python knows it by: index + 1 */
    PyObject *owner;  /* stands for it as the owner of steps */
    uint64_t calls;
    uint64_t stretches;  /* how many times it was called since another step had begun */
    uint64_t owner_seen; /* owner_calls at its last call */
    uint32_t row;        /* calls since then */
    uint32_t limit;      /* Python looks again when there are more */
    enum jit_role role;
    bool sync; /* the result is waited for */
    loop_place place;
} jit_function;

/* One object that is watched. */
typedef struct jit_entry {
    PyObject *
        object; /* borrowed: the weak reference's callback removes the entry; NULL: free */
    PyObject *weak;
    vectorcallfunc call; /* what was there before */
    jit_function *function;
} jit_entry;

/* A call that runs, on the stack of its thread. */
typedef struct jit_frame {
    struct jit_frame *outer;
    jit_function *function;
    bool compiled; /* something was compiled meanwhile */
} jit_frame;

/* The objects hash by their address; `size` is a power of two and at least twice `used`. All of it belongs to
 * who holds the GIL. */
static struct {
    jit_entry *entries;
    size_t size;
    size_t used;
} table;

enum { FUNCTIONS_MOST = 4096, TYPES_MOST = 4 };
static jit_function *functions[FUNCTIONS_MOST];
static size_t function_count;
static uint64_t owner_calls;

/* What the types' objects had, for a call that comes when its entry is gone. */
static struct {
    PyTypeObject *type;
    vectorcallfunc call;
} originals[TYPES_MOST];

/* Python's part; NULL: not set up. */
static struct {
    PyObject *before;   /* (number, args, kwargs) -> role */
    PyObject *after;    /* (number, result) */
    PyObject *compiled; /* (number, object, args, kwargs) */
    PyObject *clean;    /* () -> whether nothing is being traced */
    PyObject *staging;  /* () -> whether what is traced is not run */
    PyObject *block;    /* (result): wait for it */
} python;
static PyObject *entry_gone;

CORE_THREAD_LOCAL jit_frame *running;

static PyObject *jit_call(PyObject *self, PyObject *const *args, size_t nargsf,
                          PyObject *names);

/* --- The table ------------------------------------------------------------------------------- */

static size_t slot_of(const void *object, size_t size)
{
    uint64_t hash = (uint64_t)(uintptr_t)object >> 4;
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(hash >> 32) & (size - 1);
}

static jit_entry *entry_find(const PyObject *object)
{
    if (table.used == 0) {
        return NULL;
    }
    size_t at = slot_of(object, table.size);
    while (table.entries[at].object) {
        if (table.entries[at].object == object) {
            return &table.entries[at];
        }
        at = (at + 1) & (table.size - 1);
    }
    return NULL;
}

static void entry_put(jit_entry entry)
{
    size_t at = slot_of(entry.object, table.size);
    while (table.entries[at].object) {
        at = (at + 1) & (table.size - 1);
    }
    table.entries[at] = entry;
    table.used++;
}

static int table_reserve(void)
{
    if (table.size && table.used * 2 < table.size) {
        return 0;
    }
    const size_t size = table.size ? table.size * 2 : 64;
    jit_entry *grown = PyMem_RawCalloc(size, sizeof *grown);
    if (!grown) {
        PyErr_NoMemory();
        return -1;
    }
    jit_entry *before = table.entries;
    const size_t before_size = table.size;
    table.entries = grown;
    table.size = size;
    table.used = 0;
    for (size_t i = 0; i < before_size; i++) {
        if (before[i].object) {
            entry_put(before[i]);
        }
    }
    PyMem_RawFree(before);
    return 0;
}

/* Takes an entry out and closes the gap: what follows moves up where its place allows. The weak reference is the
 * caller's to release, when the table is in order again. */
static PyObject *entry_remove(jit_entry *entry)
{
    PyObject *weak = entry->weak;
    size_t hole = (size_t)(entry - table.entries);
    const size_t mask = table.size - 1;
    table.used--;
    for (size_t at = (hole + 1) & mask; table.entries[at].object; at = (at + 1) & mask) {
        const size_t home = slot_of(table.entries[at].object, table.size);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table.entries[hole] = table.entries[at];
            hole = at;
        }
    }
    table.entries[hole] = (jit_entry){0};
    return weak;
}

/* A watched object has been freed. Called with its dead weak reference. */
static PyObject *jit_gone(PyObject *Py_UNUSED(module), PyObject *weak)
{
    for (size_t i = 0; i < table.size; i++) {
        if (table.entries[i].object && table.entries[i].weak == weak) {
            Py_DECREF(entry_remove(&table.entries[i]));
            break;
        }
    }
    Py_RETURN_NONE;
}

/* --- Pointers of objects ---------------------------------------------------------------------- */

/* Where the object keeps the function that runs its calls; NULL: it has no such place, or nobody would tell when it is
 * freed. */
static vectorcallfunc *place_of(PyObject *object)
{
    const PyTypeObject *type = Py_TYPE(object);
    if (PyType_Check(object) ||
        !PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HAVE_VECTORCALL) ||
        type->tp_vectorcall_offset < (Py_ssize_t)sizeof(PyObject) ||
        type->tp_vectorcall_offset + (Py_ssize_t)sizeof(vectorcallfunc) >
            type->tp_basicsize ||
        type->tp_weaklistoffset == 0) {
        return NULL;
    }
    return (vectorcallfunc *)(void *)((char *)object + type->tp_vectorcall_offset);
}

static vectorcallfunc original_of(PyTypeObject *type)
{
    for (size_t i = 0; i < TYPES_MOST; i++) {
        if (originals[i].type == type) {
            return originals[i].call;
        }
    }
    return NULL;
}

/* Remembers what objects of the type have; false: there are too many types, or this one has several. */
static bool original_keep(PyTypeObject *type, vectorcallfunc call)
{
    for (size_t i = 0; i < TYPES_MOST; i++) {
        if (originals[i].type == type) {
            return originals[i].call == call;
        }
        if (!originals[i].type) {
            Py_INCREF(type);
            originals[i].type = type;
            originals[i].call = call;
            return true;
        }
    }
    return false;
}

/* --- A call ------------------------------------------------------------------------------------- */

/* What is left of an exception of ours: nothing, unless it is the user who wants to stop. */
static int ours_failed(void)
{
    if (PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
        return 0;
    }
    return -1;
}

/* Whether the function is called to be traced into another one: nothing runs then. */
static bool is_traced(void)
{
    PyObject *const questions[] = {python.clean, python.staging};
    const bool answers[] = {true, false};
    for (size_t i = 0; i < 2 && questions[i]; i++) {
        PyObject *answer = PyObject_CallObject(questions[i], NULL);
        if (!answer) {
            core_error_forget();
            return false;
        }
        const bool is = answer == Py_True;
        Py_DECREF(answer);
        if (is == answers[i]) {
            return false;
        }
    }
    return python.clean != NULL;
}

/* The arguments as tuple and dict. 0, or -1 with an exception set. */
static int arguments_of(PyObject *const *args, size_t nargsf, PyObject *names,
                        PyObject **tuple, PyObject **dict)
{
    const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    *dict = PyDict_New();
    *tuple = PyTuple_New(count);
    if (!*tuple || !*dict) {
        goto failed;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_INCREF(args[i]);
        PyTuple_SET_ITEM(*tuple, i, args[i]);
    }
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++) {
        if (PyDict_SetItem(*dict, PyTuple_GET_ITEM(names, i), args[count + i]) != 0) {
            goto failed;
        }
    }
    return 0;
failed:
    Py_CLEAR(*tuple);
    Py_CLEAR(*dict);
    return -1;
}

/* Asks Python what the function is. 0, or -1 with an exception that is the program's. */
static int role_ask(jit_function *function, PyObject *const *args, size_t nargsf,
                    PyObject *names, enum jit_role *role)
{
    PyObject *tuple, *dict;
    if (arguments_of(args, nargsf, names, &tuple, &dict) != 0) {
        return ours_failed();
    }
    PyObject *answer =
        PyObject_CallFunctionObjArgs(python.before, function->number, tuple, dict, NULL);
    Py_DECREF(tuple);
    Py_DECREF(dict);
    const long number = answer ? PyLong_AsLong(answer) : -1;
    Py_XDECREF(answer);
    if (number == -1 && PyErr_Occurred()) {
        return ours_failed();
    }
    *role = (enum jit_role)number;
    return 0;
}

/* Says to the steps what this call is. Returns whether the caller has to tell that an update has happened, -1: with an
 * exception that is the program's. `*owns`: the step is this function's. */
static int outermost_begins(jit_function *function, PyObject *const *args, size_t nargsf,
                            PyObject *names, bool *asked, bool *owns)
{
    enum jit_role role = function->role;
    function->calls++;
    core_loop_noted(&function->place);
    if (role != JIT_OWNER) {
        if (function->owner_seen == owner_calls && function->row) {
            function->row++;
        } else {
            function->owner_seen = owner_calls;
            function->row = 1;
            function->stretches++;
        }
        if (python.before && (role == JIT_UNDECIDED ||
                              (role == JIT_MEMBER && function->row > function->limit))) {
            *asked = true;
            if (role_ask(function, args, nargsf, names, &role) != 0) {
                return -1;
            }
        }
    }
    if (role == JIT_OWNER) {
        owner_calls++;
        bool open = false;
        if (core_loop_hosts(&function->place, &open)) {
            if (open) {
                core_train_works(true);
            } else {
                core_train_resumes(); /* The loop will tell when its iteration has ended. */
            }
            *owns = true;
            return 1;
        }
        train_state *state = core_train_state();
        *owns = state && core_train_question(state, TRAIN_UPDATE, function->owner, NULL,
                                             false, SW_STEP_UPDATE) == 1;
        core_train_works(true);
        return 1;
    }
    if (role == JIT_EVALUATES) {
        core_train_evaluates(true);
    }
    return 0;
}

static void update_happened(jit_function *function, bool owns)
{
    if (core_train_by_framework()) {
        return; /* It counts its updates itself. */
    }
    if (owns) {
        sw_update();
        return;
    }
    core_train_update(function->owner);
}

/* Tells Python about a call that is over. Returns `result`, or NULL when the user wants to stop. */
static PyObject *tell(PyObject *result, PyObject *told)
{
    if (told) {
        Py_DECREF(told);
    } else if (ours_failed() != 0) {
        Py_CLEAR(result);
    }
    return result;
}

static void tell_compiled(jit_function *function, PyObject *self, PyObject *const *args,
                          size_t nargsf, PyObject *names)
{
    PyObject *type, *value, *trace, *tuple, *dict;
    PyErr_Fetch(&type, &value, &trace);
    if (arguments_of(args, nargsf, names, &tuple, &dict) == 0) {
        PyObject *told = PyObject_CallFunctionObjArgs(python.compiled, function->number,
                                                      self, tuple, dict, NULL);
        Py_XDECREF(told);
        Py_DECREF(tuple);
        Py_DECREF(dict);
    }
    /* The program's own exception comes first; without one, only a wish to stop remains. */
    if (type) {
        PyErr_Clear();
        PyErr_Restore(type, value, trace);
    } else if (PyErr_Occurred()) {
        (void)ours_failed();
    }
}

static CORE_NOINLINE PyObject *call_recorded(jit_function *function, vectorcallfunc call,
                                             PyObject *self, PyObject *const *args,
                                             size_t nargsf, PyObject *names)
{
    jit_frame frame = {.outer = running, .function = function};
    bool asked = false, owns = false;
    int updates = 0;
    if (!frame.outer) {
        updates = outermost_begins(function, args, nargsf, names, &asked, &owns);
        if (updates < 0) {
            return NULL;
        }
    }
    running = &frame;
    sw_section_enter(function->section);
    PyObject *result = call(self, args, nargsf, names);
    if (result && function->sync && python.block) {
        result = tell(result, PyObject_CallFunctionObjArgs(python.block, result, NULL));
    }
    if (result) {
        sw_end(function->section);
    } else {
        sw_end_error(function->section);
    }
    running = frame.outer;
    if (frame.compiled && python.compiled) {
        tell_compiled(function, self, args, nargsf, names);
        if (result && PyErr_Occurred()) {
            Py_CLEAR(result);
        }
    }
    if (result && asked && python.after) {
        result = tell(result, PyObject_CallFunctionObjArgs(python.after, function->number,
                                                           result, NULL));
    }
    if (result && updates) {
        update_happened(function, owns);
    }
    return result;
}

static PyObject *jit_call(PyObject *self, PyObject *const *args, size_t nargsf,
                          PyObject *names)
{
    const jit_entry *entry = entry_find(self);
    if (!entry) {
        vectorcallfunc call = original_of(Py_TYPE(self));
        if (!call) {
            PyErr_SetString(PyExc_RuntimeError, "this function is not watched any more");
            return NULL;
        }
        return call(self, args, nargsf, names);
    }
    vectorcallfunc call = entry->call;
    jit_function *const function = entry->function;
    if (!SW_GATE(function->section) || is_traced()) {
        return call(self, args, nargsf, names);
    }
    /* The call may drop the last other reference to the object, and with it the entry. */
    Py_INCREF(self);
    PyObject *result = call_recorded(function, call, self, args, nargsf, names);
    Py_DECREF(self);
    return result;
}

/* --- What Python calls ---------------------------------------------------------------------------- */

static jit_function *function_get(PyObject *number)
{
    const long at = PyLong_AsLong(number);
    if (at == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (at < 1 || (size_t)at > function_count) {
        PyErr_Format(PyExc_ValueError, "there is no compiled function %ld", at);
        return NULL;
    }
    return functions[at - 1];
}

static PyObject *jit_setup(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"before",  "after", "compiled", "clean",
                               "staging", "block", NULL};
    PyObject *given[6] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOO:jit_setup", keywords,
                                     &given[0], &given[1], &given[2], &given[3],
                                     &given[4], &given[5])) {
        return NULL;
    }
    PyObject **const places[] = {&python.before, &python.after,   &python.compiled,
                                 &python.clean,  &python.staging, &python.block};
    for (size_t i = 0; i < 6; i++) {
        PyObject *before = *places[i];
        *places[i] = given[i] == Py_None ? NULL : given[i];
        Py_XINCREF(*places[i]);
        Py_XDECREF(before);
    }
    Py_RETURN_NONE;
}

static PyObject *jit_function_new(PyObject *module, PyObject *object)
{
    const core_state *state = PyModule_GetState(module);
    if (!PyObject_TypeCheck(object, (PyTypeObject *)state->slot[CORE_SECTION_TYPE])) {
        PyErr_Format(PyExc_TypeError, "a section was expected, not '%.100s'",
                     Py_TYPE(object)->tp_name);
        return NULL;
    }
    if (function_count == FUNCTIONS_MOST) {
        return PyLong_FromLong(0);
    }
    jit_function *function = PyMem_RawCalloc(1, sizeof *function);
    if (!function) {
        return PyErr_NoMemory();
    }
    function->section = ((core_section *)object)->handle;
    function->limit = 2;
    function->number = PyLong_FromSize_t(function_count + 1);
    function->owner = PyObject_CallObject((PyObject *)&PyBaseObject_Type, NULL);
    if (!function->number || !function->owner) {
        Py_XDECREF(function->number);
        Py_XDECREF(function->owner);
        PyMem_RawFree(function);
        return NULL;
    }
    functions[function_count++] = function;
    Py_INCREF(function->number);
    return function->number;
}

static PyObject *jit_watch(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *object, *number;
    if (!PyArg_ParseTuple(args, "OO:jit_watch", &object, &number)) {
        return NULL;
    }
    jit_function *function = function_get(number);
    if (!function) {
        return NULL;
    }
#ifdef Py_GIL_DISABLED
    Py_RETURN_FALSE; /* The table belongs to who holds the GIL. */
#endif
    jit_entry *entry = entry_find(object);
    vectorcallfunc *place = place_of(object);
    if (place && entry && *place == jit_call) {
        entry->function = function;
        Py_RETURN_TRUE;
    }
    if (!place || !*place || *place == jit_call ||
        !original_keep(Py_TYPE(object), *place)) {
        Py_RETURN_FALSE;
    }
    if (table_reserve() != 0) {
        return NULL;
    }
    PyObject *weak = PyWeakref_NewRef(object, entry_gone);
    if (!weak) {
        return NULL;
    }
    entry_put((jit_entry){object, weak, *place, function});
    *place = jit_call;
    Py_RETURN_TRUE;
}

static PyObject *jit_watched(PyObject *Py_UNUSED(module), PyObject *object)
{
    const jit_entry *entry = entry_find(object);
    if (!entry) {
        return PyLong_FromLong(0);
    }
    Py_INCREF(entry->function->number);
    return entry->function->number;
}

static PyObject *jit_unwatch_all(PyObject *Py_UNUSED(module),
                                 PyObject *Py_UNUSED(ignored))
{
    PyObject *were = PyList_New(0);
    if (!were) {
        return NULL;
    }
    for (size_t i = 0; i < table.size;) {
        if (!table.entries[i].object) {
            i++;
            continue;
        }
        /* It lives: its weak reference would have removed the entry. */
        vectorcallfunc *place = place_of(table.entries[i].object);
        if (place && *place == jit_call) {
            *place = table.entries[i].call;
        }
        /* That they are listed is not worth an exception: all of them get their own calls back. */
        PyObject *pair =
            PyTuple_Pack(2, table.entries[i].weak, table.entries[i].function->number);
        if (!pair || PyList_Append(were, pair) != 0) {
            PyErr_Clear();
        }
        Py_XDECREF(pair);
        Py_DECREF(entry_remove(&table.entries[i])); /* Another one may be here now. */
    }
    return were;
}

static PyObject *jit_role(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *number;
    int role;
    unsigned limit = 2;
    if (!PyArg_ParseTuple(args, "Oi|I:jit_role", &number, &role, &limit)) {
        return NULL;
    }
    jit_function *function = function_get(number);
    if (!function) {
        return NULL;
    }
    if (role < JIT_UNDECIDED || role > JIT_QUIET) {
        PyErr_Format(PyExc_ValueError, "there is no role %d", role);
        return NULL;
    }
    function->role = (enum jit_role)role;
    function->limit = limit;
    Py_RETURN_NONE;
}

static PyObject *jit_sync(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *number;
    int sync;
    if (!PyArg_ParseTuple(args, "Op:jit_sync", &number, &sync)) {
        return NULL;
    }
    jit_function *function = function_get(number);
    if (!function) {
        return NULL;
    }
    function->sync = sync != 0;
    Py_RETURN_NONE;
}

static PyObject *jit_state(PyObject *Py_UNUSED(module), PyObject *number)
{
    const jit_function *function = function_get(number);
    return function ? Py_BuildValue("(iKKIKO)", (int)function->role,
                                    (unsigned long long)function->calls,
                                    (unsigned long long)function->stretches,
                                    (unsigned)function->row,
                                    (unsigned long long)owner_calls, function->owner)
                    : NULL;
}

static PyObject *jit_running(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    if (!running) {
        return PyLong_FromLong(0);
    }
    running->compiled = true;
    Py_INCREF(running->function->number);
    return running->function->number;
}

static PyObject *jit_updated(PyObject *Py_UNUSED(module), PyObject *count)
{
    const long times = PyLong_AsLong(count);
    if (times == -1 && PyErr_Occurred()) {
        return NULL;
    }
    for (long i = 0; i < times && !core_train_by_framework(); i++) {
        sw_update();
    }
    Py_RETURN_NONE;
}

static PyObject *jit_recording(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLong(sw_recording_number());
}

static PyObject *jit_is_user_code(PyObject *Py_UNUSED(module), PyObject *code)
{
    return PyBool_FromLong(PyCode_Check(code) && core_is_user_code((PyCodeObject *)code));
}

#define FAST(function) (PyCFunction)(void (*)(void)) function

static PyMethodDef jit_methods[] = {
    {"jit_setup", FAST(jit_setup), METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("jit_setup(before, after, compiled, clean, staging, block)\n--\n\n"
               "What to call about calls of watched functions; None: nobody.")},
    {"jit_function", jit_function_new, METH_O,
     PyDoc_STR("jit_function(section, /)\n--\n\n"
               "Number of a new function; 0: there are too many.")},
    {"jit_watch", jit_watch, METH_VARARGS,
     PyDoc_STR("jit_watch(object, number, /)\n--\n\n"
               "Calls of the object count for the function; False: they cannot.")},
    {"jit_watched", jit_watched, METH_O,
     PyDoc_STR("The function that calls of the object count for, or 0.")},
    {"jit_unwatch_all", jit_unwatch_all, METH_NOARGS,
     PyDoc_STR("Give all objects their own calls back; return weak references to them,\n"
               "each with the number of its function.")},
    {"jit_role", jit_role, METH_VARARGS,
     PyDoc_STR("jit_role(number, role, limit=2, /)\n--\n\n"
               "What the function is for the steps.")},
    {"jit_sync", jit_sync, METH_VARARGS,
     PyDoc_STR("jit_sync(number, sync, /)\n--\n\nWhether its results are waited for.")},
    {"jit_state", jit_state, METH_O,
     PyDoc_STR("(role, calls, stretches, calls in a row, calls of owners, owner)")},
    {"jit_running", jit_running, METH_NOARGS,
     PyDoc_STR("Number of the function that runs on this thread, or 0. It is told\n"
               "(compiled) when the call is over.")},
    {"jit_updated", jit_updated, METH_O,
     PyDoc_STR("So many updates happened that were not known as such.")},
    {"jit_recording", jit_recording, METH_NOARGS,
     PyDoc_STR("Number of this recording; rows of another one are gone.")},
    {"jit_is_user_code", jit_is_user_code, METH_O,
     PyDoc_STR("Whether the code object is the user's own.")},
    {"_jit_gone", jit_gone, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int core_jit_calls_add(PyObject *module)
{
    if (PyModule_AddFunctions(module, jit_methods) != 0) {
        return -1;
    }
    if (!core_in_main_interpreter()) {
        return 0;
    }
    Py_XSETREF(entry_gone, PyObject_GetAttrString(module, "_jit_gone"));
    return entry_gone ? 0 : -1;
}
