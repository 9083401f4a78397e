/* The statistics as Python sees them. What is wanted is copied with the lock held, and made into objects without. */
#include "profiler.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One row, in C. */
typedef struct one_row {
    profiler_section *section; /* borrowed; NULL: the paths beyond the last */
    uint32_t node;             /* of a path; 0: none */
    uint64_t order;
    uint64_t p50, p90, p95, p99;
    profiler_stats stats; /* without what it points to */
} one_row;

static void row_fill(one_row *out, const profiler_stats *stats)
{
    out->stats = *stats;
    out->p50 = profiler_stats_quantile(stats, 0.50);
    out->p90 = profiler_stats_quantile(stats, 0.90);
    out->p95 = profiler_stats_quantile(stats, 0.95);
    out->p99 = profiler_stats_quantile(stats, 0.99);
    out->stats.histogram = NULL;
}

static int row_compare(const void *left, const void *right)
{
    const one_row *a = left, *b = right;
    if (a->stats.total != b->stats.total) {
        return a->stats.total < b->stats.total ? 1 : -1;
    }
    if (a->order != b->order) {
        return a->order < b->order ? -1 : 1;
    }
    return a->node < b->node ? -1 : a->node > b->node;
}

/* --- As a dict -------------------------------------------------------------------- */

/* Takes the value over. 0 or -1. */
static int put(PyObject *dict, const char *key, PyObject *value)
{
    const int result = value ? PyDict_SetItemString(dict, key, value) : -1;
    Py_XDECREF(value);
    return result;
}

static PyObject *number(uint64_t value)
{
    return PyLong_FromUnsignedLongLong(value);
}

static PyObject *none(void)
{
    Py_INCREF(Py_None);
    return Py_None;
}

/* Takes the name over. NULL with an exception. */
static PyObject *row_dict(const one_row *row, PyObject *name)
{
    const profiler_stats *stats = &row->stats;
    PyObject *category = row->section ? row->section->category : Py_None;
    Py_INCREF(category); /* before anything that may run the collector */
    PyObject *dict = PyDict_New();
    if (!dict) {
        Py_XDECREF(name);
    }
    if (!dict || put(dict, "name", name) != 0) {
        Py_DECREF(category);
        goto fail;
    }
    const double variance = stats->calls ? stats->m2 / (double)stats->calls : 0;
    const bool looked = stats->looked > 0;
    if (put(dict, "category", category) != 0 ||
        put(dict, "calls", number(stats->calls)) != 0 ||
        put(dict, "recursive_calls", number(stats->recursive)) != 0 ||
        put(dict, "errors", number(stats->errors)) != 0 ||
        put(dict, "total_ns", number(stats->total)) != 0 ||
        put(dict, "self_ns", number(stats->self)) != 0 ||
        put(dict, "mean_ns", PyFloat_FromDouble(stats->mean)) != 0 ||
        put(dict, "min_ns", number(stats->min)) != 0 ||
        put(dict, "max_ns", number(stats->max)) != 0 ||
        put(dict, "std_ns", PyFloat_FromDouble(sqrt(variance))) != 0 ||
        put(dict, "p50_ns", number(row->p50)) != 0 ||
        put(dict, "p90_ns", number(row->p90)) != 0 ||
        put(dict, "p95_ns", number(row->p95)) != 0 ||
        put(dict, "p99_ns", number(row->p99)) != 0 ||
        put(dict, "last_ns", number(stats->last)) != 0 ||
        put(dict, "memory_bytes", looked ? PyLong_FromLongLong(stats->memory) : none()) !=
            0 ||
        put(dict, "peak_bytes", looked ? number(stats->peak) : none()) != 0 ||
        put(dict, "peak_rss_bytes", looked ? number(stats->peak_rss) : none()) != 0 ||
        put(dict, "peak_how",
            looked ? PyUnicode_FromString(stats->exact == stats->looked ? "exact"
                                                                        : "sampled")
                   : none()) != 0) {
        goto fail;
    }
    return dict;
fail:
    Py_XDECREF(dict);
    return NULL;
}

static PyObject *name_of(const one_row *row)
{
    if (!row->section) {
        return PyUnicode_FromString("(more)");
    }
    Py_INCREF(row->section->name);
    return row->section->name;
}

/* --- One per name ----------------------------------------------------------------- */

/* All sections as a list, in the order in which they were made. They live as long as the profiler. */
static PyObject *sections_list(profiler_object *self)
{
    return PyDict_Values(self->sections);
}

/* Rows of all sections that were called, sorted. The caller frees them. NULL with an exception. */
static one_row *rows_take(profiler_object *self, size_t *count)
{
    PyObject *list = sections_list(self);
    const Py_ssize_t most = list ? PyList_GET_SIZE(list) : 0;
    one_row *rows = list ? malloc(((size_t)most + 1) * sizeof *rows) : NULL;
    *count = 0;
    if (rows) {
        pthread_mutex_lock(&self->lock);
        for (Py_ssize_t i = 0; i < most; i++) {
            profiler_section *section = (profiler_section *)PyList_GET_ITEM(list, i);
            if (section->stats.calls) {
                one_row *out = &rows[(*count)++];
                *out = (one_row){.section = section, .order = section->order};
                row_fill(out, &section->stats);
            }
        }
        pthread_mutex_unlock(&self->lock);
        qsort(rows, *count, sizeof *rows, row_compare);
    } else if (list) {
        PyErr_NoMemory();
    }
    Py_XDECREF(list);
    return rows;
}

/* NULL with an exception. */
static PyObject *rows_list(const one_row *rows, size_t count)
{
    PyObject *result = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; result && i < count; i++) {
        PyObject *dict = row_dict(&rows[i], name_of(&rows[i]));
        if (!dict) {
            Py_CLEAR(result);
        } else {
            PyList_SET_ITEM(result, (Py_ssize_t)i, dict);
        }
    }
    return result;
}

static PyObject *rows_plain(profiler_object *self)
{
    size_t count;
    one_row *rows = rows_take(self, &count);
    PyObject *result = rows ? rows_list(rows, count) : NULL;
    free(rows);
    return result;
}

/* --- One per family --------------------------------------------------------------- */

/* Names by family: dict of lists of sections. */
static PyObject *families_of(PyObject *list)
{
    PyObject *families = PyDict_New();
    for (Py_ssize_t i = 0; families && i < PyList_GET_SIZE(list); i++) {
        PyObject *section = PyList_GET_ITEM(list, i);
        PyObject *own = ((profiler_section *)section)->name;
        PyObject *name = profiler_family(own, own);
        PyObject *empty = name ? PyList_New(0) : NULL;
        PyObject *members = empty ? PyDict_SetDefault(families, name, empty) : NULL;
        if (!members || PyList_Append(members, section) != 0) {
            Py_CLEAR(families);
        }
        Py_XDECREF(name);
        Py_XDECREF(empty);
    }
    return families;
}

/* A family of several that were called is one row; `*several` says so. False: none was. */
static bool family_fill(profiler_object *self, PyObject *members, one_row *out,
                        bool *several)
{
    profiler_stats sum = {0};
    size_t called = 0;
    *out = (one_row){0};
    pthread_mutex_lock(&self->lock);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(members); i++) {
        profiler_section *section = (profiler_section *)PyList_GET_ITEM(members, i);
        if (section->stats.calls) {
            profiler_stats_merge(&sum, &section->stats);
            if (called++ == 0) {
                out->section = section;
                out->order = section->order;
            }
        }
    }
    pthread_mutex_unlock(&self->lock);
    row_fill(out, &sum);
    profiler_stats_clear(&sum);
    *several = called > 1;
    return called > 0;
}

static PyObject *rows_families(profiler_object *self)
{
    PyObject *list = sections_list(self);
    PyObject *families = list ? families_of(list) : NULL;
    PyObject *result = NULL, *names = families ? PyDict_Keys(families) : NULL;
    const Py_ssize_t most = names ? PyList_GET_SIZE(names) : 0;
    one_row *rows = names ? malloc(((size_t)most + 1) * sizeof *rows) : NULL;
    size_t count = 0;
    if (!rows) {
        goto out;
    }
    for (Py_ssize_t i = 0; i < most; i++) {
        PyObject *name = PyList_GET_ITEM(names, i);
        bool several;
        if (family_fill(self, PyDict_GetItem(families, name), &rows[count], &several)) {
            /* Its place among the names, for what it is called; 0: the section's own name. */
            rows[count++].node = several ? (uint32_t)i + 1 : 0;
        }
    }
    qsort(rows, count, sizeof *rows, row_compare);
    result = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; result && i < count; i++) {
        PyObject *name = rows[i].node ? PyList_GET_ITEM(names, rows[i].node - 1)
                                      : rows[i].section->name;
        Py_INCREF(name);
        PyObject *dict = row_dict(&rows[i], name);
        if (!dict) {
            Py_CLEAR(result);
        } else {
            PyList_SET_ITEM(result, (Py_ssize_t)i, dict);
        }
    }
out:
    free(rows);
    Py_XDECREF(names);
    Py_XDECREF(families);
    Py_XDECREF(list);
    return result ? result : PyErr_Occurred() ? NULL : PyErr_NoMemory();
}

/* --- Inside of one section ---------------------------------------------------------- */

/* A path that goes through a section, with a copy of its statistics that it owns. */
typedef struct part {
    profiler_section *section;
    profiler_stats stats;
} part;

static bool node_is_under(const profiler_object *self, uint32_t node,
                          const profiler_section *under)
{
    while (node && self->nodes[node].section != under) {
        node = self->nodes[node].parent;
    }
    return node != 0;
}

static int part_compare(const void *left, const void *right)
{
    const uintptr_t a = (uintptr_t)((const part *)left)->section;
    const uintptr_t b = (uintptr_t)((const part *)right)->section;
    return (a > b) - (a < b);
}

/* The caller frees them, and clears their statistics. NULL: no memory. */
static part *parts_take(profiler_object *self, const profiler_section *under,
                        size_t *count)
{
    *count = 0;
    pthread_mutex_lock(&self->lock);
    part *parts = malloc((self->node_count + 1) * sizeof *parts);
    for (uint32_t i = 0; parts && i < self->node_count; i++) {
        const profiler_node *node = &self->nodes[i];
        if (node->stats.calls && node_is_under(self, i, under)) {
            part *out = &parts[(*count)++];
            *out = (part){.section = node->section};
            profiler_stats_merge(&out->stats, &node->stats);
        }
    }
    pthread_mutex_unlock(&self->lock);
    if (parts) {
        qsort(parts, *count, sizeof *parts, part_compare);
    }
    return parts;
}

/* What was called while the section was open, and itself, one row a name. */
static PyObject *rows_under(profiler_object *self, PyObject *name)
{
    profiler_section *under =
        (profiler_section *)PyDict_GetItemWithError(self->sections, name);
    if (!under) {
        return PyErr_Occurred() ? NULL : PyList_New(0);
    }
    size_t count, used = 0;
    part *parts = parts_take(self, under, &count);
    one_row *rows = malloc((count + 1) * sizeof *rows);
    PyObject *result = NULL;
    for (size_t i = 0; parts && rows && i < count;) {
        profiler_section *section = parts[i].section;
        profiler_stats sum = {0};
        for (; i < count && parts[i].section == section; i++) {
            profiler_stats_merge(&sum, &parts[i].stats);
        }
        one_row *out = &rows[used++];
        *out = (one_row){.section = section, .order = section->order};
        row_fill(out, &sum);
        profiler_stats_clear(&sum);
    }
    if (parts && rows) {
        qsort(rows, used, sizeof *rows, row_compare);
        result = rows_list(rows, used);
    } else {
        PyErr_NoMemory();
    }
    for (size_t i = 0; parts && i < count; i++) {
        profiler_stats_clear(&parts[i].stats);
    }
    free(parts);
    free(rows);
    return result;
}

PyObject *profiler_rows(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"families", "under", NULL};
    profiler_object *self = (profiler_object *)object;
    int families = 0;
    PyObject *under = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p$O:rows", keywords, &families,
                                     &under)) {
        return NULL;
    }
    if (under != Py_None && !PyUnicode_Check(under)) {
        PyErr_Format(PyExc_TypeError, "rows() under must be str, not %.100s",
                     Py_TYPE(under)->tp_name);
        return NULL;
    }
    if (under != Py_None && families) {
        PyErr_SetString(PyExc_TypeError, "rows() takes families or under, not both");
        return NULL;
    }
    if (under != Py_None) {
        return rows_under(self, under);
    }
    return families ? rows_families(self) : rows_plain(self);
}

/* --- One per path ----------------------------------------------------------------- */

/* Who called whom, as it was when the rows were taken. */
typedef struct call_tree {
    one_row *rows;
    size_t count;
    uint32_t *parents;
    profiler_section **sections;
} call_tree;

/* `under`: only paths that go through it; NULL: all. */
static bool tree_take(profiler_object *self, const profiler_section *under,
                      call_tree *out)
{
    pthread_mutex_lock(&self->lock);
    const uint32_t nodes = self->node_count;
    out->rows = malloc((nodes + 1) * sizeof *out->rows);
    out->parents = malloc((nodes + 1) * sizeof *out->parents);
    out->sections = malloc((nodes + 1) * sizeof(profiler_section *));
    const bool enough = out->rows && out->parents && out->sections;
    for (uint32_t i = 0; enough && i < nodes; i++) {
        const profiler_node *node = &self->nodes[i];
        out->parents[i] = node->parent;
        out->sections[i] = node->section;
        if (node->stats.calls && (!under || node_is_under(self, i, under))) {
            one_row *row = &out->rows[out->count++];
            *row = (one_row){.section = node->section, .node = i};
            row_fill(row, &node->stats);
        }
    }
    pthread_mutex_unlock(&self->lock);
    return enough;
}

/* The names of a path, outermost first. NULL with an exception. */
static PyObject *path_names(const call_tree *tree, const one_row *row)
{
    Py_ssize_t depth = 0;
    for (uint32_t i = row->node; i && tree->sections[i]; i = tree->parents[i]) {
        depth++;
    }
    PyObject *names = PyList_New(depth ? depth : 1);
    if (names && depth == 0) {
        PyList_SET_ITEM(names, 0, name_of(row));
    }
    for (uint32_t i = row->node; names && depth > 0; i = tree->parents[i]) {
        PyObject *name = tree->sections[i]->name;
        Py_INCREF(name);
        PyList_SET_ITEM(names, --depth, name);
    }
    return names;
}

PyObject *profiler_paths(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"under", NULL};
    profiler_object *self = (profiler_object *)object;
    PyObject *name = Py_None, *under = NULL;
    call_tree tree = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$O:paths", keywords, &name)) {
        return NULL;
    }
    if (name != Py_None) {
        under = PyDict_GetItemWithError(self->sections, name);
        if (!under) {
            return PyErr_Occurred() ? NULL : PyList_New(0);
        }
    }
    if (!tree_take(self, (profiler_section *)under, &tree)) {
        PyErr_NoMemory();
    }
    PyObject *result = PyErr_Occurred() ? NULL : PyList_New((Py_ssize_t)tree.count);
    if (result) {
        qsort(tree.rows, tree.count, sizeof *tree.rows, row_compare);
    }
    for (size_t i = 0; result && i < tree.count; i++) {
        PyObject *dict = row_dict(&tree.rows[i], name_of(&tree.rows[i]));
        if (!dict || put(dict, "path", path_names(&tree, &tree.rows[i])) != 0) {
            Py_XDECREF(dict);
            Py_CLEAR(result);
        } else {
            PyList_SET_ITEM(result, (Py_ssize_t)i, dict);
        }
    }
    free(tree.rows);
    free(tree.parents);
    free(tree.sections);
    return result;
}

/* --- One of them ------------------------------------------------------------------ */

/* The section of that name; NULL: there is none, or an exception is set. Borrowed. */
static profiler_section *section_find(PyObject *object, PyObject *name)
{
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "the name of a section is a str, not %.100s",
                     Py_TYPE(name)->tp_name);
        return NULL;
    }
    return (profiler_section *)PyDict_GetItemWithError(
        ((profiler_object *)object)->sections, name);
}

PyObject *profiler_row(PyObject *object, PyObject *name)
{
    profiler_object *self = (profiler_object *)object;
    profiler_section *section = section_find(object, name);
    if (!section) {
        return PyErr_Occurred() ? NULL : none();
    }
    one_row row = {.section = section};
    pthread_mutex_lock(&self->lock);
    row_fill(&row, &section->stats);
    pthread_mutex_unlock(&self->lock);
    return row.stats.calls ? row_dict(&row, name_of(&row)) : none();
}

PyObject *profiler_count(PyObject *object, PyObject *name)
{
    profiler_object *self = (profiler_object *)object;
    profiler_section *section = section_find(object, name);
    if (!section && PyErr_Occurred()) {
        return NULL;
    }
    pthread_mutex_lock(&self->lock);
    const uint64_t calls = section ? section->stats.calls : 0;
    pthread_mutex_unlock(&self->lock);
    return number(calls);
}

/* A copy of a ring, the oldest first; the caller frees it. NULL with an exception. */
static int64_t *ring_take(profiler_object *self, const profiler_ring *ring, size_t *count)
{
    pthread_mutex_lock(&self->lock);
    *count = ring->count;
    int64_t *items = malloc((*count + 1) * sizeof *items);
    for (size_t i = 0; items && i < *count; i++) {
        items[i] = profiler_ring_get(ring, i);
    }
    pthread_mutex_unlock(&self->lock);
    if (!items) {
        PyErr_NoMemory();
    }
    return items;
}

static PyObject *ring_list(profiler_object *self, const profiler_ring *ring, bool seconds)
{
    size_t count;
    int64_t *items = ring_take(self, ring, &count);
    PyObject *list = items ? PyList_New((Py_ssize_t)count) : NULL;
    for (size_t i = 0; list && i < count; i++) {
        PyObject *item = seconds ? PyFloat_FromDouble((double)items[i] / 1e9)
                                 : PyLong_FromLongLong(items[i]);
        if (!item) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
        }
    }
    free(items);
    return list;
}

PyObject *profiler_values(PyObject *object, PyObject *name)
{
    profiler_section *section = section_find(object, name);
    if (!section) {
        return PyErr_Occurred() ? NULL : PyList_New(0);
    }
    return ring_list((profiler_object *)object, &section->values, true);
}

PyObject *profiler_memory_values(PyObject *object, PyObject *name)
{
    profiler_section *section = section_find(object, name);
    if (!section) {
        return PyErr_Occurred() ? NULL : PyList_New(0);
    }
    return ring_list((profiler_object *)object, &section->memory, false);
}
