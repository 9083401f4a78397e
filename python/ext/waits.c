/* Where the program waits for a device, and copies to and from it: totals by call and place, and a record each.
 *
 * A place is a line of the user's own code. Programs wait at a handful of places, so the table is small and found by the
 * addresses of its names, which it keeps alive. */
#include "waits.h"
#include "user_code.h"
#include <pthread.h>
#include <string.h>

enum { PLACES = 1024, MOST_PLACES = 768 };

typedef struct place {
    PyObject *call; /* NULL: the entry is free */
    PyObject *file; /* NULL: not the user's code, or one place too many */
    int line;
    enum sw_wait_kind kind;
    uint64_t handle;
    sw_row row;
} place;

static sw_section *gate;
/* One table for the process: with several interpreters, or without the GIL, somebody else may be in it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static place places[PLACES];
static unsigned places_used;
static uint32_t recording;

static uint32_t name_of(PyObject *text)
{
    Py_ssize_t length = 0;
    const char *data = text ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;
    if (!data) {
        PyErr_Clear();
        return 0;
    }
    return sw_name(data, (size_t)length);
}

static size_t hash_of(const place *key)
{
    uint64_t hash = (uint64_t)(uintptr_t)key->call >> 4;
    hash = (hash ^ ((uint64_t)(uintptr_t)key->file >> 4)) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ (uint64_t)(uint32_t)key->line ^ ((uint64_t)key->kind << 32)) *
           0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 40);
}

static bool same(const place *one, const place *other)
{
    return one->call == other->call && one->file == other->file &&
           one->line == other->line && one->kind == other->kind;
}

/* The entry of a place; a new one takes references. */
static place *place_get(const place *key)
{
    size_t at = hash_of(key) % PLACES;
    while (places[at].call && !same(&places[at], key)) {
        at = (at + 1) % PLACES;
    }
    place *found = &places[at];
    if (!found->call) {
        *found = *key;
        Py_INCREF(found->call);
        Py_XINCREF(found->file);
        found->row = (sw_row){.table = SW_TABLE_WAIT};
        found->row.key[0] = name_of(found->call);
        found->row.key[1] = name_of(found->file);
        found->row.key[2] = (uint32_t)found->line;
        found->row.key[3] = (uint32_t)found->kind;
        places_used++;
    }
    return found;
}

/* Names and rows of an earlier recording mean nothing in this one. */
static void places_renew(void)
{
    const uint32_t now = sw_recording_number();
    if (now != recording) {
        for (size_t i = 0; i < PLACES; i++) {
            Py_CLEAR(places[i].call);
            Py_CLEAR(places[i].file);
        }
        memset(places, 0, sizeof places);
        places_used = 0;
        recording = now;
    }
}

/* Adds a wait to its place. Returns the names of file and call by the row's keys. */
static sw_row wait_count(const core_wait *wait, PyObject *file, int line)
{
    place key = {.call = wait->call, .file = file, .line = line, .kind = wait->kind};
    pthread_mutex_lock(&lock);
    places_renew();
    if (places_used >= MOST_PLACES) {
        key.file = NULL;
        key.line = 0;
    }
    place *found = place_get(&key);
    sw_row *row = &found->row;
    const uint64_t took = wait->end - wait->begin;
    row->value[0]++;
    row->value[1] += took;
    row->value[2] += wait->bytes;
    row->value[3] = took > row->value[3] ? took : row->value[3];
    row->value[4] += wait->pinned;
    row->flags |= wait->unblocked ? SW_ROW_UNBLOCKED : 0;
    found->handle = sw_row_put(found->handle, row);
    const sw_row copy = *row;
    pthread_mutex_unlock(&lock);
    return copy;
}

void core_waited(const core_wait *wait)
{
    core_user_site site = {0};
    const bool known = core_user_site_find(&site);
    const sw_row row =
        wait_count(wait, known ? site.code->co_filename : NULL, known ? site.line : 0);
    if (known) {
        Py_DECREF(site.code);
    }
    if (wait->kind == SW_WAIT_SYNC) {
        const sw_record_sync record = {.head = {.kind = SW_RECORD_SYNC,
                                                .units = sizeof record / SW_RECORD_UNIT,
                                                .flags = SW_RECORD_INTERVAL,
                                                .id = row.key[0],
                                                .ticks = wait->begin},
                                       .end = wait->end,
                                       .file = row.key[1],
                                       .line = row.key[2]};
        sw_record_put(&record.head);
        return;
    }
    const sw_record_xfer record = {.head = {.kind = SW_RECORD_XFER,
                                            .units = sizeof record / SW_RECORD_UNIT,
                                            .flags = SW_RECORD_INTERVAL,
                                            .id = row.key[0],
                                            .ticks = wait->begin},
                                   .end = wait->end,
                                   .bytes = wait->bytes,
                                   .direction = wait->kind == SW_WAIT_H2D ? 1 : 2,
                                   .pinned = wait->pinned,
                                   .file = row.key[1],
                                   .line = row.key[2]};
    sw_record_put(&record.head);
}

static PyObject *waited(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *call;
    int kind;
    unsigned long long begin, bytes = 0;
    if (!PyArg_ParseTuple(args, "UiK|K:waited", &call, &kind, &begin, &bytes)) {
        return NULL;
    }
    if (kind < SW_WAIT_SYNC || kind > SW_WAIT_D2H) {
        PyErr_Format(PyExc_ValueError, "waited(): there is no kind %d of waits", kind);
        return NULL;
    }
    if (SW_GATE(gate)) {
        core_waited(&(core_wait){.call = call,
                                 .kind = (enum sw_wait_kind)kind,
                                 .begin = begin,
                                 .end = sw_now(),
                                 .bytes = bytes});
    }
    Py_RETURN_NONE;
}

static PyMethodDef waits_methods[] = {
    {"waited", waited, METH_VARARGS,
     PyDoc_STR(
         "waited(call, kind, begin, bytes=0, /)\n--\n\n"
         "The program waited for a device since begin, at its innermost line; kind: 1 "
         "for a value,\n2 for a copy to the device, 3 for one from it. The call is a "
         "constant of the caller's.")},
    {NULL, NULL, 0, NULL},
};

int core_waits_add(PyObject *module)
{
    gate = sw_section_get_n("", 0, SW_PHASE_INHERIT);
    return PyModule_AddFunctions(module, waits_methods);
}
