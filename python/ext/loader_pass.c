/* stepwatch._core.loader_pass: one pass over a loader, as the training thread sees it.
 *
 * It is asked for and given batches thousands of times a second, between computations that have the caches to
 * themselves; so what happens at each of them is two calls and no Python code. The adapter derives its own class. */
#include "loader_pass.h"
#include "brief.h"
#include "modules.h"
#include "quick.h"
#include "stages.h"
#include "training.h"
#include <structmember.h>

typedef struct core_loader_pass pass_object;

static PyObject *pass_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    pass_object *self = (pass_object *)type->tp_alloc(type, 0);
    if (self) {
        PyObject **const kept[] = {&self->iterator, &self->loader, &self->wait,
                                   &self->first,    &self->fetch,  &self->pin};
        for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
            Py_INCREF(Py_None);
            *kept[i] = Py_None;
        }
    }
    return (PyObject *)self;
}

static int pass_traverse(PyObject *object, visitproc visit, void *arg)
{
    pass_object *self = (pass_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->iterator);
    Py_VISIT(self->loader);
    Py_VISIT(self->wait);
    Py_VISIT(self->first);
    Py_VISIT(self->fetch);
    Py_VISIT(self->pin);
    return 0;
}

static int pass_clear(PyObject *object)
{
    pass_object *self = (pass_object *)object;
    Py_CLEAR(self->iterator);
    Py_CLEAR(self->loader);
    Py_CLEAR(self->wait);
    Py_CLEAR(self->first);
    Py_CLEAR(self->fetch);
    Py_CLEAR(self->pin);
    return 0;
}

static void pass_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    core_loader_pass_forget((pass_object *)object);
    core_quick_forget((pass_object *)object);
    pass_clear(object);
    type->tp_free(object);
    Py_DECREF(type);
}

/* Borrowed from the module's state. */
static PyObject *stage_type;
PyObject *core_loader_pass_type;

static core_stage *stage_or_null(PyObject *object)
{
    return object && (PyObject *)Py_TYPE(object) == stage_type ? (core_stage *)object
                                                               : NULL;
}

PyObject *core_referred(PyObject *weak)
{
    PyObject *object = NULL;
    if (weak && PyWeakref_Check(weak)) {
#if PY_VERSION_HEX >= 0x030d0000
        if (PyWeakref_GetRef(weak, &object) < 0) {
            PyErr_Clear();
        }
#else
        object = PyWeakref_GET_OBJECT(weak);
        object = object == Py_None ? NULL : object;
        Py_XINCREF(object);
#endif
    }
    return object;
}

bool core_loader_pass_is_of(const core_loader_pass *self, const PyObject *iterator)
{
    PyObject *now = core_referred(self->iterator);
    Py_XDECREF(now); /* The caller has another one, if it is the object. */
    return now == iterator;
}

/* What was exchanged belongs to the iterator: from here it would keep alive what may hold the iterator itself. */
#define EXCHANGED "_stepwatch_exchanged"

/* Puts one attribute back, or what is there to see more; not where somebody else has put something there. */
static void exchange(PyObject *entry, PyObject *iterator, bool rests)
{
    PyObject *holder, *name, *seen, *plain;
    if (!PyArg_ParseTuple(entry, "OUOO", &holder, &name, &seen, &plain)) {
        return;
    }
    holder = holder == Py_None ? iterator : holder;
    PyObject *now = PyObject_GetAttr(holder, name);
    if (now && now == (rests ? seen : plain)) {
        core_timed_anew(seen);
        (void)PyObject_SetAttr(holder, name, rests ? plain : seen);
    }
    Py_XDECREF(now);
}

/* How batches are made is not looked at while steps are watched in brief. */
static void pass_rest(core_loader_pass *self, PyObject *iterator, bool rests)
{
    self->rests = rests;
    PyObject *exchanged = PyObject_GetAttrString(iterator, EXCHANGED);
    if (!exchanged) {
        PyErr_Clear(); /* It makes no batches itself. */
    }
    for (Py_ssize_t i = 0;
         exchanged && PyList_Check(exchanged) && i < PyList_GET_SIZE(exchanged); i++) {
        exchange(PyList_GET_ITEM(exchanged, i), iterator, rests);
        if (PyErr_Occurred()) {
            core_error_forget();
        }
    }
    Py_XDECREF(exchanged);
}

void core_loader_ask(core_loader_pass *self, PyObject *iterator)
{
    core_quick_settle();
    if (self->index == 0) {
        core_brief_look();
    } else if (core_brief && self->rests) {
        self->began = core_ticks();
        if (core_train_ask_briefly(iterator)) {
            return;
        }
    }
    PyObject *loader = core_referred(self->loader);
    self->began = core_ticks();
    /* Whether somebody evaluates says something only where a loop begins. */
    const bool evaluating = !core_train_goes_on(iterator) && !core_gradients_wanted();
    core_train_ask(TRAIN_LOADER, iterator, loader, evaluating);
    Py_XDECREF(loader);
    if (self->rests != core_brief) {
        pass_rest(self, iterator, core_brief);
    }
}

static PyObject *pass_ask(PyObject *object, PyObject *iterator)
{
    core_loader_ask((pass_object *)object, iterator);
    Py_RETURN_NONE;
}

/* The moments of a batch that a worker has made. */
typedef struct batch_moments {
    uint64_t sent, received, pinned, index, depth;
} batch_moments;

static int moments_get(PyObject *const *args, Py_ssize_t count, batch_moments *out)
{
    uint64_t *const into[] = {&out->sent, &out->received, &out->pinned, &out->index,
                              &out->depth};
    if (count != 0 && count != 5) {
        PyErr_Format(PyExc_TypeError, "got() takes 0 or 5 arguments, %zd given", count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        *into[i] = PyLong_AsUnsignedLongLong(args[i]);
        if (*into[i] == UINT64_MAX && PyErr_Occurred()) {
            return -1;
        }
    }
    return 0;
}

static void batch_count(pass_object *self, const batch_moments *given)
{
    const batch_moments moments = *given;
    core_stage *wait = stage_or_null(self->wait);
    if (!SW_GATE(core_stage_gate) || !wait) {
        return;
    }
    sw_record_batch record = {
        .head = {.kind = SW_RECORD_BATCH,
                 .units = sizeof record / SW_RECORD_UNIT,
                 .flags = SW_RECORD_INTERVAL,
                 .ticks = moments.sent ? moments.sent : self->began},
        .end = core_ticks(),
        .receive = moments.received,
        .pin = moments.pinned,
        .batch = (uint64_t)self->number << 32 | (uint32_t)moments.index,
        .epoch = self->epoch,
        .index = (uint32_t)moments.index,
        .worker = UINT32_MAX,
        .queue_depth = (uint32_t)moments.depth,
    };
    core_stage_add(wait, self->began, record.end);
    core_stage *first = self->index == 0 ? stage_or_null(self->first) : NULL;
    if (first) {
        core_stage_add(first, self->began, record.end);
    }
    self->index++;
    const core_stage *fetch = stage_or_null(self->fetch);
    if (fetch) {
        record.fetch_begin = fetch->begin;
        record.fetch_end = fetch->end;
        core_stage *pin = stage_or_null(self->pin);
        if (pin) {
            core_stage_add(pin, fetch->end, record.end);
            record.pin = record.end;
        }
    }
    /* Counting has found out what the loader's name is in this recording. */
    record.head.id = wait->loader_id;
    const int64_t step = sw_step_number();
    record.step = step < 0 ? UINT64_MAX : (uint64_t)step;
    sw_record_put(&record.head);
}

void core_loader_got_briefly(core_loader_pass *self)
{
    core_stage *wait = stage_or_null(self->wait);
    core_train_got();
    if (SW_GATE(core_stage_gate) && wait) {
        core_stage_add(wait, self->began, core_ticks());
    }
    self->index++;
}

void core_loader_got_many(core_loader_pass *self, uint32_t batches, uint64_t ticks,
                          uint64_t shortest, uint64_t longest)
{
    core_stage *wait = stage_or_null(self->wait);
    self->index += batches;
    if (SW_GATE(core_stage_gate) && wait) {
        core_stage_add_sum(wait, batches, ticks, shortest, longest);
    }
}

void core_loader_got(core_loader_pass *self)
{
    core_train_got();
    batch_count(self, &(batch_moments){.index = self->index});
}

static PyObject *pass_got(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    pass_object *self = (pass_object *)object;
    batch_moments moments = {.index = self->index};
    if (core_brief && count == 0) {
        core_loader_got_briefly(self);
        Py_RETURN_NONE;
    }
    core_train_got();
    if (moments_get(args, count, &moments) != 0) {
        return NULL;
    }
    batch_count(self, &moments);
    Py_RETURN_NONE;
}

static PyMethodDef pass_methods[] = {
    {"ask", pass_ask, METH_O,
     PyDoc_STR("ask($self, iterator, /)\n--\n\nThe loop asks for its next batch.")},
    {"got", (PyCFunction)(void (*)(void))pass_got, METH_FASTCALL,
     PyDoc_STR("got($self, sent=…, received=0, pinned=0, index=…, depth=0, /)\n--\n\n"
               "The batch is there; the moments are those of one that a worker made.")},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef pass_members[] = {
    {"weak", T_OBJECT, offsetof(pass_object, iterator), 0, NULL},
    {"direct", T_BOOL, offsetof(pass_object, direct), 0, NULL},
    {"loader_ref", T_OBJECT, offsetof(pass_object, loader), 0, NULL},
    {"wait", T_OBJECT, offsetof(pass_object, wait), 0, NULL},
    {"first", T_OBJECT, offsetof(pass_object, first), 0, NULL},
    {"fetch", T_OBJECT, offsetof(pass_object, fetch), 0, NULL},
    {"pin", T_OBJECT, offsetof(pass_object, pin), 0, NULL},
    {"number", T_ULONGLONG, offsetof(pass_object, number), 0, NULL},
    {"epoch", T_UINT, offsetof(pass_object, epoch), 0, NULL},
    {"index", T_UINT, offsetof(pass_object, index), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot pass_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("One pass over a loader: what is asked and given.")},
    {Py_tp_new, pass_new},
    {Py_tp_traverse, pass_traverse},
    {Py_tp_clear, pass_clear},
    {Py_tp_dealloc, pass_dealloc},
    {Py_tp_methods, pass_methods},
    {Py_tp_members, pass_members},
    {0, NULL},
};

static PyType_Spec pass_spec = {
    .name = "stepwatch._core.loader_pass",
    .basicsize = sizeof(pass_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = pass_slots,
};

PyObject *core_loader_pass_find(PyObject *passes, PyObject *iterator)
{
    PyObject *key = PyLong_FromVoidPtr(iterator);
    PyObject *found = key ? PyDict_GetItemWithError(passes, key) : NULL;
    Py_XDECREF(key);
    return found;
}

/* What a dictionary by addresses has for an object. Python's id() would tell every audit hook. */
static PyObject *pass_of(PyObject *Py_UNUSED(module), PyObject *const *args,
                         Py_ssize_t count)
{
    if (count != 2 || !PyDict_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "pass_of() takes a dict and an object");
        return NULL;
    }
    PyObject *found = core_loader_pass_find(args[0], args[1]);
    if (!found && PyErr_Occurred()) {
        return NULL;
    }
    found = found ? found : Py_None;
    Py_INCREF(found);
    return found;
}

static PyMethodDef pass_functions[] = {
    {"pass_of", (PyCFunction)(void (*)(void))pass_of, METH_FASTCALL,
     PyDoc_STR("pass_of(passes, iterator, /)\n--\n\n"
               "passes.get(id(iterator)), unnoticed.")},
    {"loader_slots", (PyCFunction)(void (*)(void))core_loader_slots, METH_FASTCALL,
     PyDoc_STR("loader_slots(passes, function, original, /)\n--\n\n"
               "What next() finds where the function stands for the original;\n"
               "None: nothing is taken any more.")},
    {"loader_slot", core_loader_slot, METH_O,
     PyDoc_STR("See next() of iterators of this class, if it has that function.")},
    {NULL, NULL, 0, NULL},
};

int core_loader_pass_add(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    if (core_in_main_interpreter()) {
        stage_type = state->slot[CORE_STAGE_TYPE];
    }
    if (PyModule_AddFunctions(module, pass_functions) != 0) {
        return -1;
    }
    if (core_type_add(module, CORE_PASS_TYPE, &pass_spec) != 0) {
        return -1;
    }
    if (core_in_main_interpreter()) {
        core_loader_pass_type = state->slot[CORE_PASS_TYPE];
    }
    return 0;
}
