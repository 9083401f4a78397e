/* Adding up calls: for the thing, by atomic additions, and for the section, in cells that belong to the calling thread alone. */
#include "watch/io.h"

#include "base/clock_read.h"
#include "base/os.h"
#include "record/recorder.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define CELLS_APART (SW__IO_CELLS * 3 / 4) /* then sections are not told apart any more */

_Atomic bool sw__io_on;
_Atomic int32_t sw__io_pid;
_Atomic uint64_t sw__io_missed;
_Atomic uint32_t sw__io_recording;
_Atomic uint64_t sw__io_slow;
struct sw__io_thread *_Atomic sw__io_threads[SW__IO_THREADS];

static SW__TLS struct sw__io_thread *self;

/* Cells for the calling thread: those of a thread that has ended, else new ones. No lock, no heap. */
static SW__COLD struct sw__io_thread *adopt(void)
{
    const int32_t tid = sw__os_tid();
    for (size_t i = 0; i < SW__IO_THREADS; i++) {
        struct sw__io_thread *at =
            atomic_load_explicit(&sw__io_threads[i], memory_order_acquire);
        int32_t nobody = 0;
        if (!at) {
            at = mmap(NULL, sizeof(*at), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (at == MAP_FAILED) {
                return NULL;
            }
            atomic_store(&at->tid, tid);
            struct sw__io_thread *none = NULL;
            if (atomic_compare_exchange_strong(&sw__io_threads[i], &none, at)) {
                return at;
            }
            munmap(at, sizeof(*at));
        } else if (atomic_load_explicit(&at->tid, memory_order_relaxed) == tid ||
                   atomic_compare_exchange_strong(&at->tid, &nobody, tid)) {
            /* One with our number was left by a thread that had it before us, perhaps in the middle. What it wrote, it wrote
             * before this. */
            (void)atomic_exchange_explicit(&at->busy, false, memory_order_acquire);
            at->pending_count = 0;
            return at;
        }
    }
    return NULL;
}

static void add(_Atomic uint64_t *to, uint64_t amount)
{
    if (amount) {
        atomic_fetch_add_explicit(to, amount, memory_order_relaxed);
    }
}

static void raise_to(_Atomic uint64_t *to, uint64_t value)
{
    uint64_t before = atomic_load_explicit(to, memory_order_relaxed);
    while (value > before &&
           !atomic_compare_exchange_weak_explicit(
               to, &before, value, memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* Where only this thread writes. */
SW__INLINE void add_plain(_Atomic uint64_t *to, uint64_t amount)
{
    atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + amount,
                          memory_order_relaxed);
}

SW__INLINE void add_alone(struct sw__io_sum *sum, uint64_t bytes, uint64_t ticks,
                          uint64_t small)
{
    add_plain(&sum->calls, 1);
    add_plain(&sum->bytes, bytes);
    add_plain(&sum->ticks, ticks);
    add_plain(&sum->small, small);
    if (ticks > atomic_load_explicit(&sum->longest, memory_order_relaxed)) {
        atomic_store_explicit(&sum->longest, ticks, memory_order_relaxed);
    }
}

/* Most things are used by one thread only. */
SW__INLINE void add_to_thing(struct sw__thing *thing, struct sw__io_thread *mine,
                             unsigned operation, uint64_t bytes, uint64_t ticks,
                             uint64_t small)
{
    struct sw__io_thread *owner =
        atomic_load_explicit(&thing->owner, memory_order_relaxed);
    if (SW__LIKELY(owner == mine) ||
        (!owner && atomic_compare_exchange_strong_explicit(&thing->owner, &owner, mine,
                                                           memory_order_relaxed,
                                                           memory_order_relaxed))) {
        add_alone(&thing->sum[operation], bytes, ticks, small);
        return;
    }
    struct sw__io_sum *sum = &thing->shared[operation];
    add(&sum->calls, 1);
    add(&sum->bytes, bytes);
    add(&sum->ticks, ticks);
    add(&sum->small, small);
    raise_to(&sum->longest, ticks);
}

static bool moves_bytes(unsigned operation)
{
    return operation == SW_IO_READ || operation == SW_IO_WRITE ||
           operation == SW_IO_SEND || operation == SW_IO_RECEIVE;
}

/* The cell of a key, a new one if need be and there may be one; else NULL. */
static struct sw__cell *cell_of(struct sw__io_thread *mine, uint64_t key, unsigned most)
{
    uint64_t at = (key * 0x9E3779B97F4A7C15ull >> 32) & (SW__IO_CELLS - 1);
    for (unsigned i = 0; i < SW__IO_CELLS; i++, at = (at + 1) & (SW__IO_CELLS - 1)) {
        struct sw__cell *cell = &mine->cell[at];
        if (cell->key == key) {
            return cell;
        }
        if (cell->key == 0) {
            if (mine->cell_count >= most) {
                return NULL;
            }
            mine->cell_count++;
            __atomic_store_n(&cell->key, key, __ATOMIC_RELEASE);
            return cell;
        }
    }
    return NULL;
}

static struct sw__cell *cell_for(struct sw__io_thread *mine, uint32_t section,
                                 unsigned phase, unsigned operation, unsigned kind)
{
    struct sw__cell *cell =
        cell_of(mine, sw__cell_key(section, phase, operation, kind), CELLS_APART);
    return cell ? cell
                : cell_of(mine,
                          sw__cell_key(SW__IO_MORE, SW_PHASE_INHERIT, operation, kind),
                          SW__IO_CELLS);
}

/* Writes records that had to wait until their thing has a name. The lane is busy. */
static void put_pending(struct sw__io_thread *mine, struct sw__lane *lane)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < mine->pending_count; i++) {
        sw_record_io *record = &mine->pending[i];
        const uint32_t name = atomic_load_explicit(
            &sw__io_thing_number(record->head.id)->name, memory_order_acquire);
        if (name) {
            sw_record_io named = *record;
            named.head.id = name;
            sw__put_record(lane->thread, &named.head);
        } else {
            mine->pending[kept++] = *record;
        }
    }
    mine->pending_count = kept;
}

static void put_record(struct sw__io_thread *mine, struct sw__lane *lane,
                       const struct sw__thing *thing, const struct sw__io_call *call)
{
    sw_record_io record = {
        .head = {.kind = SW_RECORD_IO,
                 .units = sizeof(record) / SW_RECORD_UNIT,
                 .flags = (uint16_t)(SW_RECORD_INTERVAL |
                                     (call->result < 0 ? SW_RECORD_ERROR : 0)),
                 .id = atomic_load_explicit(&thing->name, memory_order_acquire),
                 .ticks = call->begin},
        .end = call->end,
        .bytes = call->result > 0 ? (uint64_t)call->result : 0,
        .offset = call->offset,
        .operation = call->operation,
        .result = call->result < 0 ? -call->error : 0,
        .node = lane->node->index,
    };
    if (record.head.id) {
        sw__put_record(lane->thread, &record.head);
    } else if (mine->pending_count < SW__COUNTOF(mine->pending)) {
        record.head.id = (uint32_t)(thing - sw__io_thing_number(0));
        mine->pending[mine->pending_count++] = record;
    }
}

static bool deserves_record(const struct sw__io_call *call)
{
    const uint64_t ticks = call->end - call->begin;
    return call->operation == SW_IO_SYNC ||
           (call->operation != SW_IO_WAIT &&
            ticks >= atomic_load_explicit(&sw__io_slow, memory_order_relaxed));
}

/* The lane of the calling thread, seized, where it records now; else NULL. Never attaches it. */
static struct sw__lane *seize_lane(uint32_t *before)
{
    struct sw__thread *thread = sw__self;
    struct sw__lane *lane = thread->lane[0];
    if (lane == &sw__no_lane || sw__holding ||
        thread->generation !=
            atomic_load_explicit(&sw__session.generation, memory_order_relaxed)) {
        return NULL;
    }
    *before = sw__lane_seize(lane);
    if (*before == 0 || atomic_load_explicit(&sw__session.state, memory_order_relaxed) !=
                            SW__SESSION_ON) {
        sw__lane_give(lane, *before);
        return NULL;
    }
    return lane;
}

/* What the thread is doing for the program; a call that deserves it gets a record. */
static void look_around(struct sw__io_thread *mine, const struct sw__thing *thing,
                        const struct sw__io_call *call, uint32_t *section,
                        unsigned *phase)
{
    uint32_t before;
    *section = 0;
    *phase = SW_PHASE_INHERIT;
    struct sw__lane *lane = seize_lane(&before);
    if (!lane) {
        return;
    }
    *section = lane->node->section;
    if (lane->phase_gate) {
        *phase = lane->phase < SW_PHASE_COUNT ? lane->phase : SW_PHASE_OTHER;
    }
    if (atomic_load_explicit(&sw__events_on, memory_order_relaxed)) {
        if (SW__UNLIKELY(mine->pending_count)) {
            put_pending(mine, lane);
        }
        if (SW__UNLIKELY(deserves_record(call))) {
            put_record(mine, lane, thing, call);
        }
    }
    sw__lane_give(lane, before);
}

static SW__COLD void start_over(struct sw__io_thread *mine, uint32_t recording)
{
    memset(mine->cell, 0, sizeof(mine->cell));
    mine->cell_count = 0;
    mine->pending_count = 0;
    atomic_store_explicit(&mine->recording, recording, memory_order_release);
}

void sw__io_count(struct sw__thing *thing, const struct sw__io_call *call)
{
    struct sw__io_thread *mine = self;
    if (thing->own) {
        return;
    }
    if (SW__UNLIKELY(!mine)) {
        mine = self = adopt();
    }
    if (!mine || atomic_load_explicit(&mine->busy, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&sw__io_missed, 1, memory_order_relaxed);
        return;
    }
    atomic_store_explicit(&mine->busy, true, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);

    const uint32_t recording =
        atomic_load_explicit(&sw__io_recording, memory_order_relaxed);
    if (SW__UNLIKELY(atomic_load_explicit(&mine->recording, memory_order_relaxed) !=
                     recording)) {
        start_over(mine, recording);
    }
    const uint64_t ticks = call->end > call->begin ? call->end - call->begin : 0;
    const bool moves = moves_bytes(call->operation);
    const uint64_t bytes = (moves || call->operation == SW_IO_MAP) && call->result > 0
                               ? (uint64_t)call->result
                               : 0;
    const uint64_t small = moves && bytes > 0 && bytes < SW__IO_SMALL && !call->buffered;
    add_to_thing(thing, mine, call->operation, bytes, ticks, small);
    if (call->result < 0 && call->error != EAGAIN && call->error != EINTR &&
        call->error != EINPROGRESS) {
        add(&thing->failed, 1);
    }
    if (!atomic_load_explicit(&thing->changed, memory_order_relaxed)) {
        atomic_store_explicit(&thing->changed, true, memory_order_release);
    }
    uint32_t section;
    unsigned phase;
    look_around(mine, thing, call, &section, &phase);
    struct sw__cell *cell = cell_for(mine, section, phase, call->operation, thing->kind);
    if (cell) {
        add_alone(&cell->sum, bytes, ticks, small);
    } else {
        atomic_fetch_add_explicit(&sw__io_missed, 1, memory_order_relaxed);
    }

    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&mine->busy, false, memory_order_release);
}

void sw__io_settle(void)
{
    struct sw__io_thread *mine = self;
    uint32_t before;
    struct sw__lane *lane = mine && mine->pending_count ? seize_lane(&before) : NULL;
    if (lane) {
        put_pending(mine, lane);
        sw__lane_give(lane, before);
    }
}

void sw__io_threads_forked(void)
{
    for (size_t i = 0; i < SW__IO_THREADS; i++) {
        struct sw__io_thread *at = atomic_load(&sw__io_threads[i]);
        if (!at) {
            break;
        }
        atomic_store(&at->busy, false);
        atomic_store(&at->recording, 0);
        atomic_store(&at->tid, at == self ? sw__os_tid() : 0);
    }
}
