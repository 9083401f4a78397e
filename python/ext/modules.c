/* Calls of modules, losses, backward passes and optimizers, as torch's adapter reports them.
 *
 * Each is an enter, which answers with a token or None (nothing is recorded, or the call is part of another that counts),
 * and a leave with that token. The token is the section that was opened. Calls of modules come from modules_slot.c. What the calls mean is decided here: the
 * outermost call of a module is the forward of a model, or a validation; calls inside it are its parts. What Python code
 * has to find out once, such as the names of a model's parts, it is asked for when a module is first seen. */
#include "modules.h"
#include "brief.h"
#include "quick.h"
#include "section.h"
#include "stages.h"
#include "ticks.h"
#include "training.h"
#include <string.h>

enum {
    SAMPLE_EVERY = 50, /* one step in so many has the times of its backward by module */
    SAMPLE_STEP = 3,
    SAMPLE_SHARE = 1000, /* … and looking at it takes at most one in so many ticks, */
    SAMPLE_ALWAYS = 2,   /* but for the first few */
    TRAINED_LATELY = 16, /* calls of models to be trained */
    MOST_CALLS = 1 << 16
};

/* A call of a module in a step whose backward is looked at: nodes that autograd numbered from begin up to end were made
 * in it. */
typedef struct sampled_call {
    uint32_t module;
    uint32_t parent; /* index + 1; 0: none */
    long long begin, end;
} sampled_call;

/* What is going on on a thread. */
typedef struct calls_state {
    unsigned depth; /* calls of modules that are timed */
    unsigned losses;
    unsigned backwards;
    unsigned optimizers;
    PyObject *optimizer; /* the one that steps, borrowed */
    PyObject *nodes;     /* what looks at the backward that runs; NULL: nobody does */
    const PyObject *
        last; /* the outermost module that was called last, to be compared only; NULL: no loss is looked for */
    bool marked; /* it has returned, and nothing else was computed since that is known */
    long long sequence; /* of autograd's next node at that time */
    bool updating; /* a backward has ended, and what follows it is an update by hand */
    bool sampling;
    int64_t sampled_step;
    uint32_t sampled; /* backwards that were looked at, in this recording, */
    uint32_t recording;
    uint64_t sample_due; /* and when the next may be */
    uint64_t look_ticks; /* what looking at the one that runs has taken */
    sampled_call *calls;
    uint32_t count, room;
    uint32_t open; /* the innermost call, index + 1 */
} calls_state;

CORE_THREAD_LOCAL calls_state local;

/* What the adapter gave: functions of torch, and its own. NULL: not configured. */
static struct {
    PyObject *sight;    /* sight(module, outermost): names it */
    PyObject *trained;  /* trained(module): marks it and its parts */
    PyObject *asks;     /* asks(module): whether a part of it was trained */
    PyObject *grad;     /* whether gradients are wanted */
    PyObject *task;     /* number of the running backward, or -1 */
    PyObject *sequence; /* number of autograd's next node */
    PyObject *modes;    /* how many of torch's modes are on */
    PyObject *flags;    /* where torch's Python code keeps whether there is any */
    PyObject *tracing;  /* whether what runs then is being traced, and computes nothing */
    PyObject *look;     /* look(calls, tensors): looks at a backward, or None */
    PyObject *looked;   /* looked(what look gave): it is over */
    bool parts;         /* calls inside others are timed, too */
} adapter;

static PyObject *name_training, *name_in_mode;
static sw_section *gate;
static PyObject *backward_section;
static unsigned backwards_running; /* on any thread */
static uint32_t trained_count;
static uint32_t training_calls; /* of models, to be trained */
static const PyObject
    *trained_last; /* the model of the last of them, to be compared only */
bool core_updates_by_hand;

/* --- Opening and closing ------------------------------------------------------------- */

static PyObject *open_section(PyObject *section)
{
    sw_section_enter(((core_section *)section)->handle);
    Py_INCREF(section);
    return section;
}

static void close_section(PyObject *section, bool failed)
{
    sw_section *handle = ((core_section *)section)->handle;
    if (failed) {
        sw_end_error(handle);
    } else {
        sw_end(handle);
    }
}

/* Whether anybody wants to know of calls. */
static bool told(void)
{
    return SW_GATE(gate) && !core_train_aside();
}

/* Whether a function that takes nothing answers yes. */
static bool says_yes(PyObject *function)
{
    PyObject *answer = function ? PyObject_CallNoArgs(function) : NULL;
    const bool yes = answer == Py_True;
    if (!answer) {
        core_error_forget();
    }
    Py_XDECREF(answer);
    return yes;
}

bool core_gradients_wanted(void)
{
    return !adapter.grad || says_yes(adapter.grad);
}

static long long number_from(PyObject *function)
{
    PyObject *answer = function ? PyObject_CallNoArgs(function) : NULL;
    const long long number = answer ? PyLong_AsLongLong(answer) : -1;
    core_error_forget();
    Py_XDECREF(answer);
    return number;
}

/* Calls the adapter with a module. 1 it says yes, 0 no; -1: an exception that is not ours to hide. */
static int adapter_asks(PyObject *function, PyObject *module, PyObject *more)
{
    if (!function) {
        return 0;
    }
    PyObject *answer = PyObject_CallFunctionObjArgs(function, module, more, NULL);
    if (!answer) {
        if (PyErr_ExceptionMatches(PyExc_Exception)) {
            PyErr_Clear();
            return 0;
        }
        return -1;
    }
    const int yes = answer == Py_True;
    Py_DECREF(answer);
    return yes;
}

/* --- Steps whose backward is looked at ------------------------------------------------- */

static void sample_begin(uint32_t number)
{
    if (local.count == local.room) {
        const uint32_t room = local.room ? local.room * 2 : 256;
        sampled_call *calls = room <= MOST_CALLS
                                  ? PyMem_RawRealloc(local.calls, room * sizeof *calls)
                                  : NULL;
        if (!calls) {
            local.sampling = false;
            return;
        }
        local.calls = calls;
        local.room = room;
    }
    local.calls[local.count] = (sampled_call){.module = number,
                                              .parent = local.open,
                                              .begin = number_from(adapter.sequence),
                                              .end = -1};
    local.open = ++local.count;
}

static void sample_end(void)
{
    if (local.open > 0 && local.open <= local.count) {
        sampled_call *call = &local.calls[local.open - 1];
        call->end = number_from(adapter.sequence);
        local.open = call->parent;
    }
}

/* Whether this step is one of those; called where no module runs. Hooks on a graph take tenths of a millisecond, which is
 * much where steps are short: there it is fewer than one step in fifty. */
static void sample_decide(void)
{
    const int64_t step = sw_step_number();
    bool sampling = step % SAMPLE_EVERY == SAMPLE_STEP && adapter.sequence;
    if (sampling && local.recording != sw_recording_number()) {
        local.recording = sw_recording_number();
        local.sampled = 0;
    }
    sampling =
        sampling && (local.sampled < SAMPLE_ALWAYS || core_ticks() >= local.sample_due ||
                     (local.sampling && local.sampled_step == step));
    if (sampling && (!local.sampling || local.sampled_step != step)) {
        local.count = 0;
    }
    local.open = 0;
    local.sampling = sampling;
    local.sampled_step = step;
}

/* --- Modules ----------------------------------------------------------------------------- */

bool core_module_trains(PyObject *module)
{
    /* Modules have a __getattr__, which makes the usual way slow; it is for those that keep it elsewhere. */
    PyObject *training = PyObject_GenericGetAttr(module, name_training);
    if (!training) {
        PyErr_Clear();
        training = PyObject_GetAttr(module, name_training);
    }
    if (!training) {
        core_error_forget();
        return false;
    }
    const bool yes = training == Py_True;
    Py_DECREF(training);
    return yes;
}

/* A model is called to be trained. When that was is written down where another one follows. */
static void trained_now(PyObject *module)
{
    core_module_slot_stays(Py_TYPE(module));
    if (module != trained_last) {
        module_entry *before = trained_last ? module_find(trained_last) : NULL;
        if (before) {
            before->called = training_calls;
        }
        trained_last = module;
    }
    training_calls++;
}

/* What the outermost call of a module is, and tells the recorder so. The section to open, borrowed; NULL with an exception
 * set. */
static PyObject *outermost(PyObject *module, const module_entry *known)
{
    /* A copy: what follows runs Python code. */
    const module_entry entry = *known;
    const bool gradients = says_yes(adapter.grad);
    if (gradients) {
        if (core_module_trains(module)) {
            trained_now(module);
            if (!(entry.flags & MODULE_TRAINED) &&
                adapter_asks(adapter.trained, module, NULL) < 0) {
                return NULL;
            }
            core_train_works(false);
            sample_decide();
        } else {
            core_train_computes();
        }
        return entry.outer;
    }
    if (local.optimizers || core_module_trains(module)) {
        return entry.outer;
    }
    bool trained = (entry.flags & MODULE_TRAINED) != 0;
    if (!trained && entry.looked != trained_count) {
        const int found = adapter_asks(adapter.asks, module, NULL);
        module_entry *again = found >= 0 ? module_find(module) : NULL;
        if (found < 0) {
            return NULL;
        }
        if (again) {
            again->looked = trained_count;
            again->flags |= found ? MODULE_TRAINED : 0u;
        }
        trained = found;
    }
    /* A model that was trained, and then others for some time, is a teacher of theirs by now. */
    trained = trained && (module == trained_last || !entry.called ||
                          training_calls - entry.called < TRAINED_LATELY);
    if (trained) {
        core_module_slot_stays(Py_TYPE(module));
    }
    core_train_evaluates(trained);
    return trained ? entry.validates : entry.outer;
}

/* Whether the call happens while autograd calls back, on a thread of its own among them. */
static bool within_backward(void)
{
    return local.backwards || (backwards_running && number_from(adapter.task) >= 0);
}

/* The first call of a module, or of the first of its kind: has it named. NULL: it is not timed, or an exception is set. */
static module_entry *first_sight(PyObject *module, bool is_outermost)
{
    if (!is_outermost) {
        module_entry *kind = module_find((PyObject *)Py_TYPE(module));
        if (kind && kind->flags & MODULE_ONCE) {
            return kind;
        }
    }
    if (adapter_asks(adapter.sight, module, is_outermost ? Py_True : Py_False) < 0) {
        return NULL;
    }
    module_entry *entry = module_find(module);
    if (!entry) {
        entry = module_find((PyObject *)Py_TYPE(module));
        entry = entry && entry->flags & MODULE_ONCE ? entry : NULL;
    }
    return entry;
}

/* --- Losses that are written out ---

 * Between the last call of a module and the backward lies the loss. Where none that is known was called, and nodes of a
 * graph were made, what no phase is known for there is the loss. */

/* Something else is called first; `loss`: a known loss, and that one needs not be looked for again after this module. */
static void loss_known(bool loss)
{
    local.marked = false;
    module_entry *entry = loss && local.last ? module_find(local.last) : NULL;
    if (entry) {
        entry->flags |= MODULE_JUDGED;
    }
}

static void loss_claim(void)
{
    if (local.marked) {
        local.marked = false;
        if (number_from(adapter.sequence) != local.sequence) {
            sw_phase_claim(SW_PHASE_LOSS);
        }
    }
}

/* --- Updates that are written out ---

 * Where there is no optimizer, the program itself updates: between a backward and the next forward or batch. What no phase is
 * known for there is the update. */

void core_update_claim(void)
{
    if (local.updating) {
        local.updating = false;
        sw_phase_claim(SW_PHASE_OPTIMIZER);
    }
}

PyObject *core_module_begin(PyObject *module)
{
    /* A module that is called to make a batch is a transform, and no part of a model. */
    if (!told() || core_stage_context()) {
        return NULL;
    }
    module_entry *entry = module_find(module);
    const bool inside = local.depth > 0 || within_backward();
    if (inside && !adapter.parts && !(entry && entry->flags & MODULE_LOSS)) {
        return NULL;
    }
    if (!entry || (!inside && (entry->recording != sw_recording_number() ||
                               entry->flags & MODULE_PART))) {
        entry = first_sight(module, !inside);
    }
    if (!entry || !entry->inner) {
        return NULL;
    }
    const uint32_t number = entry->number;
    PyObject *section = entry->inner;
    const bool loss = (entry->flags & MODULE_LOSS) != 0;
    const bool judged = (entry->flags & MODULE_JUDGED) != 0;
    if (!inside && !loss) {
        core_update_claim();
        section = outermost(module, entry);
        if (!section) {
            return NULL;
        }
    }
    if (local.marked && (loss || !inside)) {
        loss_known(loss);
    }
    if (!inside && !loss) {
        local.last = judged ? NULL : module;
    }
    local.depth++;
    local.losses += loss;
    core_brief_calls.modules++;
    if (local.sampling) {
        sample_begin(number);
    }
    return open_section(section);
}

void core_module_end(PyObject *section, bool failed)
{
    close_section(section, failed);
    local.depth -= local.depth > 0;
    local.losses -= ((core_section *)section)->phase == SW_PHASE_LOSS && local.losses > 0;
    if (local.sampling) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        sample_end();
        PyErr_Restore(type, value, trace);
    }
    if (local.last && local.depth == 0 && !failed &&
        ((core_section *)section)->phase == SW_PHASE_FORWARD) {
        sw_phase_mark();
        local.marked = true;
        local.sequence = number_from(adapter.sequence);
    }
}

/* --- Losses that are functions, backward, optimizers -------------------------------------- */

static PyObject *loss_enter(PyObject *Py_UNUSED(self), PyObject *section)
{
    if (core_brief || !told() || local.losses || local.backwards || core_compiles()) {
        Py_RETURN_NONE;
    }
    if (local.marked) {
        loss_known(true);
    }
    core_brief_calls.hooks++;
    local.losses++;
    return open_section(section);
}

static PyObject *loss_leave(PyObject *Py_UNUSED(self), PyObject *section)
{
    local.losses -= local.losses > 0;
    close_section(section, false);
    Py_RETURN_NONE;
}

static PyObject *loss_failed(PyObject *Py_UNUSED(self), PyObject *section)
{
    local.losses -= local.losses > 0;
    close_section(section, true);
    Py_RETURN_NONE;
}

/* Calls of this step so far, for who looks at its backward. A new list, or NULL with an exception set. */
static PyObject *sampled_calls(void)
{
    PyObject *list = PyList_New(local.count);
    for (uint32_t i = 0; list && i < local.count; i++) {
        const sampled_call *call = &local.calls[i];
        PyObject *item = Py_BuildValue("(IiLL)", call->module, (int)call->parent - 1,
                                       call->begin, call->end);
        if (!item) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}

/* Has the adapter look at the backward of these tensors. No exception is left. */
static void backward_look(PyObject *tensors)
{
    const uint64_t began = core_ticks();
    PyObject *calls = adapter.look && local.count ? sampled_calls() : NULL;
    PyObject *nodes =
        calls ? PyObject_CallFunctionObjArgs(adapter.look, calls, tensors, NULL) : NULL;
    Py_XDECREF(calls);
    core_error_forget();
    if (nodes == Py_None) {
        Py_CLEAR(nodes);
    }
    Py_XSETREF(local.nodes, nodes);
    local.look_ticks = core_ticks() - began;
}

static void backward_looked(void)
{
    const uint64_t began = core_ticks();
    PyObject *nodes = local.nodes;
    local.nodes = NULL;
    PyObject *done = adapter.looked ? PyObject_CallOneArg(adapter.looked, nodes) : NULL;
    core_error_forget();
    Py_XDECREF(done);
    Py_DECREF(nodes);
    const uint64_t now = core_ticks();
    local.sampled++;
    local.sample_due = now + (local.look_ticks + (now - began)) * SAMPLE_SHARE;
}

/* Whether what is computed now may be traced. torch's own answer goes a long way, which a program without modes is spared: there
 * the flag that they set says so. */
static bool backward_is_traced(void)
{
    PyObject *flag =
        adapter.flags ? PyDict_GetItemWithError(adapter.flags, name_in_mode) : NULL;
    return flag != Py_False && number_from(adapter.modes) > 0 &&
           says_yes(adapter.tracing);
}

/* Torch's functions are given the tensor, or the tensors, first. */
static PyObject *backward_enter(PyObject *Py_UNUSED(self), PyObject *tensors)
{
    if (core_brief) {
        /* On threads of autograd it is part of another backward. */
        if (told() && core_train_in_brief() && !core_compiles() && !core_quick_works()) {
            core_train_works(true);
        }
        Py_RETURN_NONE;
    }
    if (!told() || !backward_section || within_backward() || core_compiles() ||
        backward_is_traced()) {
        Py_RETURN_NONE;
    }
    core_train_works(true);
    loss_claim();
    core_brief_calls.hooks++;
    local.backwards++;
    backwards_running++;
    PyObject *token = open_section(backward_section);
    if (local.sampling) {
        backward_look(tensors);
    }
    return token;
}

static PyObject *backward_over(PyObject *section, bool failed)
{
    if (local.nodes) {
        backward_looked();
    }
    local.backwards -= local.backwards > 0;
    backwards_running -= backwards_running > 0;
    close_section(section, failed);
    if (!core_optimizer_known && !failed) {
        sw_phase_mark();
        local.updating = core_updates_by_hand = true;
    }
    Py_RETURN_NONE;
}

static PyObject *backward_leave(PyObject *Py_UNUSED(self), PyObject *section)
{
    return backward_over(section, false);
}

static PyObject *backward_failed(PyObject *Py_UNUSED(self), PyObject *section)
{
    return backward_over(section, true);
}

static PyObject *optimizer_enter(PyObject *Py_UNUSED(self), PyObject *optimizer)
{
    if (!told() || local.optimizers || optimizer == Py_None) {
        Py_RETURN_NONE;
    }
    if (core_brief) {
        /* Of this one only that it has stepped is told. */
        local.optimizers++;
        local.optimizer = optimizer;
        Py_RETURN_TRUE;
    }
    if (core_compiles()) {
        Py_RETURN_NONE;
    }
    module_entry *entry = module_find(optimizer);
    if (!entry || entry->recording != sw_recording_number()) {
        entry = first_sight(optimizer, true);
    }
    if (!entry || !entry->inner) {
        if (PyErr_Occurred()) {
            return NULL;
        }
        Py_RETURN_NONE;
    }
    core_brief_calls.hooks++;
    local.optimizers++;
    local.optimizer = optimizer;
    local.marked = false;
    return open_section(entry->inner);
}

void core_optimizer_begins(void)
{
    local.optimizers++;
}

bool core_optimizer_ends(void)
{
    local.optimizers -= local.optimizers > 0;
    return local.optimizers == 0;
}

static PyObject *optimizer_leave(PyObject *Py_UNUSED(self), PyObject *section)
{
    local.optimizers -= local.optimizers > 0;
    if (section != Py_True) {
        close_section(section, false);
    }
    core_train_updated(local.optimizer);
    Py_RETURN_NONE;
}

static PyObject *optimizer_failed(PyObject *Py_UNUSED(self), PyObject *section)
{
    local.optimizers -= local.optimizers > 0;
    if (section != Py_True) {
        close_section(section, true);
    }
    Py_RETURN_NONE;
}

/* --- Other work of a step that has a section of its own -------------------------------------- */

/* Whether steps that are watched in brief leave this section out. */
static bool rests(const PyObject *section)
{
    const int phase = ((const core_section *)section)->phase;
    return !(phase < SW_PHASE_COUNT && SW_PHASES_ALWAYS >> phase & 1);
}

static bool left_out(const PyObject *section)
{
    return core_brief && rests(section);
}

static PyObject *work_enter(PyObject *Py_UNUSED(self), PyObject *section)
{
    /* Where a batch is made it is part of that: many datasets load a file for every sample. */
    if (left_out(section) || !SW_GATE(gate) || core_train_waits() || core_compiles()) {
        Py_RETURN_NONE;
    }
    core_brief_calls.hooks++;
    core_train_resumes();
    return open_section(section);
}

static PyObject *section_enter(PyObject *Py_UNUSED(self), PyObject *section)
{
    if (left_out(section) || !SW_GATE(gate) || core_compiles()) {
        Py_RETURN_NONE;
    }
    core_brief_calls.hooks++;
    return open_section(section);
}

static PyObject *section_leave(PyObject *Py_UNUSED(self), PyObject *section)
{
    close_section(section, false);
    Py_RETURN_NONE;
}

static PyObject *section_failed(PyObject *Py_UNUSED(self), PyObject *section)
{
    close_section(section, true);
    Py_RETURN_NONE;
}

/* --- What the adapter calls ---------------------------------------------------------------- */

static void hooks_keep(PyObject **const *kept, PyObject *const *given, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        PyObject *value = given[i] == Py_None ? NULL : given[i];
        Py_XINCREF(value);
        Py_XSETREF(*kept[i], value);
    }
}

static PyObject *module_backward(PyObject *Py_UNUSED(self), PyObject *args,
                                 PyObject *kwargs)
{
    static char *keywords[] = {"modes", "flags", "tracing", "look", "looked", NULL};
    PyObject *given[5] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO!OOO:module_backward", keywords,
                                     &given[0], &PyDict_Type, &given[1], &given[2],
                                     &given[3], &given[4])) {
        return NULL;
    }
    PyObject **const kept[] = {&adapter.modes, &adapter.flags, &adapter.tracing,
                               &adapter.look, &adapter.looked};
    hooks_keep(kept, given, sizeof kept / sizeof kept[0]);
    Py_RETURN_NONE;
}

static PyObject *module_hooks(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"sight", "trained",  "asks", "grad",
                               "task",  "sequence", NULL};
    PyObject *given[6] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOOOO:module_hooks", keywords,
                                     &given[0], &given[1], &given[2], &given[3],
                                     &given[4], &given[5])) {
        return NULL;
    }
    PyObject **const kept[] = {&adapter.sight, &adapter.trained, &adapter.asks,
                               &adapter.grad,  &adapter.task,    &adapter.sequence};
    hooks_keep(kept, given, sizeof kept / sizeof kept[0]);
    if (!backward_section) {
        core_state *state = PyModule_GetState(self);
        backward_section = PyObject_CallFunction(state->slot[CORE_SECTION_TYPE], "ss",
                                                 "backward", "backward");
    }
    if (!backward_section) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *module_parts(PyObject *Py_UNUSED(self), PyObject *wanted)
{
    adapter.parts = PyObject_IsTrue(wanted) == 1;
    Py_RETURN_NONE;
}

static int is_section(PyObject *self, PyObject *object)
{
    core_state *state = PyModule_GetState(self);
    return object == Py_None ||
           (PyObject *)Py_TYPE(object) == state->slot[CORE_SECTION_TYPE];
}

static PyObject *section_rests(PyObject *self, PyObject *section)
{
    if (section == Py_None || !is_section(self, section)) {
        PyErr_SetString(PyExc_TypeError, "section_rests() takes a section");
        return NULL;
    }
    return PyBool_FromLong(rests(section));
}

static void section_set(PyObject **where, PyObject *section)
{
    PyObject *value = section == Py_None ? NULL : section;
    Py_XINCREF(value);
    Py_XSETREF(*where, value);
}

static PyObject *module_add(PyObject *self, PyObject *args)
{
    PyObject *object, *inner, *outer, *validates;
    unsigned number, flags;
    if (!PyArg_ParseTuple(args, "OOOOII:module_add", &object, &inner, &outer, &validates,
                          &number, &flags)) {
        return NULL;
    }
    if (!is_section(self, inner) || !is_section(self, outer) ||
        !is_section(self, validates)) {
        PyErr_SetString(PyExc_TypeError, "module_add() takes sections");
        return NULL;
    }
    module_entry *entry = module_entry_of(object);
    if (!entry) {
        return NULL;
    }
    section_set(&entry->inner, inner);
    section_set(&entry->outer, outer == Py_None ? inner : outer);
    section_set(&entry->validates, validates == Py_None ? inner : validates);
    entry->number = number;
    entry->flags = (entry->flags & MODULE_TRAINED) | flags;
    entry->recording = sw_recording_number();
    Py_RETURN_NONE;
}

static PyObject *module_known(PyObject *Py_UNUSED(self), PyObject *object)
{
    const module_entry *entry = module_find(object);
    if (!entry) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("(IIN)", entry->number, entry->flags,
                         PyBool_FromLong(entry->recording == sw_recording_number()));
}

/* Marks those that are known as trained. */
static PyObject *module_trained(PyObject *Py_UNUSED(self), PyObject *modules)
{
    PyObject *fast = PySequence_Fast(modules, "module_trained() takes a sequence");
    if (!fast) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast); i++) {
        module_entry *entry = module_find(PySequence_Fast_GET_ITEM(fast, i));
        if (entry && !(entry->flags & MODULE_TRAINED)) {
            entry->flags |= MODULE_TRAINED;
            trained_count++;
        }
    }
    Py_DECREF(fast);
    Py_RETURN_NONE;
}

static PyObject *modules_forget(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    module_forget();
    Py_RETURN_NONE;
}

static PyObject *modules_count(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromSsize_t(module_count());
}

static PyObject *recording_number(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLong(sw_recording_number());
}

static PyMethodDef modules_methods[] = {
    {"loss_enter", loss_enter, METH_O,
     PyDoc_STR("A function computes a loss; None when it is part of a loss.")},
    {"loss_leave", loss_leave, METH_O, NULL},
    {"loss_failed", loss_failed, METH_O, NULL},
    {"backward_enter", backward_enter, METH_O,
     PyDoc_STR("A backward of these tensors begins; None when it is part of one.")},
    {"backward_leave", backward_leave, METH_O, NULL},
    {"backward_failed", backward_failed, METH_O, NULL},
    {"optimizer_enter", optimizer_enter, METH_O,
     PyDoc_STR("An optimizer steps; None when it is part of another's step.")},
    {"optimizer_leave", optimizer_leave, METH_O,
     PyDoc_STR("It has stepped: that is an update.")},
    {"optimizer_failed", optimizer_failed, METH_O, NULL},
    {"work_enter", work_enter, METH_O,
     PyDoc_STR("Something begins that no validation does, in this section; None\n"
               "where a batch is made.")},
    {"section_enter", section_enter, METH_O,
     PyDoc_STR("Something begins in this section; None where nothing is recorded.")},
    {"section_leave", section_leave, METH_O, NULL},
    {"section_failed", section_failed, METH_O, NULL},
    {"section_rests", section_rests, METH_O,
     PyDoc_STR("Whether steps that are watched in brief leave the section out.")},
    {"module_hooks", (PyCFunction)(void (*)(void))module_hooks,
     METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("Say who names modules, and what torch knows.")},
    {"module_backward", (PyCFunction)(void (*)(void))module_backward,
     METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("Say who looks at the backward of modules, and whether one is traced.")},
    {"module_parts", module_parts, METH_O,
     PyDoc_STR("Whether calls inside those of other modules are timed.")},
    {"module_add", module_add, METH_VARARGS,
     PyDoc_STR("module_add(object, inner, outer, validates, number, flags, /)\n--\n\n"
               "Calls of the object are timed as these sections; None: not.")},
    {"module_known", module_known, METH_O,
     PyDoc_STR("(number, flags, whether it has rows in this recording), or None.")},
    {"module_trained", module_trained, METH_O,
     PyDoc_STR("These modules are being trained.")},
    {"module_slots", (PyCFunction)(void (*)(void))core_module_slots, METH_FASTCALL,
     PyDoc_STR(
         "module_slots(class, compiler, /)\n--\n\n"
         "See calls of objects of this class and those below it; whether that is so.")},
    {"module_slots_back", core_module_slots_back, METH_NOARGS,
     PyDoc_STR("See them no more.")},
    {"module_built", core_module_built, METH_O,
     PyDoc_STR("The constructor of this object runs.")},
    {"module_site", core_module_site, METH_O,
     PyDoc_STR("(file, line, function) where the object was built, or None.")},
    {"recording_number", recording_number, METH_NOARGS,
     PyDoc_STR("Number of this recording, 0 when nothing is recorded.")},
    {"modules_forget", modules_forget, METH_NOARGS, NULL},
    {"modules_count", modules_count, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int core_modules_add(PyObject *module)
{
    gate = sw_section_get_n("", 0, SW_PHASE_INHERIT);
    if (!name_training && core_in_main_interpreter()) {
        name_training = PyUnicode_InternFromString("training");
        name_in_mode = PyUnicode_InternFromString("_is_in_torch_dispatch_mode");
        if (!name_training || !name_in_mode) {
            return -1;
        }
    }
    return PyModule_AddFunctions(module, modules_methods);
}
