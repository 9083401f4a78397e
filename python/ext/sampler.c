/* stepwatch.sample: what the sampler saw between two moments, and the functions that start and stop it.
 *
 * There is one sampler in a process. Each object is a view: it notes the counts when it begins and when it ends, and
 * shows the difference. The sampler runs as long as somebody wants it. */
#include "core.h"

#include "sampler.h"
#include "unseen.h"

#include <fcntl.h>
#include <stdlib.h>
#include <stepwatch/export.h>
#include <stepwatch/stepwatch.h>
#include <unistd.h>

#define HZ_DEFAULT 200.0

/* Who wants the sampler; under the GIL. */
static int users;
static bool user_core;       /* sampler_start is one of them */
static bool exit_registered; /* by the interpreter that started it first */

/* What was counted at a moment. */
typedef struct moment {
    tree_counts *counts; /* a node each */
    size_t count;
    tree_totals totals;
    double at; /* seconds of CLOCK_MONOTONIC */
} moment;

typedef struct sample_object {
    PyObject_HEAD double hz;
    sampler_tree *tree; /* NULL before it begins, and when there is no sampler */
    uint64_t number;    /* of the tree */
    moment begin, end;
    bool active, ended, counted;
    enum core_read_mode mode;
    double period;
    PyObject *notes; /* list */
    PyObject *names; /* dict: kernel's id -> name of the thread */
} sample_object;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* --- Starting and stopping ------------------------------------------------------------- */

/* Has the sampler stopped before the interpreter ends, and started again in forked children. */
static int watch_end(PyObject *module)
{
    if (exit_registered) {
        return 0;
    }
    PyObject *end = PyObject_GetAttrString(module, "_sampler_end");
    PyObject *forked = end ? PyObject_GetAttrString(module, "_sampler_forked") : NULL;
    PyObject *atexit = forked ? core_import("atexit") : NULL;
    PyObject *os = atexit ? core_import("os") : NULL;
    PyObject *done = NULL;
    if (os) {
        done = PyObject_CallMethod(atexit, "register", "O", end);
    }
    if (done) {
        Py_DECREF(done);
        PyObject *function = PyObject_GetAttrString(os, "register_at_fork");
        PyObject *none = PyTuple_New(0);
        PyObject *words = Py_BuildValue("{s:O}", "after_in_child", forked);
        done = function && none && words ? PyObject_Call(function, none, words) : NULL;
        Py_XDECREF(function);
        Py_XDECREF(none);
        Py_XDECREF(words);
    }
    Py_XDECREF(end);
    Py_XDECREF(forked);
    Py_XDECREF(atexit);
    Py_XDECREF(os);
    if (!done) {
        return -1;
    }
    Py_DECREF(done);
    exit_registered = true;
    return 0;
}

static int hz_check(double hz)
{
    if (!(hz >= 1.0 && hz <= 1000.0)) {
        PyErr_SetString(PyExc_ValueError, "hz must be from 1 to 1000");
        return -1;
    }
    return 0;
}

/* 0 and a user more, or -1; `*why` as sampler_start says. No exception. */
static int user_add(PyObject *module, double hz, const char **why)
{
    if (core_is_off()) {
        *why = "STEPWATCH_ENABLED switches them off";
        return -1;
    }
    if (watch_end(module) != 0) {
        core_error_forget();
        *why = "the end of the program could not be watched";
        return -1;
    }
    if (sampler_start(hz, why) != 0) {
        return -1;
    }
    users++;
    return 0;
}

static void user_remove(void)
{
    if (users > 0 && --users == 0) {
        sampler_stop();
    }
}

/* --- Moments --------------------------------------------------------------------------- */

static int moment_take(sampler_tree *tree, moment *out)
{
    tree_copy copy;
    tree_lock(tree);
    const bool taken = tree_copy_take(tree, &copy);
    tree_unlock(tree);
    if (!taken) {
        PyErr_NoMemory();
        return -1;
    }
    out->at = seconds();
    out->totals = copy.totals;
    out->count = copy.node_count;
    out->counts = malloc(copy.node_count * sizeof *out->counts + 1);
    for (size_t i = 0; out->counts && i < copy.node_count; i++) {
        out->counts[i] = copy.nodes[i].all;
    }
    tree_copy_free(&copy);
    if (!out->counts) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static void moment_clear(moment *at)
{
    free(at->counts);
    *at = (moment){0};
}

/* In a forked child the sampler is a new one, which has seen only the child. */
static void sample_sync(sample_object *self)
{
    if (self->counted && self->number != sampler_tree_number()) {
        sampler_tree *tree = sampler_tree_now();
        if (tree) {
            tree_drop(self->tree);
            self->tree = tree;
            self->number = sampler_tree_number();
            moment_clear(&self->begin);
            self->begin.at = seconds();
        }
    }
}

/* Names of the threads that there are now, as Python knows them. */
static void names_update(sample_object *self)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *name = PyUnicode_FromString("threading");
    PyObject *threading = name ? PyImport_GetModule(name) : NULL;
    PyObject *all = threading ? PyObject_CallMethod(threading, "enumerate", NULL) : NULL;
    for (Py_ssize_t i = 0; all && PyList_Check(all) && i < PyList_GET_SIZE(all); i++) {
        PyObject *thread = PyList_GET_ITEM(all, i);
        PyObject *id = PyObject_GetAttrString(thread, "native_id");
        PyObject *text = PyObject_GetAttrString(thread, "name");
        if (id && text && PyLong_Check(id) && PyUnicode_Check(text)) {
            (void)PyDict_SetItem(self->names, id, text);
        }
        Py_XDECREF(id);
        Py_XDECREF(text);
        core_error_forget();
    }
    Py_XDECREF(all);
    Py_XDECREF(threading);
    Py_XDECREF(name);
    core_error_forget();
    PyErr_Restore(type, value, traceback);
}

/* --- The object ------------------------------------------------------------------------ */

static PyObject *sample_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"hz", NULL};
    double hz = HZ_DEFAULT;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|d:sample", keywords, &hz) ||
        hz_check(hz) != 0) {
        return NULL;
    }
    sample_object *self = (sample_object *)type->tp_alloc(type, 0);
    if (!self) {
        return NULL;
    }
    self->hz = hz;
    self->period = 1 / hz;
    self->notes = PyList_New(0);
    self->names = PyDict_New();
    if (!self->notes || !self->names) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void sample_dealloc(sample_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (self->counted) {
        user_remove();
    }
    tree_drop(self->tree);
    moment_clear(&self->begin);
    moment_clear(&self->end);
    Py_CLEAR(self->notes);
    Py_CLEAR(self->names);
    type->tp_free(self);
    Py_DECREF(type);
}

static int note(sample_object *self, PyObject *text)
{
    const int result = text ? PyList_Append(self->notes, text) : -1;
    Py_XDECREF(text);
    return result;
}

static PyObject *sample_enter(sample_object *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *module = PyType_GetModule(Py_TYPE(self));
    const char *why = NULL;
    if (!module) {
        return NULL;
    }
    if (self->active || self->ended) {
        PyErr_SetString(PyExc_RuntimeError,
                        "a sample() serves one with statement; make another");
        return NULL;
    }
    const bool there = sampler_is_running();
    self->active = true;
    self->begin.at = seconds();
    if (user_add(module, self->hz, &why) != 0) {
        /* The program runs on, without samples. */
        if (note(self, PyUnicode_FromFormat("no samples: %s", why)) != 0) {
            return NULL;
        }
        Py_INCREF(self);
        return (PyObject *)self;
    }
    self->counted = true;
    self->tree = sampler_tree_now();
    self->number = sampler_tree_number();
    self->mode = sampler_reader();
    self->period = 1 / sampler_hz();
    names_update(self);
    if (why && note(self, PyUnicode_FromString(why)) != 0) {
        return NULL;
    }
    if (there) {
        char *hz = PyOS_double_to_string(sampler_hz(), 'g', 6, 0, NULL);
        PyObject *text =
            hz ? PyUnicode_FromFormat("a sampler runs already, at %s Hz: these are its "
                                      "samples during this time",
                                      hz)
               : NULL;
        PyMem_Free(hz);
        if (note(self, text) != 0 || moment_take(self->tree, &self->begin) != 0) {
            return NULL;
        }
    }
    Py_INCREF(self);
    return (PyObject *)self;
}

static PyObject *sample_exit(sample_object *self, PyObject *Py_UNUSED(args))
{
    if (!self->active) {
        Py_RETURN_NONE;
    }
    sample_sync(self);
    self->active = false;
    self->ended = true;
    self->end.at = seconds();
    int result = 0;
    if (self->counted) {
        self->counted = false;
        user_remove();
    }
    names_update(self);
    if (self->tree) {
        result = moment_take(self->tree, &self->end);
    }
    if (result != 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* --- What was seen --------------------------------------------------------------------- */

/* The tree now, with the counts of the view in each node's `all`. */
static int view_take(sample_object *self, tree_copy *out)
{
    *out = (tree_copy){0};
    sample_sync(self);
    if (!self->tree) {
        return 0;
    }
    tree_lock(self->tree);
    const bool taken = tree_copy_take(self->tree, out);
    tree_unlock(self->tree);
    if (!taken) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < out->node_count; i++) {
        tree_counts *all = &out->nodes[i].all;
        if (self->ended) {
            *all = i < self->end.count ? self->end.counts[i] : (tree_counts){0};
        }
        if (i < self->begin.count) {
            all->running -= self->begin.counts[i].running;
            all->waiting -= self->begin.counts[i].waiting;
            all->native -= self->begin.counts[i].native;
        }
    }
    if (self->ended) {
        out->totals = self->end.totals;
    }
    return 0;
}

static PyObject *text_object(tree_text text)
{
    return PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.length, "replace");
}

static PyObject *frame_object(const tree_copy *copy, const tree_node *node)
{
    const tree_function *function = &copy->functions[node->function];
    PyObject *name = text_object(function->qualname);
    PyObject *file = text_object(function->file);
    PyObject *result =
        name && file ? Py_BuildValue("(OOI)", name, file, node->line) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(file);
    return result;
}

/* Frames of a node, root first; `*context` is where they begin. */
static PyObject *path_object(const tree_copy *copy, size_t index, uint32_t *context)
{
    PyObject *frames = PyList_New(0);
    const tree_node *node = &copy->nodes[index];
    for (; frames; node = &copy->nodes[node->parent]) {
        PyObject *frame = frame_object(copy, node);
        if (!frame || PyList_Append(frames, frame) != 0) {
            Py_XDECREF(frame);
            Py_CLEAR(frames);
            break;
        }
        Py_DECREF(frame);
        if (node->top) {
            break;
        }
    }
    if (frames && PyList_Reverse(frames) != 0) {
        Py_CLEAR(frames);
    }
    *context = node->parent;
    return frames;
}

static PyObject *thread_name(void *arg, uint32_t tid)
{
    sample_object *self = arg;
    PyObject *id = PyLong_FromUnsignedLong(tid);
    PyObject *name = id ? PyDict_GetItemWithError(self->names, id) : NULL;
    Py_XDECREF(id);
    if (name) {
        Py_INCREF(name);
        return name;
    }
    if (PyErr_Occurred()) {
        return NULL;
    }
    return tid == (uint32_t)getpid() ? PyUnicode_FromString("MainThread")
                                     : PyUnicode_FromFormat("thread %u", tid);
}

static PyObject *section_name(uint32_t id)
{
    char text[1024];
    const size_t length = sw_name_text(id, text, sizeof text);
    if (length == 0) {
        Py_RETURN_NONE;
    }
    return PyUnicode_DecodeUTF8(
        text, (Py_ssize_t)(length < sizeof text ? length : sizeof text - 1), "replace");
}

static PyObject *stack_object(sample_object *self, const tree_copy *copy, size_t index)
{
    uint32_t at;
    PyObject *frames = path_object(copy, index, &at);
    if (!frames) {
        return NULL;
    }
    const tree_context *context = &copy->contexts[at];
    const tree_counts *counts = &copy->nodes[index].all;
    PyObject *thread = thread_name(self, context->tid);
    PyObject *section = section_name(context->section);
    const char *phase = sw_phase_name(context->phase);
    PyObject *result = NULL;
    if (thread && section) {
        result =
            Py_BuildValue("{s:O,s:I,s:O,s:z,s:O,s:K,s:K,s:K}", "thread", thread, "tid",
                          context->tid, "section", section, "phase", phase, "frames",
                          frames, "running", (unsigned long long)counts->running,
                          "waiting", (unsigned long long)counts->waiting, "in_call",
                          (unsigned long long)counts->native);
    }
    Py_XDECREF(thread);
    Py_XDECREF(section);
    Py_DECREF(frames);
    return result;
}

PyDoc_STRVAR(
    stacks_doc,
    "stacks($self)\n--\n\n"
    "Return what was seen as a list of dicts, most samples first.\n\n"
    "Each has \"thread\", \"tid\", \"section\" and \"phase\" (or None), \"frames\" as\n"
    "tuples (name, file, line) from the outermost to the innermost, and how many\n"
    "samples were \"running\" and \"waiting\", of these \"in_call\" inside native "
    "code.\n\n"
    ">>> with stepwatch.sample() as s:\n"
    "...     work()\n"
    ">>> s.stacks()[0][\"frames\"][-1]\n"
    "('work', 'train.py', 12)");

/* Numbers of the nodes with samples, most first; ties in the order in which they were met. The caller frees them. */
static const tree_node *sorted_nodes; /* under the GIL */

static int compare_nodes(const void *a, const void *b)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const tree_counts *x = &sorted_nodes[i].all, *y = &sorted_nodes[k].all;
    const uint64_t here = x->running + x->waiting, there = y->running + y->waiting;
    if (here != there) {
        return here > there ? -1 : 1;
    }
    return i < k ? -1 : i > k;
}

static uint32_t *order_nodes(const tree_copy *copy, size_t *count)
{
    uint32_t *order = malloc(copy->node_count * sizeof *order + 1);
    *count = 0;
    for (size_t i = 0; order && i < copy->node_count; i++) {
        if (copy->nodes[i].all.running + copy->nodes[i].all.waiting > 0) {
            order[(*count)++] = (uint32_t)i;
        }
    }
    if (order) {
        sorted_nodes = copy->nodes;
        qsort(order, *count, sizeof *order, compare_nodes);
    } else {
        PyErr_NoMemory();
    }
    return order;
}

static PyObject *sample_stacks(sample_object *self, PyObject *Py_UNUSED(ignored))
{
    tree_copy copy;
    if (self->active) {
        names_update(self);
    }
    if (view_take(self, &copy) != 0) {
        return NULL;
    }
    size_t count;
    uint32_t *order = order_nodes(&copy, &count);
    PyObject *list = order ? PyList_New(0) : NULL;
    for (size_t i = 0; list && i < count; i++) {
        PyObject *stack = stack_object(self, &copy, order[i]);
        if (!stack || PyList_Append(list, stack) != 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(stack);
    }
    free(order);
    tree_copy_free(&copy);
    return list;
}

static PyObject *totals_object(const tree_totals *now, const tree_totals *before,
                               double hz, double duration, enum core_read_mode mode)
{
#define DIFFERENCE(field) (unsigned long long)(now->field - before->field)
    return Py_BuildValue(
        "{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:d,s:d,s:d,s:d,s:s,s:O}", "rounds",
        DIFFERENCE(rounds), "looks", DIFFERENCE(looks), "kept", DIFFERENCE(kept),
        "leaf_only", DIFFERENCE(leaf_only), "outer_only", DIFFERENCE(outer_only),
        "given_up", DIFFERENCE(given_up), "empty", DIFFERENCE(empty), "retries",
        DIFFERENCE(retries), "late", DIFFERENCE(late), "threads_left_out",
        DIFFERENCE(left_out), "hz", hz, "period_s", 1 / hz, "duration_s", duration,
        "cpu_s", (double)(now->cpu_ns - before->cpu_ns) * 1e-9, "reader",
        core_read_mode_name(mode), "impossible_share", Py_None);
#undef DIFFERENCE
}

PyDoc_STRVAR(stats_doc,
             "stats($self)\n--\n\n"
             "Return how the sampling itself went, as a dict of counts.\n\n"
             "looks = kept + given_up + empty; kept includes leaf_only and outer_only, "
             "stacks that\n"
             "changed while they were looked at. cpu_s is what the sampler used.\n\n"
             ">>> s.stats()[\"kept\"]\n"
             "412");

static PyObject *sample_stats(sample_object *self, PyObject *Py_UNUSED(ignored))
{
    tree_copy copy;
    if (view_take(self, &copy) != 0) {
        return NULL;
    }
    const double until = self->ended ? self->end.at : self->active ? seconds() : 0;
    PyObject *result = totals_object(
        &copy.totals, &self->begin.totals, 1 / self->period,
        until - (self->ended || self->active ? self->begin.at : 0), self->mode);
    tree_copy_free(&copy);
    return result;
}

/* The bytes of a format, from the arguments of collapsed, speedscope and save after the path. */
static PyObject *export_bytes(sample_object *self, bool speedscope, const int on[4])
{
    tree_copy copy;
    const sw_stack_options options = {.waiting = on[0] != 0,
                                      .lines = on[1] != 0,
                                      .threads = on[2] != 0,
                                      .sections = on[3] != 0,
                                      .name = "stepwatch"};
    if (self->active) {
        names_update(self);
    }
    if (view_take(self, &copy) != 0) {
        return NULL;
    }
    PyObject *bytes =
        sampler_export(&copy, self->period, thread_name, self, speedscope, &options);
    tree_copy_free(&copy);
    return bytes;
}

PyDoc_STRVAR(collapsed_doc,
             "collapsed($self, *, waiting=False, lines=False, threads=False, "
             "sections=False)\n--\n\n"
             "Return the stacks as text, one a line, for flame graph tools.\n\n"
             "Running samples only, unless waiting ones are wanted too.\n\n"
             ">>> print(s.collapsed())\n"
             "<module> (train.py);fit (train.py);step (train.py) 187");

static PyObject *sample_collapsed(sample_object *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"waiting", "lines", "threads", "sections", NULL};
    int on[4] = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$pppp:collapsed", keywords, &on[0],
                                     &on[1], &on[2], &on[3])) {
        return NULL;
    }
    PyObject *bytes = export_bytes(self, false, on);
    PyObject *text = bytes ? PyUnicode_DecodeUTF8(PyBytes_AS_STRING(bytes),
                                                  PyBytes_GET_SIZE(bytes), "replace")
                           : NULL;
    Py_XDECREF(bytes);
    return text;
}

static int write_file(PyObject *path, PyObject *bytes)
{
    const char *at = PyBytes_AS_STRING(bytes);
    Py_ssize_t left = PyBytes_GET_SIZE(bytes);
    int failed = 0;
    const int fd =
        open(PyBytes_AS_STRING(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        return errno;
    }
    Py_BEGIN_ALLOW_THREADS while (left > 0 && !failed)
    {
        const ssize_t done = write(fd, at, (size_t)left);
        if (done >= 0) {
            at += done;
            left -= done;
        } else if (errno != EINTR) {
            failed = errno;
        }
    }
    if (close(fd) != 0 && !failed) {
        failed = errno;
    }
    Py_END_ALLOW_THREADS return failed;
}

PyDoc_STRVAR(
    save_doc,
    "save($self, path, *, waiting=False, lines=False, threads=False, "
    "sections=False)\n--\n\n"
    "Write the stacks to a file; its name says how.\n\n"
    "name.speedscope.json (or .json) is for speedscope, name.collapsed (.folded,\n"
    ".txt) has a stack a line.\n\n"
    ">>> s.save(\"train.speedscope.json\")");

static PyObject *sample_save(sample_object *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"path", "waiting", "lines", "threads", "sections", NULL};
    static const char *const plain[] = {".collapsed", ".folded", ".txt"};
    PyObject *path;
    int on[4] = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|$pppp:save", keywords,
                                     PyUnicode_FSConverter, &path, &on[0], &on[1], &on[2],
                                     &on[3])) {
        return NULL;
    }
    const char *dot = strrchr(PyBytes_AS_STRING(path), '.');
    const bool speedscope = dot && strcmp(dot, ".json") == 0;
    bool known = speedscope;
    for (size_t i = 0; dot && i < sizeof plain / sizeof plain[0]; i++) {
        known = known || strcmp(dot, plain[i]) == 0;
    }
    PyObject *bytes = NULL;
    if (!known) {
        PyErr_SetString(PyExc_ValueError,
                        "save() writes .speedscope.json, .json, .collapsed, .folded or "
                        ".txt; the file name ends otherwise");
    } else {
        bytes = export_bytes(self, speedscope, on);
    }
    if (bytes) {
        errno = write_file(path, bytes);
        if (errno) {
            PyErr_SetFromErrnoWithFilename(PyExc_OSError, PyBytes_AS_STRING(path));
        }
    }
    Py_XDECREF(bytes);
    Py_DECREF(path);
    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *sample_get_notes(sample_object *self, void *Py_UNUSED(closure))
{
    return PyList_GetSlice(self->notes, 0, PyList_GET_SIZE(self->notes));
}

static PyObject *sample_repr(sample_object *self)
{
    char *hz = PyOS_double_to_string(self->hz, 'g', 6, 0, NULL);
    PyObject *text = hz ? PyUnicode_FromFormat("stepwatch.sample(hz=%s)", hz) : NULL;
    PyMem_Free(hz);
    return text;
}

static PyMethodDef sample_methods[] = {
    {"__enter__", (PyCFunction)sample_enter, METH_NOARGS, PyDoc_STR("Begin to look.")},
    {"__exit__", (PyCFunction)sample_exit, METH_VARARGS, PyDoc_STR("End.")},
    {"stacks", (PyCFunction)sample_stacks, METH_NOARGS, stacks_doc},
    {"stats", (PyCFunction)sample_stats, METH_NOARGS, stats_doc},
    {"collapsed", (PyCFunction)(void (*)(void))sample_collapsed,
     METH_VARARGS | METH_KEYWORDS, collapsed_doc},
    {"save", (PyCFunction)(void (*)(void))sample_save, METH_VARARGS | METH_KEYWORDS,
     save_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef sample_getset[] = {
    {"notes", (getter)sample_get_notes, NULL,
     PyDoc_STR("What could not be done as asked, one sentence each."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    sample_doc,
    "sample(hz=200)\n--\n\n"
    "Look at the stacks of all Python threads while the block runs.\n\n"
    "A thread of its own looks hz times a second, without the GIL and without signals:\n"
    "the program does not feel it. While a recording is on, samples go there as well.\n\n"
    ">>> with stepwatch.sample() as s:\n"
    "...     train()\n"
    ">>> for stack in s.stacks()[:3]:\n"
    "...     print(stack[\"running\"], stack[\"frames\"][-1])");

static PyType_Slot sample_slots[] = {
    {Py_tp_doc, (void *)sample_doc},
    {Py_tp_new, sample_new},
    {Py_tp_dealloc, sample_dealloc},
    {Py_tp_repr, sample_repr},
    {Py_tp_methods, (void *)sample_methods},
    {Py_tp_getset, (void *)sample_getset},
    {0, NULL},
};

static PyType_Spec sample_spec = {
    .name = "stepwatch.sample",
    .basicsize = sizeof(sample_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = sample_slots,
};

/* --- Functions ------------------------------------------------------------------------- */

PyDoc_STRVAR(start_doc,
             "sampler_start(hz, /)\n--\n\n"
             "Start the sampler of the process. Returns a note when it does not run, or\n"
             "not as well as it could, else None.");

static PyObject *core_sampler_start(PyObject *module, PyObject *arg)
{
    const char *why = NULL;
    const double hz = PyFloat_AsDouble(arg);
    if ((hz == -1.0 && PyErr_Occurred()) || hz_check(hz) != 0) {
        return NULL;
    }
    if (!user_core && user_add(module, hz, &why) == 0) {
        user_core = true;
    }
    if (!why) {
        Py_RETURN_NONE;
    }
    return PyUnicode_FromString(why);
}

PyDoc_STRVAR(sampler_stop_doc, "sampler_stop()\n--\n\nStop what sampler_start started.");

static PyObject *core_sampler_stop(PyObject *Py_UNUSED(module),
                                   PyObject *Py_UNUSED(ignored))
{
    if (user_core) {
        user_core = false;
        user_remove();
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(sampler_stats_doc,
             "sampler_stats()\n--\n\n"
             "Return the counts of the sampler that runs, or of the last one, as\n"
             "sample.stats does; None when there was none.");

static PyObject *core_sampler_stats(PyObject *Py_UNUSED(module),
                                    PyObject *Py_UNUSED(ignored))
{
    sampler_tree *tree = sampler_tree_now();
    if (!tree) {
        Py_RETURN_NONE;
    }
    tree_lock(tree);
    const tree_totals totals = tree_get_totals(tree);
    tree_unlock(tree);
    tree_drop(tree);
    const tree_totals none = {0};
    return totals_object(&totals, &none, sampler_hz(),
                         (double)totals.rounds / sampler_hz(), sampler_reader());
}

/* The interpreter ends: whoever still wants the sampler has to do without. */
static PyObject *core_sampler_end(PyObject *Py_UNUSED(module),
                                  PyObject *Py_UNUSED(ignored))
{
    users = 0;
    user_core = false;
    sampler_stop();
    Py_RETURN_NONE;
}

static PyObject *core_sampler_forked(PyObject *Py_UNUSED(module),
                                     PyObject *Py_UNUSED(ignored))
{
    sampler_forked_child();
    Py_RETURN_NONE;
}

static PyMethodDef sampler_methods[] = {
    {"sampler_start", core_sampler_start, METH_O, start_doc},
    {"sampler_stop", core_sampler_stop, METH_NOARGS, sampler_stop_doc},
    {"sampler_stats", core_sampler_stats, METH_NOARGS, sampler_stats_doc},
    {"_sampler_end", core_sampler_end, METH_NOARGS, NULL},
    {"_sampler_forked", core_sampler_forked, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int core_sampler_add(PyObject *module)
{
    if (core_type_add(module, CORE_SAMPLE_TYPE, &sample_spec) != 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, sampler_methods);
}
