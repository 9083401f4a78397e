/* stepwatch._core.stage: calls, ticks and CPU time of one stage of producing batches.
 *
 * The counts live in the object and go into a row of the trace from time to time, when the recording ends and when the
 * object is freed: writing a row takes a lock, counting does not. */
#include "stages.h"
#include "quick.h"
#include <pthread.h>
#include <string.h>
#include <structmember.h>
#include <time.h>

sw_section *core_stage_gate;

/* Short stages have their CPU time read once in so many calls, and those of every sample more rarely: that clock is a
 * system call. */
#define CPU_EVERY 16u
#define CPU_EVERY_SAMPLE 128u
/* Shorter ones are not worth a look each. */
#define SHORT_NS 2e4
/* Those that take this long can afford a section of their own, and those that take longer the clock each time. */
#define LONG_NS 5e4
#define VERY_LONG_NS 1e6

static uint64_t short_ticks, long_ticks, very_long_ticks;

CORE_THREAD_LOCAL unsigned transforms_open;
CORE_THREAD_LOCAL PyObject *context_now;

static struct {
    pthread_mutex_t lock;
    core_stage *first;
} stages = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void forked_child(void)
{
    pthread_mutex_init(&stages.lock, NULL);
}

bool core_stage_inside(void)
{
    return transforms_open != 0;
}

PyObject *core_stage_context(void)
{
    return context_now;
}

PyObject *core_stage_context_set(PyObject *context)
{
    PyObject *before = context_now;
    context_now = context;
    return before;
}

/* --- Counting ------------------------------------------------------------------------------- */

static uint64_t cpu_now(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) {
        return 0;
    }
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Those that happen for every sample. */
static bool is_frequent(const core_stage *stage)
{
    return stage->kind == SW_STAGE_GETITEM || stage->kind == SW_STAGE_TRANSFORM;
}

static void stage_flush(core_stage *stage)
{
    sw_row row = {
        .table = SW_TABLE_STAGE,
        .key = {stage->loader_id, stage->worker, stage->kind, stage->name_id},
        .value = {stage->calls, stage->ticks, 0, stage->shortest, stage->longest},
    };
    if (stage->cpu_ticks) {
        /* Those that were not read are taken to be like those that were. */
        row.value[2] = (uint64_t)((double)stage->cpu_ns * (double)stage->ticks /
                                  (double)stage->cpu_ticks);
    }
    stage->handle = sw_row_put(stage->handle, &row);
}

static uint32_t id_of(PyObject *text)
{
    Py_ssize_t length;
    const char *data = PyUnicode_AsUTF8AndSize(text, &length);
    if (!data) {
        PyErr_Clear();
        return 0;
    }
    return length ? sw_name(data, (size_t)length) : 0;
}

/* A recording began since: what was counted belongs to another. */
static void stage_rebase(core_stage *stage, uint32_t recording, uint64_t now)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    stage->recording = recording;
    stage->loader_id = id_of(stage->loader);
    stage->name_id = id_of(stage->name);
    stage->calls = stage->ticks = stage->shortest = stage->longest = 0;
    stage->cpu_ns = stage->cpu_ticks = stage->last = stage->handle = 0;
    stage->due = core_ticks_soon(now);
    PyErr_Restore(type, value, trace);
}

/* False: nothing is recorded. */
static bool stage_is_current(core_stage *stage, uint64_t now)
{
    const uint32_t recording = sw_recording_number();
    if (recording != 0 && stage->recording != recording) {
        stage_rebase(stage, recording, now);
    }
    return recording != 0;
}

static void stage_keep(core_stage *stage, uint64_t end)
{
    if (end >= stage->due) {
        stage_flush(stage);
        stage->due = core_ticks_due(end, core_ticks());
    }
}

static void stage_count(core_stage *stage, uint64_t begin, uint64_t end, uint64_t cpu_ns)
{
    if (!stage_is_current(stage, end)) {
        return;
    }
    const uint64_t took = end > begin ? end - begin : 0;
    stage->shortest =
        stage->calls == 0 || took < stage->shortest ? took : stage->shortest;
    stage->longest = took > stage->longest ? took : stage->longest;
    stage->calls++;
    stage->ticks += took;
    stage->last = took;
    stage->begin = begin;
    stage->end = end;
    stage->cpu = cpu_ns;
    if (cpu_ns) {
        stage->cpu_ns += cpu_ns;
        stage->cpu_ticks += took;
    }
    stage_keep(stage, end);
}

void core_stage_add_many(core_stage *stage, uint64_t calls, uint64_t begin, uint64_t end)
{
    if (calls == 0 || !stage_is_current(stage, end)) {
        return;
    }
    const uint64_t took = end > begin ? end - begin : 0;
    stage->last = took / calls;
    stage->shortest = stage->calls == 0 ? stage->last : stage->shortest;
    stage->longest = stage->calls == 0 ? stage->last : stage->longest;
    stage->calls += calls;
    stage->ticks += took;
    stage_keep(stage, end);
}

void core_stage_add_sum(core_stage *stage, uint64_t calls, uint64_t ticks,
                        uint64_t shortest, uint64_t longest)
{
    const uint64_t now = core_ticks();
    if (!stage_is_current(stage, now)) {
        return;
    }
    stage->shortest =
        stage->calls == 0 || shortest < stage->shortest ? shortest : stage->shortest;
    stage->longest = longest > stage->longest ? longest : stage->longest;
    stage->calls += calls;
    stage->ticks += ticks;
    stage->last = ticks / calls;
    stage_keep(stage, now);
}

void core_stage_add(core_stage *stage, uint64_t begin, uint64_t end)
{
    stage_count(stage, begin, end, 0);
}

bool core_stage_is_short(const core_stage *stage)
{
    return stage->calls && stage->last < short_ticks &&
           stage->ticks / stage->calls < short_ticks;
}

void core_stage_begin(core_stage *stage, core_stage_run *run)
{
    if (stage->kind == SW_STAGE_TRANSFORM) {
        transforms_open++;
    }
    const bool takes_long = stage->last > long_ticks;
    run->open = stage->section && (takes_long || !is_frequent(stage));
    if (run->open) {
        sw_begin(stage->section);
    }
    const unsigned every = is_frequent(stage) ? CPU_EVERY_SAMPLE : CPU_EVERY;
    const bool reads = stage->last > very_long_ticks || stage->calls % every == 0;
    run->cpu_ns = reads ? cpu_now() : 0;
    run->begin = core_ticks();
}

void core_stage_end(core_stage *stage, const core_stage_run *run, const PyObject *result)
{
    const uint64_t end = core_ticks();
    uint64_t cpu = run->cpu_ns ? cpu_now() : 0;
    cpu = cpu > run->cpu_ns ? cpu - run->cpu_ns : 0;
    const bool failed = !result && PyErr_Occurred();
    /* There was nothing more to give: neither a failure nor a batch. */
    const bool over = !result && (!failed || PyErr_ExceptionMatches(PyExc_StopIteration));
    if (run->open && failed && !over) {
        sw_end_error(stage->section);
    } else if (run->open) {
        sw_end(stage->section);
    } else if (stage->section) {
        /* No event for each of many; the step has its time in the right phase all the same. */
        sw_phase_charge(stage->phase, run->begin);
    }
    if (stage->kind == SW_STAGE_TRANSFORM && transforms_open) {
        transforms_open--;
    }
    if (!over) {
        stage_count(stage, run->begin, end, cpu);
    }
}

void core_stages_flush(void)
{
    const uint32_t recording = sw_recording_number();
    core_quick_put();
    pthread_mutex_lock(&stages.lock);
    for (core_stage *stage = stages.first; stage; stage = stage->next) {
        if (stage->calls && stage->recording == recording) {
            stage_flush(stage);
        }
    }
    pthread_mutex_unlock(&stages.lock);
}

/* --- The type ------------------------------------------------------------------------------- */

static PyObject *stage_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"loader", "worker", "kind", "name", "section", NULL};
    core_state *state = PyType_GetModuleState(type);
    PyObject *loader, *worker, *name, *section = Py_None;
    int kind;
    if (!state ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "UOiU|O:stage", keywords, &loader,
                                     &worker, &kind, &name, &section)) {
        return NULL;
    }
    if (kind <= 0 || kind >= SW_STAGE_KINDS) {
        return PyErr_Format(PyExc_ValueError, "there is no stage of kind %d", kind);
    }
    unsigned long number = UINT32_MAX;
    if (worker != Py_None) {
        number = PyLong_AsUnsignedLong(worker);
        if (number == (unsigned long)-1 && PyErr_Occurred()) {
            return NULL;
        }
    }
    PyTypeObject *const sections = (PyTypeObject *)state->slot[CORE_SECTION_TYPE];
    if (section != Py_None && !PyObject_TypeCheck(section, sections)) {
        return PyErr_Format(PyExc_TypeError,
                            "section must be a section or None, not %.100s",
                            Py_TYPE(section)->tp_name);
    }
    core_stage *self = (core_stage *)type->tp_alloc(type, 0);
    if (!self) {
        return NULL;
    }
    self->loader = PyUnicode_FromObject(loader);
    self->name = PyUnicode_FromObject(name);
    self->worker = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
    self->kind = (uint32_t)kind;
    if (section != Py_None) {
        self->section = ((core_section *)section)->handle;
        self->phase = ((core_section *)section)->phase;
    }
    pthread_mutex_lock(&stages.lock);
    self->back = &stages.first;
    self->next = stages.first;
    if (self->next) {
        self->next->back = &self->next;
    }
    stages.first = self;
    pthread_mutex_unlock(&stages.lock);
    if (!self->loader || !self->name) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void stage_dealloc(PyObject *object)
{
    core_stage *self = (core_stage *)object;
    PyTypeObject *type = Py_TYPE(object);
    pthread_mutex_lock(&stages.lock);
    *self->back = self->next;
    if (self->next) {
        self->next->back = self->back;
    }
    pthread_mutex_unlock(&stages.lock);
    if (self->calls && self->recording == sw_recording_number()) {
        stage_flush(self);
    }
    Py_CLEAR(self->loader);
    Py_CLEAR(self->name);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *stage_add(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    if (count < 1 || count > 3) {
        return PyErr_Format(PyExc_TypeError, "add() takes 1 to 3 arguments, %zd given",
                            count);
    }
    uint64_t numbers[3] = {0};
    for (Py_ssize_t i = 0; i < count; i++) {
        numbers[i] = PyLong_AsUnsignedLongLong(args[i]);
        if (numbers[i] == UINT64_MAX && PyErr_Occurred()) {
            return NULL;
        }
    }
    if (count < 2) {
        numbers[1] = core_ticks();
    }
    if (SW_GATE(core_stage_gate)) {
        stage_count((core_stage *)object, numbers[0], numbers[1], numbers[2]);
    }
    return PyLong_FromUnsignedLongLong(numbers[1]);
}

static PyObject *stage_run(PyObject *object, PyObject *const *args, Py_ssize_t count,
                           PyObject *names)
{
    core_stage *self = (core_stage *)object;
    if (count < 1) {
        return PyErr_Format(PyExc_TypeError, "run() needs something to call");
    }
    const size_t passed = (size_t)(count - 1);
    if (!SW_GATE(core_stage_gate) ||
        (self->kind == SW_STAGE_TRANSFORM && core_stage_inside())) {
        return core_call_through(args[0], args + 1, passed, names);
    }
    core_stage_run run;
    core_stage_begin(self, &run);
    PyObject *result = core_call_through(args[0], args + 1, passed, names);
    core_stage_end(self, &run, result);
    return result;
}

static PyObject *stage_repr(PyObject *object)
{
    const core_stage *self = (core_stage *)object;
    return PyUnicode_FromFormat("<stage %U of %U: %llu calls>", self->name, self->loader,
                                (unsigned long long)self->calls);
}

static PyMethodDef stage_methods[] = {
    {"add", (PyCFunction)(void (*)(void))stage_add, METH_FASTCALL,
     PyDoc_STR("add($self, begin, end=None, cpu_ns=0, /)\n--\n\n"
               "Count a call from one tick to another (now); return the latter.")},
    {"run", (PyCFunction)(void (*)(void))stage_run, METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR(
         "run($self, function, /, *args, **kwargs)\n--\n\nCall, and count the call.")},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef stage_members[] = {
    {"loader", T_OBJECT, offsetof(core_stage, loader), READONLY, NULL},
    {"name", T_OBJECT, offsetof(core_stage, name), READONLY, NULL},
    {"kind", T_UINT, offsetof(core_stage, kind), READONLY, NULL},
    {"worker", T_UINT, offsetof(core_stage, worker), READONLY, NULL},
    {"calls", T_ULONGLONG, offsetof(core_stage, calls), READONLY, NULL},
    {"ticks", T_ULONGLONG, offsetof(core_stage, ticks), READONLY, NULL},
    {"begin", T_ULONGLONG, offsetof(core_stage, begin), READONLY, NULL},
    {"end", T_ULONGLONG, offsetof(core_stage, end), READONLY, NULL},
    {"cpu_ns", T_ULONGLONG, offsetof(core_stage, cpu), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyDoc_STRVAR(stage_doc, "stage(loader, worker, kind, name, section=None)\n--\n\n"
                        "A stage of producing batches, timed into a row of the trace.");

static PyType_Slot stage_slots[] = {
    {Py_tp_doc, (void *)stage_doc},
    {Py_tp_new, stage_new},
    {Py_tp_dealloc, stage_dealloc},
    {Py_tp_repr, stage_repr},
    {Py_tp_methods, stage_methods},
    {Py_tp_members, stage_members},
    {0, NULL},
};

static PyType_Spec stage_spec = {
    .name = "stepwatch._core.stage",
    .basicsize = sizeof(core_stage),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = stage_slots,
};

static PyObject *stage_context(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    PyObject *context = context_now ? context_now : Py_None;
    Py_INCREF(context);
    return context;
}

static PyObject *stages_keep(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    core_stages_flush();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"stage_context", stage_context, METH_NOARGS,
     PyDoc_STR("The stages of the batch that this thread is making, or None.")},
    {"stages_keep", stages_keep, METH_NOARGS,
     PyDoc_STR("Put what all stages have counted into the trace, for this process may be "
               "killed now.")},
    {NULL, NULL, 0, NULL},
};

int core_stages_add(PyObject *module)
{
    if (!core_stage_gate) {
        core_ticks_init();
        core_stage_gate = sw_section_get_n("", 0, SW_PHASE_INHERIT);
        (void)pthread_atfork(NULL, NULL, forked_child);
    }
    const double unit_ns = core_ticks_ns();
    short_ticks = (uint64_t)(unit_ns > 0 ? SHORT_NS / unit_ns : SHORT_NS);
    long_ticks = (uint64_t)(unit_ns > 0 ? LONG_NS / unit_ns : LONG_NS);
    very_long_ticks = (uint64_t)(unit_ns > 0 ? VERY_LONG_NS / unit_ns : VERY_LONG_NS);
    if (PyModule_AddFunctions(module, functions) != 0 ||
        core_type_add(module, CORE_STAGE_TYPE, &stage_spec) != 0) {
        return -1;
    }
    return core_timed_add(module) == 0 ? core_loader_pass_add(module) : -1;
}
