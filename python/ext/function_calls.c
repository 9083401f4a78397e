#include "function_calls.h"
#include <stdlib.h>

#define SLOTS_FIRST 256
#define EDGES_FIRST 512
#define FRAMES_FIRST 256
#define SWEEP_FIRST 8192

/* What a function has for an edge before its first: the caller is nobody. */
static struct call_edge no_edge;

int calls_init(struct calls *calls, const PyMethodDef *own)
{
    memset(calls, 0, sizeof *calls);
    calls->slots = calloc(SLOTS_FIRST, sizeof *calls->slots);
    calls->edges = calloc(EDGES_FIRST, sizeof *calls->edges);
    calls->frames = calloc(FRAMES_FIRST, sizeof *calls->frames);
    calls->own = own;
    calls->sweep_at = SWEEP_FIRST;
    calls->mask = SLOTS_FIRST - 1;
    calls->edge_mask = EDGES_FIRST - 1;
    calls->bottom.last = &no_edge;
    if (!calls->slots || !calls->edges || !calls->frames) {
        calls_free(calls);
        return -1;
    }
    calls->top = calls->frames;
    calls->limit = calls->frames + FRAMES_FIRST;
    calls->top->function = &calls->bottom;
    return 0;
}

static void function_free(struct call_function *function)
{
    for (struct call_edge *edge = function->edges, *next; edge; edge = next) {
        next = edge->next;
        free(edge);
    }
    Py_XDECREF(function->what);
    free(function);
}

void calls_free(struct calls *calls)
{
    struct call_slot *const slots = calls->slots;
    const size_t mask = calls->mask;
    free(calls->edges);
    free(calls->frames);
    memset(calls, 0, sizeof *calls);
    /* Letting go of code may run a program's callbacks, so it comes last. */
    for (size_t i = 0; slots && i <= mask; i++) {
        if (slots[i].key) {
            function_free(slots[i].function);
        }
    }
    free(slots);
}

/* --- The tables ------------------------------------------------------------------- */

static void put_slot(struct call_slot *slots, size_t mask, struct call_function *function)
{
    size_t at = calls_hash(function->key) & mask;
    while (slots[at].key) {
        at = (at + 1) & mask;
    }
    slots[at] = (struct call_slot){function->key, function};
}

static int grow_slots(struct calls *calls)
{
    const size_t mask = calls->mask * 2 + 1;
    struct call_slot *slots = calloc(mask + 1, sizeof *slots);
    if (!slots) {
        return -1;
    }
    for (size_t i = 0; i <= calls->mask; i++) {
        if (calls->slots[i].key) {
            put_slot(slots, mask, calls->slots[i].function);
        }
    }
    free(calls->slots);
    calls->slots = slots;
    calls->mask = mask;
    return 0;
}

/* Takes over the reference to `what`. Half of the slots stay free: most look-ups find their key at once. */
static struct call_function *add_function(struct calls *calls, const void *key,
                                          PyObject *what)
{
    struct call_function *function = calloc(1, sizeof *function);
    if (!function ||
        (calls->function_count * 2 >= calls->mask && grow_slots(calls) != 0)) {
        free(function);
        Py_DECREF(what);
        calls->lost++;
        return NULL;
    }
    function->key = key;
    function->what = what;
    function->last = &no_edge;
    put_slot(calls->slots, calls->mask, function);
    calls->function_count++;
    return function;
}

struct call_function *calls_new_code(struct calls *calls, PyObject *code)
{
    Py_INCREF(code);
    return add_function(calls, code, code);
}

static size_t edge_hash(const struct call_function *caller,
                        const struct call_function *callee)
{
    const uintptr_t mixed = ((uintptr_t)caller >> 4) * 0x9e3779b1u;
    return calls_hash((const void *)((uintptr_t)callee ^ mixed));
}

static void put_edge(struct call_edge **edges, size_t mask, struct call_edge *edge)
{
    size_t at = edge_hash(edge->caller, edge->callee) & mask;
    while (edges[at]) {
        at = (at + 1) & mask;
    }
    edges[at] = edge;
}

static int grow_edges(struct calls *calls)
{
    const size_t mask = calls->edge_mask * 2 + 1;
    struct call_edge **edges = calloc(mask + 1, sizeof(struct call_edge *));
    if (!edges) {
        return -1;
    }
    for (size_t i = 0; i <= calls->edge_mask; i++) {
        if (calls->edges[i]) {
            put_edge(edges, mask, calls->edges[i]);
        }
    }
    free(calls->edges);
    calls->edges = edges;
    calls->edge_mask = mask;
    return 0;
}

struct call_edge *calls_find_edge(struct calls *calls, struct call_function *caller,
                                  struct call_function *callee)
{
    size_t at = edge_hash(caller, callee) & calls->edge_mask;
    for (struct call_edge *edge; (edge = calls->edges[at]) != NULL;
         at = (at + 1) & calls->edge_mask) {
        if (edge->caller == caller && edge->callee == callee) {
            return edge;
        }
    }
    struct call_edge *edge = calloc(1, sizeof *edge);
    if (!edge || (calls->edge_count * 2 >= calls->edge_mask && grow_edges(calls) != 0)) {
        free(edge);
        calls->lost++;
        return NULL;
    }
    edge->caller = caller;
    edge->callee = callee;
    edge->next = callee->edges;
    callee->edges = edge;
    put_edge(calls->edges, calls->edge_mask, edge);
    calls->edge_count++;
    return edge;
}

int calls_deepen(struct calls *calls)
{
    const size_t depth = (size_t)(calls->top - calls->frames);
    const size_t room = (size_t)(calls->limit - calls->frames) * 2;
    struct call_frame *frames = realloc(calls->frames, room * sizeof *frames);
    if (!frames) {
        calls->lost++;
        return -1;
    }
    calls->frames = frames;
    calls->top = frames + depth;
    calls->limit = frames + room;
    return 0;
}

/* --- Names of native functions ------------------------------------------------------ */

/* Whether the repr of such a thing runs no code of the program. A hook must not: another thread could run meanwhile,
 * and end the profile. PyObject_Repr and PyObject_Str always may: they call the handlers of signals that have come,
 * whose exception, a KeyboardInterrupt, would then be lost here. */
static int has_plain_repr(const PyObject *object)
{
    const PyTypeObject *const type = Py_TYPE(object);
    return type == &PyMethodDescr_Type || type == &PyClassMethodDescr_Type ||
           type == &PyWrapperDescr_Type || type == &PyCFunction_Type ||
           type == &PyFunction_Type;
}

/* What type(self) has under the name of its method: "<method 'append' of 'list' objects>". */
static PyObject *name_by_type(const PyMethodDef *method, PyObject *self)
{
    PyObject *name = PyUnicode_FromString(method->ml_name);
    PyObject *found = name ? _PyType_Lookup(Py_TYPE(self), name) : NULL;
    PyObject *text = NULL;
    if (found && has_plain_repr(found)) {
        Py_INCREF(found);
        text = Py_TYPE(found)->tp_repr(found);
        Py_DECREF(found);
    }
    Py_XDECREF(name);
    PyErr_Clear();
    return text;
}

/* The name of a module-less function, or of one whose module is a str or a module. */
static PyObject *name_by_module(const PyMethodDef *method, PyObject *module)
{
    PyObject *module_name = NULL;
    if (module && PyUnicode_Check(module)) {
        Py_INCREF(module);
        module_name = module;
    } else if (module && PyModule_Check(module)) {
        module_name = PyModule_GetNameObject(module);
        PyErr_Clear();
    }
    PyObject *text;
    if (module_name && PyUnicode_CompareWithASCIIString(module_name, "builtins") != 0) {
        text = PyUnicode_FromFormat("<%U.%s>", module_name, method->ml_name);
    } else {
        text = PyUnicode_FromFormat("<%s>", method->ml_name);
    }
    Py_XDECREF(module_name);
    return text;
}

/* The names that cProfile gives. `function` is a builtin function, or a method descriptor that is called with `self`. */
static PyObject *native_name(const PyMethodDef *method, PyObject *function,
                             PyObject *self)
{
    if (!PyCFunction_Check(function)) {
        PyObject *text = name_by_type(method, self);
        return text ? text
                    : PyUnicode_FromFormat("<built-in method %s>", method->ml_name);
    }
    PyCFunctionObject *const builtin = (PyCFunctionObject *)function;
    if (!builtin->m_self) {
        return name_by_module(method, builtin->m_module);
    }
    PyObject *text = name_by_type(method, builtin->m_self);
    if (text) {
        return text;
    }
    if (builtin->m_module && PyUnicode_Check(builtin->m_module)) {
        return PyUnicode_FromFormat("<built-in method %U.%s>", builtin->m_module,
                                    method->ml_name);
    }
    return PyUnicode_FromFormat("<built-in method %s>", method->ml_name);
}

struct call_function *calls_new_native(struct calls *calls, PyMethodDef *key,
                                       PyObject *function, PyObject *self)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *name = native_name(key, function, self);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    if (!name) {
        calls->lost++;
        return NULL;
    }
    return add_function(calls, key, name);
}

/* --- Ends --------------------------------------------------------------------------- */

int calls_unwind_to(struct calls *calls, const void *key, uint64_t now)
{
    struct call_frame *frame = calls->top;
    while (frame > calls->frames && frame->function->key != key) {
        frame--;
    }
    if (frame == calls->frames) {
        return 0;
    }
    while (calls->top > frame) {
        calls_pop(calls, now, 0);
    }
    return 1;
}

static int is_own(const struct calls *calls, const void *key)
{
    for (const PyMethodDef *method = calls->own; method && method->ml_name; method++) {
        if (method == key) {
            return 1;
        }
    }
    return 0;
}

void calls_end_open(struct calls *calls)
{
    uint64_t now = core_ticks();
    if (calls->top > calls->frames && is_own(calls, calls->top->function->key)) {
        now = calls->top->begin;
        calls->top->function->active--;
        calls->top->edge->active--;
        calls->top--;
    }
    while (calls->top > calls->frames) {
        calls_pop(calls, now, 0);
    }
    calls->frames->inside = 0;
}

void calls_restart(struct calls *calls)
{
    const uint64_t now = core_ticks();
    for (size_t i = 0; i <= calls->mask; i++) {
        struct call_function *function =
            calls->slots[i].key ? calls->slots[i].function : NULL;
        if (function) {
            function->inner = function->total = 0;
            for (struct call_edge *edge = function->edges; edge; edge = edge->next) {
                edge->calls = edge->inner = edge->errors = edge->self = edge->total = 0;
            }
        }
    }
    for (struct call_frame *frame = calls->frames; frame <= calls->top; frame++) {
        frame->begin = now;
        frame->inside = 0;
    }
    calls->lost = 0;
}

/* --- Adding up ---------------------------------------------------------------------- */

/* The texts of a function; released with text_release. */
struct text {
    core_text file, name, qualname;
};

static int text_get(const struct call_function *function, struct text *text,
                    sw_function *out)
{
    memset(text, 0, sizeof *text);
    if (PyUnicode_Check(function->what)) {
        if (core_text_get(function->what, "name", &text->name) != 0) {
            return -1;
        }
        text->qualname = text->name;
        text->qualname.owner = NULL;
        text->file.data = "~";
        text->file.length = 1;
        out->native = true;
    } else {
        PyCodeObject *const code = (PyCodeObject *)function->what;
#if PY_VERSION_HEX >= 0x030b0000
        PyObject *const qualname = code->co_qualname;
#else
        PyObject *const qualname = code->co_name;
#endif
        if (core_text_get(code->co_filename, "file", &text->file) != 0 ||
            core_text_get(code->co_name, "name", &text->name) != 0 ||
            core_text_get(qualname, "name", &text->qualname) != 0) {
            return -1;
        }
        out->line = (uint32_t)code->co_firstlineno;
    }
    out->file = text->file.data;
    out->file_length = (size_t)text->file.length;
    out->name = text->name.data;
    out->name_length = (size_t)text->name.length;
    out->qualname = text->qualname.data;
    out->qualname_length = (size_t)text->qualname.length;
    return 0;
}

static void text_release(struct text *text)
{
    core_text_release(&text->file);
    core_text_release(&text->name);
    core_text_release(&text->qualname);
}

static int add_totals(const struct call_function *function, sw_functions *into,
                      uint32_t *index)
{
    sw_function total = {0};
    for (const struct call_edge *edge = function->edges; edge; edge = edge->next) {
        total.totals.calls += edge->calls;
        total.totals.errors += edge->errors;
        total.totals.self += edge->self;
    }
    total.totals.primitive_calls = total.totals.calls - function->inner;
    total.totals.total = function->total;
    struct text text;
    int error = SW_ENOMEM;
    if (text_get(function, &text, &total) == 0) {
        error = sw_functions_add(into, &total, index);
    }
    text_release(&text);
    PyErr_Clear();
    return error;
}

/* Whether calls of it have ended, or it is open and may be the caller of some that have. */
static int takes_part(const struct calls *calls, const struct call_function *function)
{
    if (function->active && !is_own(calls, function->key)) {
        return 1;
    }
    for (const struct call_edge *edge = function->edges; edge; edge = edge->next) {
        if (edge->calls) {
            return 1;
        }
    }
    return 0;
}

/* Functions get their places first, in the order of the slots; `place` has one entry a slot. */
static int add_functions(const struct calls *calls, sw_functions *into, uint32_t *place)
{
    int error = SW_OK;
    for (size_t i = 0; i <= calls->mask && error == SW_OK; i++) {
        place[i] = SW_FUNCTION_UNKNOWN;
        if (calls->slots[i].key && takes_part(calls, calls->slots[i].function)) {
            error = add_totals(calls->slots[i].function, into, &place[i]);
        }
    }
    return error;
}

static uint32_t place_of(const struct calls *calls, const uint32_t *place,
                         const struct call_function *function)
{
    if (function == &calls->bottom) {
        return SW_FUNCTION_UNKNOWN;
    }
    size_t at = calls_hash(function->key) & calls->mask;
    while (calls->slots[at].function != function) {
        at = (at + 1) & calls->mask;
    }
    return place[at];
}

int calls_add_to(const struct calls *calls, sw_functions *into)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    uint32_t *place = malloc((calls->mask + 1) * sizeof *place);
    int error = place ? add_functions(calls, into, place) : SW_ENOMEM;
    for (size_t i = 0; i <= calls->edge_mask && error == SW_OK; i++) {
        const struct call_edge *edge = calls->edges[i];
        if (edge && edge->calls) {
            const sw_function_call call = {
                .caller = place_of(calls, place, edge->caller),
                .callee = place_of(calls, place, edge->callee),
                .totals = {edge->calls, edge->calls - edge->inner, edge->errors,
                           edge->self, edge->total},
            };
            error = sw_functions_add_call(into, &call);
        }
    }
    free(place);
    PyErr_Restore(type, value, traceback);
    return error;
}

int calls_flush(struct calls *calls, sw_functions *into)
{
    const int error = calls_add_to(calls, into);
    for (size_t i = 0; i <= calls->mask && error == SW_OK; i++) {
        if (calls->slots[i].key) {
            calls->slots[i].function->inner = calls->slots[i].function->total = 0;
        }
    }
    for (size_t i = 0; i <= calls->edge_mask && error == SW_OK; i++) {
        struct call_edge *edge = calls->edges[i];
        if (edge) {
            edge->calls = edge->inner = edge->errors = edge->self = edge->total = 0;
        }
    }
    return error;
}

/* --- Code that is gone -------------------------------------------------------------- */

static int is_dead(const struct call_function *function)
{
    return function->active == 0 && !PyUnicode_Check(function->what) &&
           Py_REFCNT(function->what) == 1;
}

/* Takes the edges out of a living function whose callers are dead. */
static void drop_edges(struct call_function *function, size_t *count)
{
    for (struct call_edge **at = &function->edges, *edge; (edge = *at) != NULL;) {
        if (edge->caller->what && is_dead(edge->caller)) {
            *at = edge->next;
            free(edge);
        } else {
            at = &edge->next;
            ++*count;
        }
    }
    function->last = &no_edge;
}

/* Programs that compile much (eval, templates, dataclasses) make code by the million and drop it again. What was counted
 * goes by its name into the table of the profile, which knows no code objects. The counts of open calls stay right:
 * their functions and edges are alive. */
int calls_sweep(struct calls *calls, sw_functions *into)
{
    const size_t room = calls->mask + 1;
    struct call_slot *slots = calloc(room, sizeof *slots);
    struct call_edge **edges = calloc(calls->edge_mask + 1, sizeof(struct call_edge *));
    if (!slots || !edges || calls_flush(calls, into) != SW_OK) {
        free(slots);
        free(edges);
        calls->sweep_at *= 2;
        return -1;
    }
    size_t edge_count = 0, function_count = 0;
    for (size_t i = 0; i < room; i++) {
        if (calls->slots[i].key && !is_dead(calls->slots[i].function)) {
            drop_edges(calls->slots[i].function, &edge_count);
        }
    }
    struct call_slot *const old = calls->slots;
    for (size_t i = 0; i < room; i++) {
        struct call_function *function = old[i].key ? old[i].function : NULL;
        if (function && !is_dead(function)) {
            put_slot(slots, calls->mask, function);
            function_count++;
            for (struct call_edge *edge = function->edges; edge; edge = edge->next) {
                put_edge(edges, calls->edge_mask, edge);
            }
            old[i].key = NULL;
        }
    }
    free(calls->edges);
    calls->slots = slots;
    calls->edges = edges;
    calls->edge_count = edge_count;
    calls->function_count = function_count;
    calls->sweep_at = function_count * 2 > SWEEP_FIRST ? function_count * 2 : SWEEP_FIRST;
    for (size_t i = 0; i < room; i++) {
        if (old[i].key) {
            function_free(old[i].function);
        }
    }
    free(old);
    return 0;
}
