/* Tensors that are kept with their graphs: who holds them. The usual leak of a training program is a list of losses, each
 * with the graph of its step behind it, or a sum of them.
 *
 * Where memory has grown, between two steps, objects that the garbage collector knows are looked through: tensors with a graph,
 * then containers that hold many of these, then who holds the containers. Nothing of the program's own is called, nothing is
 * changed, and it ends after SCAN_NS of CPU time, however many objects there are. Only with the GIL. */
#include "core.h"

#include "frames.h"
#include "ticks.h"
#include <stdbool.h>
#include <stdlib.h>
#include <stepwatch/host.h>
#include <stepwatch/stepwatch.h>
#include <string.h>
#include <time.h>

enum {
    SCANS_MOST = 6,
    LEAST = 8, /* tensors, or additions in a chain, that are worth a word */
    HOLDERS = 3,
    CHAINS = 64, /* tensors whose graphs are looked at */
    CHAIN_MOST = 512,
    FRAMES_MOST = 100,
    CLOCK_EVERY = 256
};
/* Time of the CPU: on a machine that is busy with others a scan takes longer, up to ten times. */
#define SCAN_NS 100000000u
#define FIRST_NS 5e8 /* after the first step; then twice as long each time */
#define GROWN ((uint64_t)8 << 20)

static struct {
    uint32_t recording;
    uint64_t due, pause; /* ticks */
    uint64_t base,
        seen; /* resident at the first step, and at the last scan or the first look */
    unsigned looks, scans;
    bool dear; /* to list the objects alone took too long */
    bool
        running; /* a scan: what it calls may end a step of the program's, in a destructor */
} watch;

/* --- sets of objects --- */

struct set {
    const PyObject **key;
    uint32_t *weight;
    size_t count, room; /* a power of two, or 0 */
};

static size_t set_place(const struct set *set, const PyObject *object)
{
    size_t at = (size_t)((uintptr_t)object >> 4) * 0x9E3779B97F4A7C15ull >> 20;
    at &= set->room - 1;
    while (set->key[at] && set->key[at] != object) {
        at = (at + 1) & (set->room - 1);
    }
    return at;
}

static void set_free(struct set *set)
{
    free(set->key);
    free(set->weight);
    *set = (struct set){0};
}

static bool set_grow(struct set *set)
{
    struct set more = {.room = set->room ? set->room * 2 : 1024};
    more.key = calloc(more.room, sizeof *more.key);
    more.weight = calloc(more.room, sizeof *more.weight);
    if (!more.key || !more.weight) {
        set_free(&more);
        return false;
    }
    for (size_t i = 0; i < set->room; i++) {
        if (set->key[i]) {
            const size_t at = set_place(&more, set->key[i]);
            more.key[at] = set->key[i];
            more.weight[at] = set->weight[i];
        }
    }
    more.count = set->count;
    set_free(set);
    *set = more;
    return true;
}

static bool set_add(struct set *set, const PyObject *object, uint32_t weight)
{
    if (set->count * 2 >= set->room && !set_grow(set)) {
        return false;
    }
    const size_t at = set_place(set, object);
    set->count += !set->key[at];
    set->key[at] = object;
    set->weight[at] = weight;
    return true;
}

static uint32_t set_weight(const struct set *set, const PyObject *object)
{
    return set->room ? set->weight[set_place(set, object)] : 0;
}

/* --- the scan --- */

struct holder {
    PyObject *object; /* borrowed from the list of all */
    uint64_t tensors, chain;
    PyObject *name, *file, *function; /* references, or NULL */
    uint32_t line;
};

struct scan {
    PyObject *objects; /* list of all */
    PyTypeObject *tensor;
    uint64_t deadline; /* CPU time of the thread */
    uint64_t latest;
    bool cut;
    struct set tensors, carriers;
    struct holder holder[HOLDERS];
    size_t holders;
};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool time_is_over(struct scan *scan, Py_ssize_t index)
{
    if (index % CLOCK_EVERY == 0) {
        scan->cut |= clock_ns(CLOCK_THREAD_CPUTIME_ID) > scan->deadline ||
                     clock_ns(CLOCK_MONOTONIC) > scan->latest;
    }
    return scan->cut;
}

/* Length of the chain of additions that ends in this node, as a running sum leaves it. */
static uint64_t chain_of(PyObject *grad_fn)
{
    uint64_t length = 0;
    PyObject *at = grad_fn;
    Py_INCREF(at);
    while (at && length < CHAIN_MOST &&
           strcmp(Py_TYPE(at)->tp_name, "AddBackward0") == 0) {
        PyObject *next = PyObject_GetAttrString(at, "next_functions");
        PyObject *pair = next && PyTuple_Check(next) && PyTuple_GET_SIZE(next)
                             ? PyTuple_GET_ITEM(next, 0)
                             : NULL;
        PyObject *first = pair && PyTuple_Check(pair) && PyTuple_GET_SIZE(pair)
                              ? PyTuple_GET_ITEM(pair, 0)
                              : NULL;
        Py_XINCREF(first);
        Py_XDECREF(next);
        Py_DECREF(at);
        at = first;
        length++;
    }
    PyErr_Clear();
    Py_XDECREF(at);
    return length;
}

static void holder_add(struct scan *scan, PyObject *object, uint64_t tensors,
                       uint64_t chain)
{
    struct holder *to = &scan->holder[scan->holders];
    if (scan->holders == HOLDERS) {
        to = scan->holder;
        for (size_t i = 1; i < HOLDERS; i++) {
            to = scan->holder[i].tensors + scan->holder[i].chain < to->tensors + to->chain
                     ? &scan->holder[i]
                     : to;
        }
        if (to->tensors + to->chain >= tensors + chain) {
            return;
        }
    } else {
        scan->holders++;
    }
    *to = (struct holder){.object = object, .tensors = tensors, .chain = chain};
}

/* The newest first: what was imported is older than what the program made. */
static PyObject *object_at(const struct scan *scan, Py_ssize_t index)
{
    return PyList_GET_ITEM(scan->objects, PyList_GET_SIZE(scan->objects) - 1 - index);
}

static void find_tensors(struct scan *scan)
{
    const Py_ssize_t count = PyList_GET_SIZE(scan->objects);
    for (Py_ssize_t i = 0; i < count && !time_is_over(scan, i); i++) {
        PyObject *object = object_at(scan, i);
        /* Of subclasses nobody knows what a look at an attribute does. */
        if (Py_TYPE(object) != scan->tensor) {
            continue;
        }
        PyObject *graph = PyObject_GetAttrString(object, "grad_fn");
        if (graph && graph != Py_None) {
            (void)set_add(&scan->tensors, object, 1);
            const uint64_t chain = scan->tensors.count <= CHAINS ? chain_of(graph) : 0;
            if (chain >= LEAST) {
                holder_add(scan, object, 1, chain);
            }
        }
        PyErr_Clear();
        Py_XDECREF(graph);
    }
}

struct visit {
    const struct set *set;
    uint64_t found, weight;
};

static int visit_counts(PyObject *object, void *arg)
{
    struct visit *visit = arg;
    const uint32_t weight = set_weight(visit->set, object);
    visit->found += weight != 0;
    visit->weight += weight;
    return 0;
}

/* What of `set` the object refers to itself. */
static struct visit refers(PyObject *object, const struct set *set)
{
    struct visit visit = {.set = set};
    const traverseproc traverse = Py_TYPE(object)->tp_traverse;
    if (traverse) {
        (void)traverse(object, visit_counts, &visit);
    }
    return visit;
}

/* Whether things are kept in it: a container, or an instance of a class. */
static bool may_hold(const struct scan *scan, PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    return object != scan->objects && !PyType_Check(object) &&
           !PyType_IsSubtype(type, scan->tensor) &&
           (PyList_Check(object) || PyDict_Check(object) || PyTuple_Check(object) ||
            PyAnySet_Check(object) || (type->tp_flags & Py_TPFLAGS_HEAPTYPE) ||
            strcmp(type->tp_name, "collections.deque") == 0);
}

/* Containers with many tensors, or with many of what has some: history.append({"loss": loss}). */
static void find_containers(struct scan *scan)
{
    const Py_ssize_t count = PyList_GET_SIZE(scan->objects);
    for (Py_ssize_t i = 0; i < count && !time_is_over(scan, i); i++) {
        PyObject *object = object_at(scan, i);
        if (!may_hold(scan, object)) {
            continue;
        }
        const struct visit seen = refers(object, &scan->tensors);
        if (seen.found >= LEAST) {
            holder_add(scan, object, seen.found, 0);
        } else if (seen.found) {
            (void)set_add(&scan->carriers, object, (uint32_t)seen.found);
        }
    }
    for (Py_ssize_t i = 0;
         scan->carriers.count >= LEAST && i < count && !time_is_over(scan, i); i++) {
        PyObject *object = object_at(scan, i);
        const struct visit seen =
            may_hold(scan, object) ? refers(object, &scan->carriers) : (struct visit){0};
        if (seen.found >= LEAST) {
            holder_add(scan, object, seen.weight, 0);
        }
    }
}

/* --- names --- */

static bool is_named(const struct scan *scan)
{
    for (size_t i = 0; i < scan->holders; i++) {
        if (!scan->holder[i].name) {
            return false;
        }
    }
    return true;
}

static struct holder *holder_of(struct scan *scan, const PyObject *object)
{
    for (size_t i = 0; i < scan->holders; i++) {
        if (scan->holder[i].object == object && !scan->holder[i].name) {
            return &scan->holder[i];
        }
    }
    return NULL;
}

static void tell(struct holder *holder, PyObject *name, PyObject *file,
                 PyObject *function, uint32_t line)
{
    Py_XINCREF(name);
    Py_XSETREF(holder->name, name);
    Py_XINCREF(file);
    Py_XSETREF(holder->file, file);
    Py_XINCREF(function);
    Py_XSETREF(holder->function, function);
    holder->line = line;
}

static void look_at_variable(struct scan *scan, const PyCodeObject *code, PyObject *name,
                             const PyObject *value)
{
    struct holder *holder = value ? holder_of(scan, value) : NULL;
    if (holder) {
#if PY_VERSION_HEX >= 0x030b0000
        PyObject *function = code->co_qualname;
#else
        PyObject *function = code->co_name;
#endif
        tell(holder, name, code->co_filename, function, (uint32_t)code->co_firstlineno);
    }
}

/* The variables of one frame. */
static void look_into_frame(struct scan *scan, PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000
    PyObject *names = code->co_localsplusnames;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        look_at_variable(scan, code, PyTuple_GET_ITEM(names, i),
                         core_frame_variable(frame, i));
    }
#else
    static const char *const kinds[] = {"co_varnames", "co_cellvars", "co_freevars"};
    Py_ssize_t place = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        PyObject *names = PyObject_GetAttrString((PyObject *)code, kinds[k]);
        const Py_ssize_t count =
            names && PyTuple_Check(names) ? PyTuple_GET_SIZE(names) : 0;
        for (Py_ssize_t i = 0; i < count; i++, place++) {
            PyObject *name = PyTuple_GET_ITEM(names, i);
#if PY_VERSION_HEX >= 0x030c0000
            PyObject *value = PyFrame_GetVar(frame, name);
            look_at_variable(scan, code, name, value);
            Py_XDECREF(value);
            PyErr_Clear();
#else
            look_at_variable(scan, code, name, core_frame_variable(frame, place));
#endif
        }
        Py_XDECREF(names);
        PyErr_Clear();
    }
#endif
    Py_DECREF(code);
}

/* Of the calling thread, which is the one that trains. */
static void name_in_frames(struct scan *scan)
{
    PyFrameObject *frame = PyEval_GetFrame(); /* borrowed */
    Py_XINCREF(frame);
    for (unsigned left = FRAMES_MOST; frame && left > 0; left--) {
        look_into_frame(scan, frame);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
}

/* The file of a module; borrowed, or NULL. That of a script is taken out of its names when it has ended, its loader is not. */
static PyObject *file_of(PyObject *names)
{
    PyObject *file = PyDict_GetItemString(names, "__file__");
    PyObject *loader = file ? NULL : PyDict_GetItemString(names, "__loader__");
    PyObject *known = loader ? PyObject_GenericGetDict(loader, NULL) : NULL;
    if (known && PyDict_Check(known)) {
        file = PyDict_GetItemString(known, "path");
    }
    Py_XDECREF(known);
    PyErr_Clear();
    return file && PyUnicode_Check(file) ? file : NULL;
}

static void name_in_modules(struct scan *scan)
{
    PyObject *modules = PySys_GetObject("modules"); /* borrowed */
    PyObject *key, *module;
    Py_ssize_t at = 0;
    while (modules && PyDict_Check(modules) && PyDict_Next(modules, &at, &key, &module)) {
        /* Only true modules: others may do anything when they are asked. */
        PyObject *names = PyModule_CheckExact(module) ? PyModule_GetDict(module) : NULL;
        PyObject *name, *value;
        Py_ssize_t place = 0;
        while (names && !time_is_over(scan, place) &&
               PyDict_Next(names, &place, &name, &value)) {
            struct holder *holder = holder_of(scan, value);
            if (holder && PyUnicode_Check(name)) {
                tell(holder, name, file_of(names), NULL, 1);
            }
        }
    }
    PyErr_Clear();
}

/* The name under which a dict has an object; borrowed. */
static PyObject *key_of(PyObject *dict, const PyObject *object)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        if (value == object) {
            return PyUnicode_Check(key) ? key : NULL;
        }
    }
    return NULL;
}

/* An instance of a class of the program that has the object as an attribute. */
static void name_of_instance(struct holder *holder, PyObject *owner,
                             const PyObject *value)
{
    PyObject *dict = PyObject_GenericGetDict(owner, NULL);
    PyObject *key = dict && PyDict_Check(dict) ? key_of(dict, value) : NULL;
    if (key) {
        const char *type = strrchr(Py_TYPE(owner)->tp_name, '.');
        PyObject *name =
            PyUnicode_FromFormat("%s.%U", type ? type + 1 : Py_TYPE(owner)->tp_name, key);
        PyObject *modules = PySys_GetObject("modules"); /* borrowed, as what follows */
        PyObject *class_dict = Py_TYPE(owner)->tp_dict;
        PyObject *in = class_dict ? PyDict_GetItemString(class_dict, "__module__") : NULL;
        PyObject *module = in && modules ? PyDict_GetItem(modules, in) : NULL;
        PyObject *names =
            module && PyModule_CheckExact(module) ? PyModule_GetDict(module) : NULL;
        if (name) {
            tell(holder, name, names ? file_of(names) : NULL, NULL, 1);
        }
        Py_XDECREF(name);
    }
    PyErr_Clear();
    Py_XDECREF(dict);
}

/* Attributes of instances: instances that refer to what is looked for, or to a dict of theirs that does. */
static void name_in_instances(struct scan *scan)
{
    const Py_ssize_t count = PyList_GET_SIZE(scan->objects);
    struct set wanted = {0};
    for (size_t i = 0; i < scan->holders; i++) {
        if (!scan->holder[i].name) {
            (void)set_add(&wanted, scan->holder[i].object, (uint32_t)i + 1);
        }
    }
    struct set dicts = {0};
    for (int pass = 0; pass < 2 && wanted.count; pass++) {
        for (Py_ssize_t i = 0; i < count && !time_is_over(scan, i); i++) {
            PyObject *object = object_at(scan, i);
            const bool instance =
                (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) &&
                Py_TYPE(object)->tp_getattro == PyObject_GenericGetAttr &&
                may_hold(scan, object);
            const struct visit seen = instance || (pass == 0 && PyDict_CheckExact(object))
                                          ? refers(object, pass == 0 ? &wanted : &dicts)
                                          : (struct visit){0};
            if (seen.found != 1) {
                continue;
            }
            struct holder *holder = &scan->holder[seen.weight - 1];
            if (!instance) {
                (void)set_add(&dicts, object, (uint32_t)seen.weight);
            } else if (!holder->name) {
                name_of_instance(holder, object, holder->object);
            }
        }
    }
    set_free(&wanted);
    set_free(&dicts);
}

/* --- rows --- */

static uint32_t text_id(PyObject *text)
{
    Py_ssize_t length = 0;
    const char *bytes = text ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;
    PyErr_Clear();
    return bytes && length ? sw_name(bytes, (size_t)length) : 0;
}

static void write_rows(const struct scan *scan)
{
    for (size_t i = 0; i < scan->holders; i++) {
        const struct holder *it = &scan->holder[i];
        const char *kind = strrchr(Py_TYPE(it->object)->tp_name, '.');
        kind = kind ? kind + 1 : Py_TYPE(it->object)->tp_name;
        sw_row row = {.table = SW_TABLE_HOLDER,
                      .key = {text_id(it->name), text_id(it->file), it->line,
                              sw_name(kind, strlen(kind))},
                      .value = {it->tensors, it->chain, text_id(it->function), scan->cut,
                                (uint64_t)sw_step_number()}};
        (void)sw_row_put(0, &row);
    }
}

/* What is asked of tensors is not to go through modes of the program's; NULL where torch does not know that. */
static PyObject *modes_off(PyObject *torch)
{
    PyObject *inner = PyObject_GetAttrString(torch, "_C");
    PyObject *off =
        inner ? PyObject_CallMethod(inner, "DisableTorchFunction", NULL) : NULL;
    PyObject *entered = off ? PyObject_CallMethod(off, "__enter__", NULL) : NULL;
    if (!entered) {
        Py_CLEAR(off);
    }
    PyErr_Clear();
    Py_XDECREF(entered);
    Py_XDECREF(inner);
    return off;
}

static PyObject *list_objects(void)
{
    PyObject *collector = PyImport_ImportModule("gc");
    PyObject *objects =
        collector ? PyObject_CallMethod(collector, "get_objects", NULL) : NULL;
    Py_XDECREF(collector);
    if (objects && !PyList_Check(objects)) {
        Py_CLEAR(objects);
    }
    return objects;
}

static void scan_run(PyObject *torch, PyTypeObject *tensor)
{
    PyObject *off = modes_off(torch);
    struct scan scan = {.tensor = tensor,
                        .deadline = clock_ns(CLOCK_THREAD_CPUTIME_ID) + SCAN_NS,
                        .latest = clock_ns(CLOCK_MONOTONIC) + 10ull * SCAN_NS};
    scan.objects = off ? list_objects() : NULL;
    if (scan.objects) {
        watch.dear = time_is_over(&scan, 0);
        find_tensors(&scan);
        if (scan.tensors.count) {
            find_containers(&scan);
        }
        if (scan.holders) {
            name_in_frames(&scan);
            name_in_modules(&scan);
        }
        if (!is_named(&scan)) {
            name_in_instances(&scan);
        }
        write_rows(&scan);
    }
    for (size_t i = 0; i < scan.holders; i++) {
        tell(&scan.holder[i], NULL, NULL, NULL, 0);
    }
    set_free(&scan.tensors);
    set_free(&scan.carriers);
    Py_XDECREF(scan.objects);
    if (off) {
        Py_XDECREF(
            PyObject_CallMethod(off, "__exit__", "OOO", Py_None, Py_None, Py_None));
        Py_DECREF(off);
    }
    PyErr_Clear();
}

/* torch.Tensor, where torch is loaded; borrowed from the module. */
static PyTypeObject *tensor_type(PyObject **torch)
{
    PyObject *modules = PySys_GetObject("modules"); /* borrowed */
    *torch =
        modules && PyDict_Check(modules) ? PyDict_GetItemString(modules, "torch") : NULL;
    PyObject *names =
        *torch && PyModule_CheckExact(*torch) ? PyModule_GetDict(*torch) : NULL;
    PyObject *tensor = names ? PyDict_GetItemString(names, "Tensor") : NULL;
    return tensor && PyType_Check(tensor) ? (PyTypeObject *)tensor : NULL;
}

static void scan_safely(uint64_t resident)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *torch;
    PyTypeObject *tensor = tensor_type(&torch);
    if (tensor) {
        watch.running = true;
        watch.seen = resident;
        watch.scans++;
        scan_run(torch, tensor);
        watch.running = false;
    }
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
}

/* --- when --- */

/* Whether something is recorded; begins to watch another one. */
static bool recording_goes_on(void)
{
    const uint32_t recording = sw_recording_number();
    if (recording != watch.recording) {
        const double unit_ns = core_ticks_ns();
        memset(&watch, 0, sizeof watch);
        watch.recording = recording;
        watch.pause = (uint64_t)(unit_ns > 0 ? FIRST_NS / unit_ns : FIRST_NS);
        watch.due = core_ticks() + watch.pause;
        watch.base = watch.seen = recording ? sw_host_resident(0) : 0;
    }
    return recording != 0;
}

bool core_holders_due(void)
{
    return (core_ticks() >= watch.due || sw_recording_number() != watch.recording) &&
           core_in_main_interpreter();
}

void core_holders_look(bool ends)
{
    if (!core_in_main_interpreter() || watch.running || !recording_goes_on() ||
        watch.dear || watch.scans >= SCANS_MOST) {
        return;
    }
    const uint64_t now = core_ticks();
    if (!ends && now < watch.due) {
        return;
    }
    const bool first = watch.looks == 0;
    if (now >= watch.due) {
        watch.looks++;
        watch.pause *= 2;
        watch.due = now + watch.pause;
    }
    const uint64_t resident = sw_host_resident(0);
    if (resident == UINT64_MAX || watch.seen == UINT64_MAX) {
        return;
    }
    /* The first steps of any program make it grow: a training is not stopped for that, its end may be. */
    if (first && !ends) {
        watch.seen = resident > watch.seen ? resident : watch.seen;
    } else if (resident > (watch.scans == 0 && ends ? watch.base : watch.seen) + GROWN) {
        scan_safely(resident);
    }
}
