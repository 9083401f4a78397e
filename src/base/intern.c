/* The intern table.
 *
 * Two structures lead to an entry: the slots (open addressing, linear probing, at most
 * half full) from its bytes, the directory from its id. Both hold atomic pointers that
 * are stored once, with release, after the entry is complete; so readers need no lock and
 * see whole entries or none. When the slots fill up, a table twice as large is built and
 * its address published; the old one stays until the end, for a reader may still be in
 * it. That reader can miss an entry inserted meanwhile, which is the same as having asked
 * a moment earlier: sw__intern_put looks again under the lock. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/intern.h"
#include "base/memory.h"
#include "base/os.h"

#define FIRST_SLOTS 256u

struct entry {
    uint64_t hash;
    size_t length;
    uint32_t id;
    char text[];
};

typedef _Atomic(struct entry *) entry_ref;

struct slots {
    struct slots *older;
    size_t mask; /* number of slots - 1, a power of two less one */
    entry_ref slot[];
};

/* Directory block k holds 64·2^k ids, so 27 blocks hold all of 32 bits and none ever
 * moves. */
#define BLOCK_BITS 6
#define BLOCKS 27

struct sw__intern {
    _Atomic(struct slots *) slots;
    _Atomic(entry_ref *) blocks[BLOCKS];
    _Atomic uint32_t count;
    uint32_t limit;
    uint64_t seed;
    sw__arena *arena;     /* under the lock */
    pthread_mutex_t lock; /* serialises insertions */
};

static struct slots *slots_create(size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(size, sizeof(entry_ref), &bytes) ||
        __builtin_add_overflow(bytes, sizeof(struct slots), &bytes)) {
        return NULL;
    }
    struct slots *slots = sw__alloc_zero(1, bytes);
    if (slots) {
        slots->mask = size - 1;
    }
    return slots;
}

sw__intern *sw__intern_create(uint32_t limit)
{
    sw__intern *table = sw__alloc_zero(1, sizeof *table);
    if (!table) {
        return NULL;
    }
    struct slots *slots = slots_create(FIRST_SLOTS);
    table->arena = sw__arena_create(0);
    if (!slots || !table->arena || pthread_mutex_init(&table->lock, NULL) != 0) {
        sw__free(slots);
        sw__arena_free(table->arena);
        sw__free(table);
        return NULL;
    }
    uint8_t random[16];
    sw__os_random(random);
    memcpy(&table->seed, random, sizeof table->seed);
    table->limit = limit;
    atomic_init(&table->slots, slots);
    return table;
}

void sw__intern_free(sw__intern *table)
{
    if (!table) {
        return;
    }
    struct slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    while (slots) {
        struct slots *older = slots->older;
        sw__free(slots);
        slots = older;
    }
    for (size_t k = 0; k < BLOCKS; k++) {
        sw__free(atomic_load_explicit(&table->blocks[k], memory_order_relaxed));
    }
    sw__arena_free(table->arena);
    pthread_mutex_destroy(&table->lock);
    sw__free(table);
}

static const struct entry *find_hashed(const sw__intern *table, const void *bytes,
                                       size_t length, uint64_t hash)
{
    const struct slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);
    for (size_t i = (size_t)hash & slots->mask;; i = (i + 1) & slots->mask) {
        const struct entry *entry =
            atomic_load_explicit(&slots->slot[i], memory_order_acquire);
        if (!entry) {
            return NULL; /* at most half of the slots are taken, so the loop ends */
        }
        if (entry->hash == hash && entry->length == length &&
            (length == 0 || memcmp(entry->text, bytes, length) == 0)) {
            return entry;
        }
    }
}

static void place(struct slots *slots, struct entry *entry)
{
    size_t i = (size_t)entry->hash & slots->mask;
    while (atomic_load_explicit(&slots->slot[i], memory_order_relaxed)) {
        i = (i + 1) & slots->mask;
    }
    atomic_store_explicit(&slots->slot[i], entry, memory_order_release);
}

/* Makes room in the slots for one entry more. */
static int reserve_slot(sw__intern *table, uint32_t count)
{
    struct slots *old = atomic_load_explicit(&table->slots, memory_order_relaxed);
    size_t size = old->mask + 1;
    if ((size_t)count + 1 <= size / 2) {
        return 0;
    }
    struct slots *grown = slots_create(size * 2);
    if (!grown) {
        return -1;
    }
    for (size_t i = 0; i < size; i++) {
        struct entry *entry = atomic_load_explicit(&old->slot[i], memory_order_relaxed);
        if (entry) {
            place(grown, entry);
        }
    }
    grown->older = old;
    atomic_store_explicit(&table->slots, grown, memory_order_release);
    return 0;
}

/* Where the directory keeps an id (from 1): its block, and the index within that. */
static unsigned block_of(uint32_t id, size_t *index)
{
    uint64_t shifted = (uint64_t)id - 1 + (1u << BLOCK_BITS);
    unsigned top = 63u - (unsigned)__builtin_clzll(shifted);
    *index = (size_t)(shifted - ((uint64_t)1 << top));
    return top - BLOCK_BITS;
}

/* The directory's place for an id, or NULL where there is none yet. */
static entry_ref *directory_at(const sw__intern *table, uint32_t id)
{
    size_t index;
    unsigned k = block_of(id, &index);
    entry_ref *block = atomic_load_explicit(&table->blocks[k], memory_order_acquire);
    return block ? &block[index] : NULL;
}

static entry_ref *directory_reserve(sw__intern *table, uint32_t id)
{
    entry_ref *ref = directory_at(table, id);
    if (ref) {
        return ref;
    }
    size_t index;
    unsigned k = block_of(id, &index);
    entry_ref *block = sw__alloc_zero((size_t)1 << (k + BLOCK_BITS), sizeof *block);
    if (!block) {
        return NULL;
    }
    atomic_store_explicit(&table->blocks[k], block, memory_order_release);
    return &block[index];
}

/* Inserts under the lock. The order of the three stores at the end is what
 * sw__intern_after_fork repairs by. */
static uint32_t insert(sw__intern *table, const void *bytes, size_t length, uint64_t hash)
{
    uint32_t count = atomic_load_explicit(&table->count, memory_order_relaxed);
    if (count >= table->limit || length > SIZE_MAX / 2) {
        return 0;
    }
    uint32_t id = count + 1;
    entry_ref *ref = directory_reserve(table, id);
    if (!ref || reserve_slot(table, count) != 0) {
        return 0;
    }
    struct entry *entry =
        sw__arena_take(table->arena, sizeof *entry + length + 1, _Alignof(struct entry));
    if (!entry) {
        return 0;
    }
    entry->hash = hash;
    entry->length = length;
    entry->id = id;
    if (length) {
        memcpy(entry->text, bytes, length);
    }
    entry->text[length] = '\0';
    atomic_store_explicit(ref, entry, memory_order_release);
    place(atomic_load_explicit(&table->slots, memory_order_relaxed), entry);
    atomic_store_explicit(&table->count, id, memory_order_release);
    return id;
}

uint32_t sw__intern_find(const sw__intern *table, const void *bytes, size_t length)
{
    const struct entry *entry =
        find_hashed(table, bytes, length, sw__hash_seeded(bytes, length, table->seed));
    return entry ? entry->id : 0;
}

uint32_t sw__intern_put(sw__intern *table, const void *bytes, size_t length, int *fresh)
{
    uint64_t hash = sw__hash_seeded(bytes, length, table->seed);
    uint32_t id = 0;
    int inserted = 0;
    const struct entry *entry = find_hashed(table, bytes, length, hash);
    if (!entry) {
        pthread_mutex_lock(&table->lock);
        entry = find_hashed(table, bytes, length, hash);
        if (!entry) {
            id = insert(table, bytes, length, hash);
            inserted = id != 0;
        }
        pthread_mutex_unlock(&table->lock);
    }
    if (fresh) {
        *fresh = inserted;
    }
    return entry ? entry->id : id;
}

const char *sw__intern_text(const sw__intern *table, uint32_t id, size_t *length)
{
    entry_ref *ref = id ? directory_at(table, id) : NULL;
    const struct entry *entry =
        ref ? atomic_load_explicit(ref, memory_order_acquire) : NULL;
    if (length) {
        *length = entry ? entry->length : 0;
    }
    return entry ? entry->text : NULL;
}

uint32_t sw__intern_count(const sw__intern *table)
{
    return atomic_load_explicit(&table->count, memory_order_acquire);
}

void sw__intern_after_fork(sw__intern *table)
{
    /* The owner of the lock, if any, does not exist in this process: a new mutex is
     * written over it, for unlocking another thread's is not allowed. */
    pthread_mutex_init(&table->lock, NULL);

    /* An insertion that the fork interrupted is finished: its entry is in the directory,
     * perhaps in the slots, and not counted. */
    uint32_t count = atomic_load_explicit(&table->count, memory_order_relaxed);
    entry_ref *ref = count < table->limit ? directory_at(table, count + 1) : NULL;
    struct entry *entry = ref ? atomic_load_explicit(ref, memory_order_acquire) : NULL;
    if (entry) {
        if (!find_hashed(table, entry->text, entry->length, entry->hash)) {
            place(atomic_load_explicit(&table->slots, memory_order_relaxed), entry);
        }
        atomic_store_explicit(&table->count, count + 1, memory_order_release);
    }
}
