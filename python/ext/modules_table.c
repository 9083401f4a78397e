/* What is known about an object, found by its address.
 *
 * Open addressing; an entry holds a weak reference, so that an object that is freed and another that takes its address
 * are not confused: such an entry counts as absent, and gives way. Nothing is removed but when the table is made anew. */
#include "modules.h"
#include <string.h>

enum { LEAST = 256, MOST = 1 << 17 };

static module_entry *entries;
static size_t room; /* a power of two; 0: there is no table */
static size_t used; /* dead ones among them */

static size_t place_of(const PyObject *object, size_t size)
{
    const uint64_t hash = (uint64_t)(uintptr_t)object * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 32) & (size - 1);
}

static bool entry_is(const module_entry *entry, const PyObject *object)
{
#if PY_VERSION_HEX >= 0x030d0000
    PyObject *target = NULL;
    if (PyWeakref_GetRef(entry->weak, &target) < 0) {
        PyErr_Clear();
    }
    Py_XDECREF(target); /* The caller has another one, if it is the object. */
    return target == object;
#else
    return PyWeakref_GET_OBJECT(entry->weak) == object;
#endif
}

static void entry_clear(module_entry *entry)
{
    Py_CLEAR(entry->weak);
    Py_CLEAR(entry->inner);
    Py_CLEAR(entry->outer);
    Py_CLEAR(entry->validates);
    memset(entry, 0, sizeof *entry);
}

/* Where the object is, or would be. */
static module_entry *entry_at(module_entry *table, size_t size, const PyObject *object)
{
    size_t i = place_of(object, size);
    while (table[i].object && table[i].object != object) {
        i = (i + 1) & (size - 1);
    }
    return &table[i];
}

module_entry *module_find(const PyObject *object)
{
    if (room == 0) {
        return NULL;
    }
    module_entry *entry = entry_at(entries, room, object);
    return entry->object && entry_is(entry, object) ? entry : NULL;
}

static bool entry_lives(const module_entry *entry)
{
    return entry->object && entry_is(entry, entry->object);
}

/* Makes the table anew without the dead, twice as large if that does not make it half empty. */
static int table_renew(void)
{
    size_t live = 0;
    for (size_t i = 0; i < room; i++) {
        live += entry_lives(&entries[i]);
    }
    size_t size = room ? room : LEAST;
    while (live * 2 >= size) {
        size *= 2;
    }
    module_entry *table = size <= MOST ? PyMem_RawCalloc(size, sizeof *table) : NULL;
    if (!table) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < room; i++) {
        if (entry_lives(&entries[i])) {
            *entry_at(table, size, entries[i].object) = entries[i];
        } else {
            entry_clear(&entries[i]);
        }
    }
    PyMem_RawFree(entries);
    entries = table;
    room = size;
    used = live;
    return 0;
}

module_entry *module_entry_of(PyObject *object)
{
    if (used * 3 >= room * 2 && table_renew() != 0) {
        return NULL;
    }
    module_entry *entry = entry_at(entries, room, object);
    if (entry->object && entry_is(entry, object)) {
        return entry;
    }
    PyObject *weak = PyWeakref_NewRef(object, NULL);
    if (!weak) {
        return NULL;
    }
    used += !entry->object;
    entry_clear(entry);
    entry->object = object;
    entry->weak = weak;
    return entry;
}

void module_forget(void)
{
    for (size_t i = 0; i < room; i++) {
        entry_clear(&entries[i]);
    }
    used = 0;
}

Py_ssize_t module_count(void)
{
    Py_ssize_t live = 0;
    for (size_t i = 0; i < room; i++) {
        live += entry_lives(&entries[i]);
    }
    return live;
}
