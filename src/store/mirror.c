#include "store/mirror.h"
#include "base/memory.h"
#include <string.h>

#define SW__BODY_MAX (64u * 1024u * 1024u)

int sw__mirror_init(struct sw__mirror *mirror, struct sw__hot *hot, struct sw__home *home)
{
    memset(mirror, 0, sizeof(*mirror));
    mirror->hot = hot;
    mirror->home = home;
    pthread_mutex_init(&mirror->lock, NULL);
    return 0;
}

void sw__mirror_free(struct sw__mirror *mirror)
{
    sw__free(mirror->entries);
    sw__free(mirror->buffer);
    memset(mirror, 0, sizeof(*mirror));
}

struct sw__fmt_block *sw__mirror_take(struct sw__mirror *mirror, enum sw__fmt_kind kind,
                                      uint32_t size)
{
    struct sw__fmt_block *block = NULL;
    pthread_mutex_lock(&mirror->lock);
    if (mirror->count == mirror->capacity) {
        size_t capacity = mirror->capacity ? mirror->capacity * 2 : 64;
        struct sw__mirrored *entries =
            sw__realloc(mirror->entries, capacity, sizeof(*entries));
        if (!entries) {
            goto out;
        }
        mirror->entries = entries;
        mirror->capacity = capacity;
    }
    block = sw__hot_take(mirror->hot, kind, size);
    if (block) {
        mirror->entries[mirror->count++] = (struct sw__mirrored){.block = block};
    }
out:
    pthread_mutex_unlock(&mirror->lock);
    return block;
}

/* What the threads of a THREADS block lost. */
static void sw__mirror_losses(const void *slots, uint32_t used, uint64_t *dropped,
                              uint64_t *overwritten)
{
    const struct sw__fmt_thread *slot = slots;
    *dropped = 0;
    *overwritten = 0;
    for (size_t i = 0; (i + 1) * sizeof(*slot) <= used; i++) {
        *dropped += atomic_load_explicit(&slot[i].dropped, memory_order_relaxed);
        *overwritten += atomic_load_explicit(&slot[i].overwritten, memory_order_relaxed);
    }
}

void sw__mirror_unsaved(struct sw__mirror *mirror, uint64_t *dropped,
                        uint64_t *overwritten)
{
    *dropped = 0;
    *overwritten = 0;
    pthread_mutex_lock(&mirror->lock);
    for (size_t i = 0; i < mirror->count; i++) {
        const struct sw__mirrored *entry = &mirror->entries[i];
        if (entry->block->kind == SW__BLOCK_THREADS) {
            uint64_t now_dropped, now_overwritten;
            sw__mirror_losses(
                entry->block + 1,
                atomic_load_explicit(&entry->block->used, memory_order_acquire),
                &now_dropped, &now_overwritten);
            *dropped += now_dropped - entry->dropped;
            *overwritten += now_overwritten - entry->overwritten;
        }
    }
    pthread_mutex_unlock(&mirror->lock);
}

static uint64_t sw__mirror_hash(const uint64_t *words, size_t count)
{
    uint64_t hash = 0x9e3779b97f4a7c15u ^ count;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ words[i]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash;
}

/* Copies one block into the buffer and from there to the home file. */
static int sw__mirror_one(struct sw__mirror *mirror, struct sw__mirrored *entry)
{
    struct sw__fmt_block *block = entry->block;
    uint32_t used = atomic_load_explicit(&block->used, memory_order_acquire);
    if (used == 0) {
        return 0; /* Not filled in yet. */
    }
    size_t room = block->size - sizeof(*block);
    used = used > room ? (uint32_t)room : used;
    size_t length = ((size_t)used + 7) / 8 * 8;
    if (length > SW__BODY_MAX) {
        return SW_ELIMIT;
    }
    if (mirror->buffer_size < length) {
        uint8_t *buffer = sw__realloc(mirror->buffer, length, 1);
        if (!buffer) {
            return SW_ENOMEM;
        }
        mirror->buffer = buffer;
        mirror->buffer_size = length;
    }
    sw__copy_shared(mirror->buffer, block + 1, length);
    uint64_t hash =
        sw__mirror_hash((const uint64_t *)(const void *)mirror->buffer, length / 8) ^
        used;
    if (entry->slot && hash == entry->hash && entry->cuts == mirror->home->cuts) {
        return 0;
    }
    struct sw__fmt_block header;
    sw__copy_shared(&header, block, sizeof(header));
    header.revision = entry->slot ? block->revision + 1 : 1;
    int result =
        sw__home_put(mirror->home, &header, mirror->buffer, used, &entry->slot, false);
    if (!result) {
        entry->hash = hash;
        entry->cuts = mirror->home->cuts;
        if (header.kind == SW__BLOCK_THREADS) {
            sw__mirror_losses(mirror->buffer, used, &entry->dropped, &entry->overwritten);
        }
        __atomic_store_n(&block->revision, header.revision, __ATOMIC_RELAXED);
    }
    return result;
}

int sw__mirror_copy(struct sw__mirror *mirror, bool names_only)
{
    int first = 0;
    for (size_t i = 0;; i++) {
        struct sw__mirrored entry;
        pthread_mutex_lock(&mirror->lock);
        bool more = i < mirror->count;
        if (more) {
            entry = mirror->entries[i];
        }
        pthread_mutex_unlock(&mirror->lock);
        if (!more) {
            return first;
        }
        if (names_only && entry.block->kind != SW__BLOCK_DEFS) {
            continue;
        }
        int result = sw__mirror_one(mirror, &entry);
        first = first ? first : result;
        pthread_mutex_lock(&mirror->lock);
        mirror->entries[i] = entry;
        pthread_mutex_unlock(&mirror->lock);
    }
}
