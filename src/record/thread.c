/* Threads: attaching on the first record, chunks, and what is left when a thread ends. */
#include "base/memory.h"
#include "base/os.h"
#include "record/recorder.h"
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
void __lsan_register_root_region(const void *pages, size_t size);
#endif

/* Neighbouring lanes belong to different threads: no two share a pair of cache lines. */
#define SW__LANE_SIZE ((sizeof(struct sw__lane) + 127) / 128 * 128)
#define SW__SLAB (64u * 1024u)

/* Always busy, so that the hot path needs no test for threads without a lane. */
struct sw__lane sw__no_lane;
#define SW__8(x) x, x, x, x, x, x, x, x
#define SW__64(x)                                                                        \
    SW__8(x), SW__8(x), SW__8(x), SW__8(x), SW__8(x), SW__8(x), SW__8(x), SW__8(x)
struct sw__thread sw__detached = {.lane = {SW__64(&sw__no_lane)}};

void sw__become(struct sw__thread *thread)
{
    sw__self = thread;
    sw__self_lane = thread->lane[0];
    sw__sections_changed();
}

static pthread_key_t sw__key;
static pthread_once_t sw__key_once = PTHREAD_ONCE_INIT;
static bool sw__key_made;

/* Lanes come from pages that are wiped in a child. The list of free ones is under session.lock. */
static struct sw__lane *sw__free_lanes;
static uint8_t *sw__slab;
static size_t sw__slab_left;
/* One word in such a page: 1 in the process that made it, 0 in any child. */
static _Atomic uint32_t *_Atomic sw__cookie;

bool sw__wiped(void)
{
    _Atomic uint32_t *cookie = atomic_load_explicit(&sw__cookie, memory_order_acquire);
    return cookie && atomic_load_explicit(cookie, memory_order_relaxed) == 0;
}

static bool sw__slab_new(void)
{
    void *pages =
        mmap(NULL, SW__SLAB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        return false;
    }
    (void)madvise(pages, SW__SLAB, MADV_WIPEONFORK);
#if defined(__SANITIZE_ADDRESS__)
    /* Tables that only a lane points to are no leaks. */
    __lsan_register_root_region(pages, SW__SLAB);
#endif
    sw__slab = pages;
    sw__slab_left = SW__SLAB;
    if (!atomic_load_explicit(&sw__cookie, memory_order_relaxed)) {
        _Atomic uint32_t *cookie = pages;
        atomic_store_explicit(cookie, 1, memory_order_relaxed);
        atomic_store_explicit(&sw__cookie, cookie, memory_order_release);
        sw__slab += 128;
        sw__slab_left -= 128;
    }
    return true;
}

static struct sw__lane *sw__lane_alloc(void)
{
    struct sw__lane *lane = sw__free_lanes;
    if (lane) {
        sw__free_lanes = *(struct sw__lane **)(void *)lane;
    } else {
        if (sw__slab_left < SW__LANE_SIZE && !sw__slab_new()) {
            return NULL;
        }
        lane = (struct sw__lane *)(void *)sw__slab;
        sw__slab += SW__LANE_SIZE;
        sw__slab_left -= SW__LANE_SIZE;
    }
    memset(lane, 0, sizeof(*lane));
    return lane;
}

static void sw__lane_release(struct sw__lane *lane)
{
    sw__free(lane->slots);
    sw__free(lane->quick);
    sw__resident_close(lane);
    memset(lane, 0, sizeof(*lane));
    *(struct sw__lane **)(void *)lane = sw__free_lanes;
    sw__free_lanes = lane;
}

/* The calling thread has no part in the session any more. */
static void sw__thread_detach(void)
{
    sw__become(&sw__detached);
    if (sw__key_made) {
        pthread_setspecific(sw__key, NULL);
    }
}

static void sw__thread_close_usage(struct sw__thread *thread)
{
    struct sw__kept_file *const files[] = {&thread->schedstat, &thread->statm,
                                           &thread->io};
    for (size_t i = 0; i < SW__COUNTOF(files); i++) {
        if (sw__os_is_file(files[i]->fd, files[i]->device, files[i]->inode)) {
            close(files[i]->fd);
        }
        files[i]->fd = -1;
    }
}

/* Gives back what the heap holds for a thread. session.lock held; nobody else uses it. */
static void sw__thread_destroy(struct sw__thread *thread)
{
    for (unsigned i = 0; i < SW__DOMAINS; i++) {
        if (thread->lane[i] != &sw__no_lane) {
            sw__lane_release(thread->lane[i]);
        }
    }
    sw__thread_close_usage(thread);
    sw__free(thread);
}

static void sw__thread_seal(struct sw__thread *thread)
{
    struct sw__lane *main = thread->lane[0];
    uint32_t chunk = atomic_load_explicit(&thread->chunk, memory_order_relaxed);
    if (chunk != UINT32_MAX) {
        atomic_store_explicit(&thread->chunk, UINT32_MAX, memory_order_release);
        uint32_t used = (uint32_t)(main->cursor - main->data);
        sw__pool_seal(&sw__session.pool, chunk,
                      used / SW_RECORD_UNIT - thread->extra_units, sw__clock_now());
    }
    main->data = NULL;
    main->cursor = NULL;
    main->end = NULL;
    thread->extra_units = 0;
}

/* Only the thread itself adds to this count, so it takes no atomic addition. */
static void sw__thread_drop(struct sw__thread *thread)
{
    uint64_t before = atomic_load_explicit(&thread->slot->dropped, memory_order_relaxed);
    atomic_store_explicit(&thread->slot->dropped, before + 1, memory_order_relaxed);
}

/* The chunk is full, or there is none yet. False: the record is dropped, and counted here. */
bool sw__thread_new_chunk(struct sw__thread *thread)
{
    bool low = false;
    if (sw__holding) {
        sw__thread_drop(thread); /* In a signal handler, at the wrong moment. */
        return false;
    }
    if (thread->backoff) {
        /* There was nothing a moment ago; asking for every record would cost more than recording. */
        thread->backoff--;
        sw__thread_drop(thread);
        return false;
    }
    sw__thread_seal(thread);
    uint32_t chunk = sw__pool_take(&sw__session.pool, SW__BLOCK_EVENTS, thread->slot,
                                   thread->sequence, thread->slot->tid, &low);
    sw__helper_ensure();
    if (low) {
        sw__helper_wake();
    }
    if (chunk == UINT32_MAX) {
        thread->patience = thread->patience < 4096 ? thread->patience * 2 + 64 : 4096;
        thread->backoff = thread->patience;
        sw__thread_drop(thread);
        return false;
    }
    thread->patience = 0;
    thread->sequence++;
    struct sw__lane *main = thread->lane[0];
    struct sw__fmt_block *block = sw__session.pool.chunks[chunk].block;
    /* Who names steps wants them, however long ago they were when others come. */
    if (thread->wanted || sw__session.settings.schedule.form != SW_SCHEDULE_ALWAYS) {
        block->flags |= SW__BLOCK_WANTED;
    }
    main->data = (uint8_t *)(block + 1);
    main->cursor = main->data;
    main->end = main->data + SW__FMT_CHUNK - sizeof(struct sw__fmt_block);
    thread->extra_units = 0;
    atomic_store_explicit(&thread->chunk, chunk, memory_order_release);
    return true;
}

/* Closes the open sections of a lane as cut. */
static void sw__lane_cut(struct sw__lane *lane)
{
    uint64_t now = sw__clock_now();
    sw__lane_busy(lane);
    while (lane->top > lane->bottom) {
        sw__frame_end(lane, lane->top - 1, now, SW_RECORD_CUT, NULL);
    }
    sw__lane_idle(lane);
}

/* Closes what the thread has open and hands its chunks over. */
static void sw__thread_finish(struct sw__thread *thread)
{
    /* The lock that is held here is not one that what follows waits for; lanes are busy against signals. */
    int holding = sw__holding;
    sw__holding = 0;
    for (unsigned i = 0; i < SW__DOMAINS; i++) {
        struct sw__lane *lane = thread->lane[i];
        if (lane != &sw__no_lane) {
            sw__lane_busy(lane);
            sw__later_settle(lane);
            sw__step_close(lane, SW_STEP_INCOMPLETE);
            sw__later_end(lane);
            sw__lane_cut(lane);
        }
    }
    sw__holding = holding;
    sw__thread_seal(thread);
    uint32_t steps =
        atomic_exchange_explicit(&thread->steps_chunk, UINT32_MAX, memory_order_acq_rel);
    if (steps != UINT32_MAX) {
        sw__kept_seal(steps);
    }
}

/* A thread ended: its statistics stay, its slot may be taken over when there are very many. */
static void sw__thread_ended(void *value)
{
    struct sw__thread *thread = value;
    if (sw__wiped()) {
        return;
    }
    sw__lock(&sw__session.lock);
    if (thread->generation == atomic_load(&sw__session.generation) &&
        atomic_load(&sw__session.state) == SW__SESSION_ON) {
        sw__thread_finish(thread);
        atomic_store(&thread->slot->end_ticks, sw__clock_now());
        atomic_store(&thread->slot->alive, 0);
        sw__thread_close_usage(thread);
        thread->dead = true;
        sw__session.threads_dead++;
    } else if (thread->generation) {
        sw__thread_destroy(thread);
    }
    sw__become(&sw__detached);
    sw__unlock(&sw__session.lock);
}

static void sw__key_create(void)
{
    sw__key_made = pthread_key_create(&sw__key, sw__thread_ended) == 0;
}

/* An empty slot of a THREADS block. */
static struct sw__fmt_thread *sw__slot_new(void)
{
    struct sw__session *session = &sw__session;
    struct sw__fmt_block *block = session->threads_block;
    uint32_t used = block ? atomic_load_explicit(&block->used, memory_order_relaxed) : 0;
    if (!block || sizeof(*block) + used + sizeof(struct sw__fmt_thread) > block->size) {
        block = sw__mirror_take(&session->mirror, SW__BLOCK_THREADS, SW__FMT_PAGE);
        if (!block) {
            return NULL;
        }
        session->threads_block = block;
        used = 0;
    }
    struct sw__fmt_thread *slot =
        (struct sw__fmt_thread *)(void *)((uint8_t *)(block + 1) + used);
    slot->index = session->thread_count++;
    return slot;
}

static void sw__slot_fill(struct sw__fmt_thread *slot, const char *name, uint32_t tid)
{
    uint64_t fields[4] = {0};
    memcpy(fields, name, strnlen(name, sizeof(fields) - 1));
    sw__copy_to_shared(slot->name, fields, sizeof(fields));
    __atomic_store_n(&slot->tid, tid, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->incarnations, slot->incarnations + 1, __ATOMIC_RELAXED);
    if (slot->incarnations == 1) {
        slot->start_ticks = sw__clock_now();
    }
    atomic_store(&slot->end_ticks, 0);
    atomic_store(&slot->alive, 1);
}

/* Takes over what an ended thread left, preferably one of the same name. One that stands for something (sw_thread_stand_for)
 * is followed by its like alone. */
static struct sw__thread *sw__thread_inherit(const char *name, bool stands)
{
    struct sw__thread *found = NULL;
    for (struct sw__thread *at = sw__session.threads; at; at = at->next) {
        const bool same = strncmp(at->slot->name, name, sizeof(at->slot->name)) == 0;
        if (at->dead && at->stands == stands && (same || (!stands && !found))) {
            found = at;
            if (same) {
                break;
            }
        }
    }
    if (found) {
        found->dead = false;
        found->wanted = false;
        sw__session.threads_dead--;
        for (unsigned i = 0; i < SW__DOMAINS; i++) {
            if (found->lane[i] != &sw__no_lane) {
                sw__lane_reset(found->lane[i]);
            }
        }
        found->backoff = 0;
        found->usage_ticks = 0;
        found->usage_steps = 0;
    }
    return found;
}

static struct sw__thread *sw__thread_new(uint32_t generation)
{
    struct sw__thread *thread = sw__alloc_zero(1, sizeof(*thread));
    if (!thread) {
        return NULL;
    }
    thread->slot = sw__slot_new();
    if (!thread->slot) {
        sw__free(thread);
        return NULL;
    }
    for (unsigned i = 0; i < SW__DOMAINS; i++) {
        thread->lane[i] = &sw__no_lane;
    }
    thread->generation = generation;
    thread->schedstat.fd = -1;
    thread->statm.fd = -1;
    thread->io.fd = -1;
    atomic_store(&thread->chunk, UINT32_MAX);
    atomic_store(&thread->steps_chunk, UINT32_MAX);
    thread->next = sw__session.threads;
    sw__session.threads = thread;
    return thread;
}

/* The newest slot is filled: readers may see it. */
static void sw__slot_show(void)
{
    atomic_fetch_add_explicit(&sw__session.threads_block->used,
                              (uint32_t)sizeof(struct sw__fmt_thread),
                              memory_order_release);
}

/* The place that a thread got before it recorded anything, or NULL. session.lock held. */
static struct sw__thread *sw__thread_adopted(uint32_t tid)
{
    struct sw__thread *at = sw__session.threads;
    while (at && !(at->adopted && at->slot->tid == tid)) {
        at = at->next;
    }
    return at;
}

int sw_thread_adopt(uint32_t tid)
{
    struct sw__session *session = &sw__session;
    char name[17] = "";
    int result = SW_ENOTFOUND;
    if (sw__holding || !sw_is_recording()) {
        return result;
    }
    sw__os_thread_name(tid, name, sizeof(name));
    sw__lock(&session->lock);
    if (atomic_load(&session->state) == SW__SESSION_ON) {
        struct sw__thread *at = session->threads;
        while (at && (at->dead || at->slot->tid != tid)) {
            at = at->next;
        }
        if (!at && session->thread_count < SW__THREADS_APART) {
            at = sw__thread_new(atomic_load(&session->generation));
            if (at) {
                at->adopted = true;
                sw__slot_fill(at->slot, name, tid);
                sw__slot_show();
            }
        }
        result = at ? SW_OK : SW_ENOTFOUND;
    }
    sw__unlock(&session->lock);
    return result;
}

struct sw__thread *sw__thread_of_watchers(void)
{
    struct sw__session *session = &sw__session;
    if (!session->watchers && session->thread_count < SW__THREADS_MOST) {
        struct sw__thread *thread = sw__thread_new(atomic_load(&session->generation));
        if (thread) {
            thread->adopted = true;
            sw__slot_fill(thread->slot, "stepwatch", 0);
            sw__slot_show();
            session->watchers = thread;
        }
    }
    return session->watchers;
}

/* What the calling thread will stand for when it becomes one of the session; NULL: itself. */
static _Thread_local const char *sw__stands_for;

/* Makes the calling thread one of the session. session.lock held. */
static struct sw__thread *sw__thread_attach(uint32_t generation)
{
    struct sw__session *session = &sw__session;
    const char *const stands = sw__stands_for;
    char name[sizeof(((struct sw__fmt_thread *)NULL)->name)] = "";
    struct sw__thread *thread = NULL;
    bool fresh = false;
    if (stands) {
        memcpy(name, stands, strnlen(stands, sizeof(name) - 1));
    } else {
        (void)prctl(PR_GET_NAME, name, 0, 0, 0);
        thread = sw__thread_adopted((uint32_t)sw__os_tid());
    }
    if (!thread && session->threads_dead &&
        (stands || session->thread_count >= SW__THREADS_APART)) {
        thread = sw__thread_inherit(name, stands != NULL);
    }
    if (!thread && session->thread_count < SW__THREADS_MOST) {
        thread = sw__thread_new(generation);
        fresh = thread != NULL;
    }
    if (!thread) {
        return NULL;
    }
    thread->stands = stands != NULL;
    if (thread->adopted) {
        thread->adopted = false;
    } else {
        sw__slot_fill(thread->slot, name, stands ? 0 : (uint32_t)sw__os_tid());
    }
    if (fresh) {
        sw__slot_show();
    }
    sw__total_add(SW__TOTAL_THREADS, 1);
    pthread_once(&sw__key_once, sw__key_create);
    if (sw__key_made) {
        pthread_setspecific(sw__key, thread);
    }
    sw__become(thread);
    return thread;
}

/* A thread's lane, made if need be. session.lock held. */
static struct sw__lane *sw__thread_lane(struct sw__thread *thread, uint16_t domain)
{
    struct sw__lane *lane = thread->lane[domain];
    if (lane != &sw__no_lane) {
        return lane;
    }
    lane = sw__lane_alloc();
    if (lane && !sw__lane_open(lane, thread, domain)) {
        sw__lane_release(lane);
        lane = NULL;
    }
    if (lane) {
        thread->lane[domain] = lane;
        sw__become(thread);
    }
    return lane;
}

/* A domain that was switched off and on has another gate; what was open on the lane then, is not any more. */
static struct sw__lane *sw__lane_renew(struct sw__lane *lane)
{
    uint32_t gate =
        atomic_load_explicit(&sw__domain_at(lane->domain)->gate, memory_order_relaxed);
    if (SW__LIKELY(gate == SW__GATE_OF(lane->idle) || sw__lane_is_busy(lane))) {
        return lane; /* Perhaps a busy one: the caller looks. */
    }
    if (gate == 0) {
        return NULL;
    }
    sw__lane_busy(lane);
    sw__later_settle(lane);
    sw__step_close(lane, SW_STEP_INCOMPLETE);
    sw__later_end(lane);
    lane->idle = gate | sw__lane_slow(lane);
    sw__lane_reset(lane);
    sw__sections_changed();
    return lane;
}

/* The lane of the calling thread, made if need be. NULL: nothing can be recorded here. */
struct sw__lane *sw__lane_here(uint16_t domain)
{
    struct sw__session *session = &sw__session;
    uint32_t generation =
        atomic_load_explicit(&session->generation, memory_order_relaxed);
    struct sw__thread *thread = sw__self;
    if (SW__UNLIKELY(sw__wiped())) {
        sw__forked_child();
        thread = sw__self;
    }
    if (SW__UNLIKELY(sw__holding)) {
        sw__total_add(SW__TOTAL_REENTRANT, 1);
        return NULL;
    }
    struct sw__lane *lane = thread->lane[domain];
    if (SW__LIKELY(lane != &sw__no_lane && thread->generation == generation &&
                   atomic_load_explicit(&session->state, memory_order_relaxed) ==
                       SW__SESSION_ON)) {
        return sw__lane_renew(lane);
    }
    if (!sw__session_ready()) {
        return NULL;
    }
    lane = NULL;
    sw__lock(&session->lock);
    generation = atomic_load(&session->generation);
    /* Memory that was not there a moment ago is not asked for with every record. */
    if (atomic_load(&session->state) != SW__SESSION_ON ||
        sw__clock_now() < session->retry_at) {
        goto out;
    }
    thread = sw__self;
    if (thread != &sw__detached && thread->generation != generation) {
        /* What is left of an earlier session. */
        sw__thread_detach();
        sw__thread_destroy(thread);
        thread = &sw__detached;
    }
    if (thread == &sw__detached) {
        thread = sw__thread_attach(generation);
    }
    if (!thread) {
        session->retry_at = sw__clock_now() + 10 * session->ticks_per_ms;
        goto out;
    }
    /* The default domain's lane first: it has the thread's place in its chunk. */
    lane = sw__thread_lane(thread, 0) ? sw__thread_lane(thread, domain) : NULL;
    if (!lane) {
        session->retry_at = sw__clock_now() + 10 * session->ticks_per_ms;
    }
out:
    sw__unlock(&session->lock);
    return lane;
}

bool sw__threads_settle(void)
{
    /* Gates are closed. The barrier makes every thread that runs see them closed, or us see it busy. */
    bool settled = syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
    for (struct sw__thread *at = sw__session.threads; at; at = at->next) {
        for (unsigned i = 0; i < SW__DOMAINS && !at->dead && at != sw__self; i++) {
            const struct sw__lane *lane = at->lane[i];
            unsigned waits = 0;
            while (lane != &sw__no_lane &&
                   atomic_load_explicit(&lane->generation, memory_order_acquire) == 0) {
                if (++waits > 1000) {
                    settled =
                        false; /* It was stopped, or is being debugged, in the middle. */
                    break;
                }
                sw__os_sleep_ns(100000);
            }
        }
    }
    return settled;
}

bool sw__lane_missing(uint16_t domain)
{
    return sw_is_recording() && !sw__holding && sw__self->lane[domain] == &sw__no_lane;
}

void sw__threads_end(void)
{
    struct sw__thread *self = sw__self;
    if (self != &sw__detached &&
        self->generation == atomic_load(&sw__session.generation)) {
        sw__thread_finish(self);
    }
}

size_t sw__threads_open_chunks(uint32_t *out, size_t most)
{
    size_t count = 0;
    for (struct sw__thread *at = sw__session.threads; at; at = at->next) {
        uint32_t chunk = atomic_load_explicit(&at->chunk, memory_order_acquire);
        uint32_t steps = atomic_load_explicit(&at->steps_chunk, memory_order_acquire);
        if (chunk != UINT32_MAX && count < most) {
            out[count++] = chunk;
        }
        if (steps != UINT32_MAX && count < most) {
            out[count++] = steps;
        }
    }
    return count;
}

void sw__threads_release(void)
{
    /* Ended threads and our own are ours to free; other living ones free themselves when they notice. */
    for (struct sw__thread *at = sw__session.threads, *next; at; at = next) {
        next = at->next;
        at->next = NULL;
        if (at == sw__self) {
            sw__thread_detach();
            sw__thread_destroy(at);
        } else if (at->dead || at->adopted) {
            sw__thread_destroy(at);
        }
    }
    sw__session.threads = NULL;
    sw__session.watchers = NULL;
}

void sw__thread_forget(void)
{
    /* Other threads do not exist here, and lanes were wiped: what they owned is left where it is. */
    sw__thread_detach();
    sw__free_lanes = NULL;
    sw__slab = NULL;
    sw__slab_left = 0;
    atomic_store_explicit(&sw__cookie, NULL, memory_order_release);
}

void sw_thread_name(const char *name)
{
    if (!name || !sw_is_recording() || !sw__lane_here(0)) {
        return;
    }
    uint64_t fields[4] = {0};
    memcpy(fields, name, strnlen(name, sizeof(fields) - 1));
    sw__copy_to_shared(sw__self->slot->name, fields, sizeof(fields));
}

void sw_thread_stand_for(const char *name)
{
    if (name && sw_is_recording()) {
        sw__stands_for = name;
        (void)sw__lane_here(0);
        sw__stands_for = NULL;
    }
}
