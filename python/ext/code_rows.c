/* Functions by the numbers of their names in the trace: a hash table without texts, for the recorder keeps those. */
#include "code_rows.h"
#include "core.h"
#include <pthread.h>
#include <stdlib.h>
#include <stepwatch/stepwatch.h>

/* A row that was made: the key fields of its CODE row. */
struct entry {
    uint32_t key[4];
    uint32_t index;
    uint16_t flags;
    uint16_t used;
};

/* Open addressing; room is a power of two or 0; at most 3/4 of it is used. All entries are of recording `number`. The
 * lock is taken before those of the recorder, never after one. */
static struct {
    pthread_mutex_t lock;
    struct entry *entries;
    size_t room, used;
    uint32_t number;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A child has its own recording. The table may be in the middle of a change made by a thread that is not here, so it
 * is left where it is. */
static void forked_child(void)
{
    pthread_mutex_init(&table.lock, NULL);
    table.entries = NULL;
    table.room = table.used = 0;
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forked_child);
}

static size_t hash_key(const uint32_t key[4], unsigned flags)
{
    uint64_t hash = flags;
    for (int i = 0; i < 4; i++) {
        hash = (hash ^ key[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return (size_t)hash;
}

/* Where the key is, or where it belongs. The table has a free place. */
static struct entry *find(struct entry *entries, size_t room, const uint32_t key[4],
                          unsigned flags)
{
    for (size_t at = hash_key(key, flags);; at++) {
        struct entry *entry = &entries[at & (room - 1)];
        if (!entry->used ||
            (entry->flags == flags && memcmp(entry->key, key, sizeof entry->key) == 0)) {
            return entry;
        }
    }
}

static int grow(void)
{
    const size_t room = table.room ? table.room * 2 : 256;
    struct entry *entries = calloc(room, sizeof *entries);
    if (!entries) {
        return -1;
    }
    for (size_t i = 0; i < table.room; i++) {
        const struct entry *old = &table.entries[i];
        if (old->used) {
            *find(entries, room, old->key, old->flags) = *old;
        }
    }
    free(table.entries);
    table.entries = entries;
    table.room = room;
    return 0;
}

/* The lock is held. */
static uint32_t find_or_make(const uint32_t key[4], unsigned flags)
{
    if (table.used * 4 >= table.room * 3 && grow() != 0) {
        return CORE_NO_CODE;
    }
    struct entry *entry = find(table.entries, table.room, key, flags);
    if (entry->used) {
        return entry->index;
    }
    sw_row row = {.table = SW_TABLE_CODE, .flags = (uint16_t)flags};
    memcpy(row.key, key, sizeof row.key);
    if (sw_row_put(0, &row) == 0) {
        return CORE_NO_CODE;
    }
    *entry = (struct entry){.index = row.index, .flags = (uint16_t)flags, .used = 1};
    memcpy(entry->key, key, sizeof entry->key);
    table.used++;
    return row.index;
}

uint32_t core_code_row(const char *file, size_t file_length, const char *qualname,
                       size_t qualname_length, const char *name, size_t name_length,
                       uint32_t first_line, unsigned flags)
{
    pthread_once(&once, watch_forks);
    /* The first name makes a forked child open its own recording, so it comes before the number. */
    uint32_t key[4] = {sw_name(file, file_length), 0, first_line, 0};
    const uint32_t number = sw_recording_number();
    key[1] = sw_name(qualname, qualname_length);
    key[3] = sw_name(name, name_length);
    if (number == 0 || key[0] == 0 || key[1] == 0 || key[3] == 0) {
        return CORE_NO_CODE;
    }
    pthread_mutex_lock(&table.lock);
    if (table.number != number) {
        free(table.entries);
        table.entries = NULL;
        table.room = table.used = 0;
        table.number = number;
    }
    const uint32_t index = find_or_make(key, flags);
    pthread_mutex_unlock(&table.lock);
    return sw_recording_number() == number ? index : CORE_NO_CODE;
}

uint32_t core_code_row_of(void *code_object)
{
    PyCodeObject *const code = code_object;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
#if PY_VERSION_HEX >= 0x030b0000
    PyObject *const qualname_text = code->co_qualname;
#else
    PyObject *const qualname_text = code->co_name;
#endif
    core_text file = {0}, qualname = {0}, name = {0};
    uint32_t index = CORE_NO_CODE;
    if (core_text_get(code->co_filename, "file", &file) == 0 &&
        core_text_get(qualname_text, "name", &qualname) == 0 &&
        core_text_get(code->co_name, "name", &name) == 0) {
        index = core_code_row(file.data, (size_t)file.length, qualname.data,
                              (size_t)qualname.length, name.data, (size_t)name.length,
                              (uint32_t)code->co_firstlineno, 0);
    }
    core_text_release(&file);
    core_text_release(&qualname);
    core_text_release(&name);
    PyErr_Restore(type, value, traceback);
    return index;
}
