/* Start and end of watching calls on files and sockets, and the thread that puts sums into the trace four times a second: what
 * was counted by then outlives a kill. */
#include "watch/io.h"

#include "base/memory.h"
#include "base/os.h"
#include "record/recorder.h"
#include "record/watchers.h"
#include "watch/plt.h"
#include "watch/ticker.h"
#include <pthread.h>
#include <stepwatch/redact.h>
#include <stepwatch/watch.h>
#include <string.h>
#include <unistd.h>

#define SECTIONS 1024u /* cells of all threads together; a power of two */

/* A row of table IO. */
struct row_of_section {
    uint64_t key;      /* as sw__cell_key; 0: free */
    uint64_t value[5]; /* calls, bytes, ticks, small, longest */
    uint64_t handle;
    bool changed;
};

static void tick(void);

/* `lock` comes before all locks of the recorder, and the thread never takes it; `sums` is for what is below it. */
static struct {
    pthread_mutex_t lock;
    struct sw__ticker ticker;
    bool begun;
    pthread_mutex_t sums;
    struct row_of_section *section;
    unsigned section_count;
    uint64_t watched; /* row */
} io = {.lock = PTHREAD_MUTEX_INITIALIZER,
        .sums = PTHREAD_MUTEX_INITIALIZER,
        .ticker = {.name = "stepwatch-io", .period_ns = 250000000, .tick = tick}};

/* ---- into the trace ---- */

static struct row_of_section *section_row(uint64_t key)
{
    uint64_t at = (key * 0x9E3779B97F4A7C15ull >> 32) & (SECTIONS - 1);
    while (io.section[at].key && io.section[at].key != key) {
        at = (at + 1) & (SECTIONS - 1);
    }
    if (io.section[at].key == 0) {
        /* Enough is left for what has no section of its own. */
        if (io.section_count >= SECTIONS * 3 / 4 && key >> 32 != SW__IO_MORE) {
            return section_row(sw__cell_key(SW__IO_MORE, SW_PHASE_INHERIT,
                                            (unsigned)(key >> 8), (unsigned)key));
        }
        io.section[at].key = key;
        io.section_count++;
    }
    return &io.section[at];
}

static uint64_t of(const _Atomic uint64_t *value)
{
    return atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)value,
                                memory_order_relaxed);
}

/* Takes what a cell has more than it had the last time. */
static void take_cell(struct sw__cell *cell)
{
    const uint64_t key = __atomic_load_n(&cell->key, __ATOMIC_ACQUIRE);
    const uint64_t now[4] = {of(&cell->sum.calls), of(&cell->sum.bytes),
                             of(&cell->sum.ticks), of(&cell->sum.small)};
    if (key == 0 || now[0] == cell->told[0]) {
        return;
    }
    struct row_of_section *row = section_row(key);
    for (unsigned i = 0; i < 4; i++) {
        row->value[i] += now[i] - cell->told[i];
        cell->told[i] = now[i];
    }
    const uint64_t longest = of(&cell->sum.longest);
    row->value[4] = longest > row->value[4] ? longest : row->value[4];
    row->changed = true;
}

static void take_threads(void)
{
    const uint32_t recording = atomic_load(&sw__io_recording);
    for (size_t i = 0; i < SW__IO_THREADS; i++) {
        struct sw__io_thread *thread = atomic_load(&sw__io_threads[i]);
        if (!thread) {
            return;
        }
        if (atomic_load_explicit(&thread->recording, memory_order_acquire) == recording) {
            for (size_t c = 0; c < SW__IO_CELLS; c++) {
                take_cell(&thread->cell[c]);
            }
        }
        int32_t tid = atomic_load(&thread->tid);
        if (tid && !sw__os_thread_exists(tid)) {
            /* Another thread may go on with its cells. */
            atomic_compare_exchange_strong(&thread->tid, &tid, 0);
        }
    }
}

static void put_sections(void)
{
    for (size_t i = 0; i < SECTIONS; i++) {
        struct row_of_section *at = &io.section[i];
        if (!at->changed) {
            continue;
        }
        uint32_t section = (uint32_t)(at->key >> 32);
        if (section == SW__IO_MORE) {
            section = sw_name("(more)", strlen("(more)"));
        }
        sw_row row = {.table = SW_TABLE_IO,
                      .key = {section, (uint32_t)(at->key >> 16 & 0xFF),
                              (uint32_t)(at->key & 0xFF),
                              (uint32_t)(at->key >> 8 & 0xFF)}};
        memcpy(row.value, at->value, sizeof(row.value));
        at->handle = sw_row_put(at->handle, &row);
        at->changed = at->handle == 0;
    }
}

static uint32_t name_of(struct sw__thing *thing)
{
    uint32_t name = atomic_load(&thing->name);
    if (name == 0) {
        char text[4096];
        sw_redact_text(text, sizeof text, thing->text, thing->length);
        name = sw_name(text, strlen(text));
        atomic_store_explicit(&thing->name, name, memory_order_release);
    }
    return name;
}

static void put_thing(struct sw__thing *thing)
{
    bool any = false;
    if (!atomic_exchange_explicit(&thing->changed, false, memory_order_acq_rel)) {
        return;
    }
    for (unsigned op = 1; op < SW_IO_OPERATIONS; op++) {
        const struct sw__io_sum *sum = &thing->sum[op], *shared = &thing->shared[op];
        const uint64_t calls = of(&sum->calls) + of(&shared->calls);
        if (calls == thing->told[op]) {
            continue;
        }
        const uint64_t own = of(&sum->longest), others = of(&shared->longest);
        const uint64_t longest = own > others ? own : others;
        sw_row row = {.table = SW_TABLE_THING,
                      .key = {name_of(thing), thing->kind, op, 0},
                      .value = {calls, of(&sum->bytes) + of(&shared->bytes),
                                of(&sum->ticks) + of(&shared->ticks),
                                of(&sum->small) + of(&shared->small), longest}};
        thing->row[op] = sw_row_put(thing->row[op], &row);
        thing->told[op] = thing->row[op] ? calls : 0;
        any = true;
    }
    if (any) {
        sw_row row = {
            .table = SW_TABLE_THING,
            .key = {name_of(thing), thing->kind, 0, 0},
            .value = {of(&thing->size), of(&thing->failed), of(&thing->first), 0, 0}};
        thing->row[0] = sw_row_put(thing->row[0], &row);
    }
}

static void put_watched(void)
{
    struct sw__plt_counts counts;
    sw__plt_counts(&counts);
    sw_row row = {.table = SW_TABLE_WATCHED,
                  .value = {counts.entries, counts.refused, of(&sw__io_missed),
                            sw__io_folded(), of(&sw__io_slow)}};
    io.watched = sw_row_put(io.watched, &row);
}

/* sums held. */
static void put_all(void)
{
    take_threads();
    put_sections();
    const size_t count = sw__io_thing_count();
    for (size_t i = 1; i < count; i++) {
        put_thing(sw__io_thing_number((uint32_t)i));
    }
    put_watched();
}

void sw_io_flush(void)
{
    pthread_mutex_lock(&io.sums);
    if (io.begun) {
        put_all();
    }
    pthread_mutex_unlock(&io.sums);
}

/* Also patches libraries that were loaded and never asked for anything. */
static void tick(void)
{
    sw__plt_refresh();
    sw_io_flush();
}

/* ---- start and end ---- */

static int begin(const struct sw__settings *settings, sw_error_info *info)
{
    (void)settings;
    char folder[1024];
    if (!io.section) {
        io.section = sw__alloc_zero(SECTIONS, sizeof(*io.section));
    }
    if (!io.section || sw__io_things_open() != SW_OK) {
        return sw_error_set(info, SW_ENOMEM, "there is no memory for it");
    }
    if (sw_run_dir(folder, sizeof folder) < sizeof folder) {
        sw__io_things_own(folder);
    }
    pthread_mutex_lock(&io.sums);
    memset(io.section, 0, SECTIONS * sizeof(*io.section));
    io.section_count = 0;
    io.watched = 0;
    sw__io_things_clear();
    sw__io_forget_all();
    atomic_store(&sw__io_missed, 0);
    atomic_fetch_add(&sw__io_recording, 1);
    atomic_store(&sw__io_slow, sw__session.ticks_per_ms);
    atomic_store(&sw__io_pid, (int32_t)getpid());
    io.begun = true;
    pthread_mutex_unlock(&io.sums);
    const int result = sw__plt_add(&sw__io_set, info);
    atomic_store(&sw__io_on, result == SW_OK);
    if (result == SW_OK) {
        pthread_mutex_lock(&io.sums);
        put_watched();
        pthread_mutex_unlock(&io.sums);
        (void)sw__ticker_start(&io.ticker);
    }
    return result;
}

static void on_begin(const struct sw__settings *settings, bool child)
{
    (void)child;
    if (!settings->io) {
        return;
    }
    sw_error_info info = {0};
    pthread_mutex_lock(&io.lock);
    const int result = begin(settings, &info);
    pthread_mutex_unlock(&io.lock);
    if (result != SW_OK) {
        sw__say("calls on files and sockets are not watched: %s", info.message);
    }
}

/* Waits a moment for threads that are just adding up. */
static void settle(void)
{
    for (unsigned round = 0; round < 100; round++) {
        bool busy = false;
        for (size_t i = 0; i < SW__IO_THREADS; i++) {
            struct sw__io_thread *thread = atomic_load(&sw__io_threads[i]);
            if (!thread) {
                break;
            }
            busy = busy || (atomic_load(&thread->tid) && atomic_load(&thread->busy));
        }
        if (!busy) {
            return;
        }
        sw__os_sleep_ns(10000);
    }
}

static void on_end(void)
{
    pthread_mutex_lock(&io.lock);
    if (io.begun) {
        atomic_store(&sw__io_on, false);
        sw__plt_remove(&sw__io_set);
        (void)sw__ticker_stop(&io.ticker, false);
        settle();
        sw_io_flush();
        sw__io_settle();
        io.begun = false;
    }
    pthread_mutex_unlock(&io.lock);
}

static void on_before_fork(void)
{
    pthread_mutex_lock(&io.lock);
    (void)sw__ticker_stop(&io.ticker, true);
    pthread_mutex_lock(&io.sums);
}

static void on_after_fork(bool child)
{
    if (!child) {
        pthread_mutex_unlock(&io.sums);
        if (io.begun) {
            atomic_store(&sw__watchers_wait, true);
        }
        pthread_mutex_unlock(&io.lock);
        return;
    }
    pthread_mutex_init(&io.lock, NULL);
    pthread_mutex_init(&io.sums, NULL);
    sw__ticker_forget(&io.ticker);
    /* Its own recording begins with its first record, if at all. Until then calls lead through us and count nothing. */
    atomic_store(&sw__io_on, false);
    atomic_store(&sw__io_pid, (int32_t)getpid());
    io.begun = false;
    sw__io_threads_forked();
}

static void on_resume(void)
{
    /* Whoever holds the lock starts or stops it anyway. */
    if (pthread_mutex_trylock(&io.lock)) {
        atomic_store(&sw__watchers_wait, true);
        return;
    }
    if (io.begun) {
        if (io.ticker.running && atomic_load(&io.ticker.stop)) {
            (void)sw__ticker_stop(&io.ticker, true); /* It had no time to end before. */
        }
        (void)sw__ticker_start(&io.ticker);
    }
    pthread_mutex_unlock(&io.lock);
}

const struct sw__watcher sw__io_watcher = {
    .begin = on_begin,
    .end = on_end,
    .before_fork = on_before_fork,
    .after_fork = on_after_fork,
    .resume = on_resume,
};
