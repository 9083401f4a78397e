/* One round of the sampler: the list of the interpreter's threads, their states, and a look at each. */
#include "core.h"

#include "sampler_round.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <stepwatch/stepwatch.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS_MOST 1024u

/* A thread that is looked at. */
typedef struct watched {
    walk_thread walk;
    uint32_t tid;
    uint64_t pthread, state_tid; /* what its thread state said when `tid` was found */
    int stat;                    /* descriptor of its /proc/self/task/TID/stat, -1 none */
    uint64_t device, inode;
    uint64_t cpu_ns; /* at the last look */
    walk_stack last; /* depth 0: none */
    tree_frame frames[WALK_FRAMES];
    size_t depth;
    tree_tag tag;
} watched;

struct sampler_work {
    sampler_subject subject;
    core_memory reader;
    sampler_walker *walker;
    sampler_codes *codes;
    watched **threads; /* in the order of the interpreter's list */
    watched **spare;   /* the same room again */
    uint32_t count;
    size_t tid_offset; /* of the kernel's id in what a pthread_t points to; 0 unknown */
    walk_stack stack;
    core_extent plan[THREADS_MOST + 1];
    uint8_t states[THREADS_MOST][STATE_BYTES];
    struct {
        uint64_t address;
        layout_thread state;
    } list[THREADS_MOST];
};

/* CPU time of any thread of the process: the kernel's own naming of such clocks. */
static uint64_t thread_cpu_ns(uint32_t tid)
{
    return clock_ns((clockid_t)(~tid << 3 | 6));
}

/* --- States of threads ------------------------------------------------------------------- */

static void stat_open(watched *thread)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/self/task/%u/stat", thread->tid);
    thread->stat = open(path, O_RDONLY | O_CLOEXEC);
    if (thread->stat >= 0 && fstat(thread->stat, &status) == 0) {
        thread->device = status.st_dev;
        thread->inode = status.st_ino;
    }
}

static void stat_close(watched *thread)
{
    struct stat status;
    /* A program that closed all descriptors may have this number for a file of its own now. */
    if (thread->stat >= 0 && fstat(thread->stat, &status) == 0 &&
        status.st_dev == thread->device && status.st_ino == thread->inode) {
        close(thread->stat);
    }
    thread->stat = -1;
}

/* 'R', 'S', 'D' …; 0 unknown. "TID (name) S …": the name may hold anything, parentheses too. */
static char stat_read(watched *thread)
{
    char text[128], *end;
    const ssize_t size = pread(thread->stat, text, sizeof text - 1, 0);
    if (size <= 0) {
        return 0;
    }
    text[size] = '\0';
    if (strtoul(text, &end, 10) != thread->tid) {
        return 0;
    }
    end = strrchr(text, ')');
    return end && end[1] == ' ' ? end[2] : 0;
}

/* --- The list of threads ----------------------------------------------------------------- */

static void watched_free(watched *thread)
{
    if (thread) {
        stat_close(thread);
        walk_thread_clear(&thread->walk);
        free(thread);
    }
}

/* glibc keeps the kernel's id of a thread behind its pthread_t: found by looking for our own. */
static size_t find_tid_offset(core_memory *reader)
{
    int32_t words[512];
    const int32_t own = own_tid();
    const uint64_t self = (uint64_t)(uintptr_t)pthread_self();
    if (reader->mode == CORE_READ_GIL || core_read(reader, self, words, sizeof words)) {
        return 0;
    }
    size_t found = 0;
    for (size_t i = 16; i < sizeof words / sizeof words[0]; i++) {
        if (words[i] == own) {
            if (found) {
                return 0; /* twice: it cannot be told which */
            }
            found = i * sizeof words[0];
        }
    }
    return found;
}

static uint32_t kernel_id(sampler_work *work, const layout_thread *state)
{
    int32_t tid = 0;
    if (state->tid) {
        return state->tid;
    }
    if (work->tid_offset &&
        core_read(&work->reader, state->pthread + work->tid_offset, &tid, sizeof tid) ==
            0 &&
        tid > 0) {
        return (uint32_t)tid;
    }
    if (work->subject.main && state->pthread == work->subject.main) {
        return (uint32_t)work->reader.pid;
    }
    return 0;
}

static watched *watched_new(sampler_work *work, uint64_t address,
                            const layout_thread *state)
{
    const uint32_t tid = kernel_id(work, state);
    watched *made = tid ? calloc(1, sizeof *made) : NULL;
    if (!made) {
        return NULL;
    }
    made->walk.state = address;
    made->walk.id = state->id;
    made->tid = tid;
    made->pthread = state->pthread;
    made->state_tid = state->tid;
    made->cpu_ns = UINT64_MAX;
    stat_open(made);
    return made;
}

/* A thread state is made by another thread, and says for a moment that it belongs to that one. */
static void watched_check(sampler_work *work, watched *thread, const layout_thread *state)
{
    if (thread->pthread == state->pthread && thread->state_tid == state->tid) {
        return;
    }
    const uint32_t tid = kernel_id(work, state);
    if (tid) {
        stat_close(thread);
        thread->tid = tid;
        thread->pthread = state->pthread;
        thread->state_tid = state->tid;
        thread->cpu_ns = UINT64_MAX;
        stat_open(thread);
    }
}

/* --- One look ---------------------------------------------------------------------------- */

static void keep(sampler_work *work, watched *thread, bool fresh)
{
    sw_peek peek;
    tree_totals *totals = work->subject.totals;
    tree_tag *tag = &thread->tag;
    if (sw_peek_thread(thread->tid, true, &peek) == SW_ENOTFOUND &&
        sw_thread_adopt(thread->tid) == SW_OK) {
        (void)sw_peek_thread(thread->tid, true, &peek);
    }
    tag->thread = peek.thread;
    tag->tid = thread->tid;
    tag->section = peek.section;
    tag->node = peek.node;
    tag->domain = peek.domain;
    tag->phase = peek.phase;
    tag->step = peek.step;
    if (fresh) {
        totals->leaf_only += tag->leaf_only;
        totals->outer_only += tag->outer_only;
    }
    if (tree_add(work->subject.tree, tag, thread->frames, thread->depth) == TREE_NONE) {
        totals->given_up++;
    } else {
        totals->kept++;
    }
}

/* Functions and lines of work->stack. The tree's lock is held. */
static bool resolve(sampler_work *work, watched *thread)
{
    walk_stack *stack = &work->stack;
    tree_frame *frames = thread->frames;
    bool native = false;
    if (codes_resolve(work->codes, &work->reader, stack,
                      thread->last.depth ? &thread->last : NULL, frames, &native) != 0) {
        thread->depth = 0;
        thread->last.depth = 0;
        return false;
    }
    thread->depth = stack->depth;
    if (stack->cut_at) {
        memmove(frames + stack->cut_at + 1, frames + stack->cut_at,
                (stack->depth - stack->cut_at) * sizeof *frames);
        frames[stack->cut_at] = (tree_frame){codes_left_out(work->codes), 0};
        thread->depth++;
    }
    thread->tag.native = native;
    thread->last.depth = stack->depth;
    memcpy(thread->last.frames, stack->frames, stack->depth * sizeof stack->frames[0]);
    return true;
}

/* The tree's lock is held. */
static enum walk_result look_anew(sampler_work *work, watched *thread)
{
    enum walk_result result = WALK_FAILED;
    for (int i = 0; i < 2 && result == WALK_FAILED; i++) {
        result = walker_look(work->walker, &thread->walk, &work->stack);
        work->subject.totals->retries += work->stack.retries + (i > 0);
        if ((result == WALK_WHOLE || result == WALK_OUTER_ONLY) &&
            !resolve(work, thread)) {
            result = WALK_FAILED;
        }
    }
    if (result == WALK_FAILED) {
        result = walker_leaf(work->walker, &thread->walk, &work->stack);
        if (result == WALK_LEAF_ONLY && !resolve(work, thread)) {
            result = WALK_FAILED;
        }
    }
    return result;
}

static void look(sampler_work *work, watched *thread)
{
    const uint64_t cpu = thread_cpu_ns(thread->tid);
    tree_totals *totals = work->subject.totals;
    tree_tag *tag = &thread->tag;
    totals->looks++;
    /* A thread that has not run since, and was asleep, is where it was. */
    if (cpu != UINT64_MAX && cpu == thread->cpu_ns && thread->depth > 0 && tag->state &&
        tag->state != 'R') {
        keep(work, thread, false);
        return;
    }
    const enum walk_result result = look_anew(work, thread);
    tag->state = stat_read(thread);
    tag->running =
        tag->state ? tag->state == 'R' : (cpu != thread->cpu_ns || cpu == UINT64_MAX);
    thread->cpu_ns = cpu;
    tag->leaf_only = result == WALK_LEAF_ONLY;
    tag->outer_only = result == WALK_OUTER_ONLY;
    switch (result) {
    case WALK_WHOLE:
    case WALK_OUTER_ONLY:
    case WALK_LEAF_ONLY:
        keep(work, thread, true);
        break;
    case WALK_EMPTY:
    case WALK_GONE:
        totals->empty++;
        thread->depth = 0;
        break;
    case WALK_FAILED:
        totals->given_up++;
        thread->depth = 0;
        break;
    }
}

/* --- One round --------------------------------------------------------------------------- */

/* Reads the thread states that were there in the last round, and the head of the list, at once. */
static uint64_t read_states(sampler_work *work, uint32_t *usable)
{
    uint64_t head = 0;
    work->plan[0] =
        (core_extent){layout_threads_head(work->subject.interpreter), sizeof head, &head};
    uint32_t count = 1;
    /* With the GIL only what is known to be there may be read. */
    if (work->reader.mode != CORE_READ_GIL) {
        for (uint32_t i = 0; i < work->count && count < CORE_EXTENTS; i++) {
            work->plan[count++] =
                (core_extent){work->threads[i]->walk.state, (uint32_t)layout_thread_size,
                              work->states[i]};
        }
    }
    const size_t done = core_read_all(&work->reader, work->plan, count);
    *usable = done > 0 ? (uint32_t)done - 1 : 0;
    return done > 0 ? head : 0;
}

/* Reads the list of threads into work->list. How many; UINT32_MAX: it changed meanwhile. */
static uint32_t list_threads(sampler_work *work)
{
    uint8_t bytes[STATE_BYTES];
    uint32_t known = 0, count = 0;
    uint64_t address = read_states(work, &known), before = 0;
    for (; address && count < THREADS_MOST; count++) {
        layout_thread *state = &work->list[count].state;
        const uint8_t *copy = bytes;
        if (count < known && work->threads[count]->walk.state == address) {
            copy = work->states[count];
        } else if (core_read(&work->reader, address, bytes, layout_thread_size) != 0) {
            return UINT32_MAX;
        }
        layout_thread_parse(copy, state);
        if (state->interpreter != work->subject.interpreter ||
            state->previous != before) {
            return UINT32_MAX;
        }
        work->list[count].address = address;
        before = address;
        address = state->next;
    }
    work->subject.totals->left_out += address != 0;
    return count;
}

/* Brings work->threads into line with the list; what is known of a thread stays with it. */
static void follow_list(sampler_work *work, uint32_t count)
{
    watched **next = work->spare;
    uint32_t kept = 0, hint = 0;
    for (uint32_t i = 0; i < count; i++) {
        watched *found = NULL;
        for (uint32_t k = 0; k < work->count && !found; k++) {
            const uint32_t at = (hint + k) % work->count;
            watched *known = work->threads[at];
            if (known && known->walk.state == work->list[i].address &&
                known->walk.id == work->list[i].state.id) {
                found = known;
                work->threads[at] = NULL;
                hint = at + 1;
            }
        }
        if (found) {
            watched_check(work, found, &work->list[i].state);
        } else {
            found = watched_new(work, work->list[i].address, &work->list[i].state);
        }
        if (found) {
            next[kept++] = found;
        } else {
            work->subject.totals->left_out++;
        }
    }
    for (uint32_t i = 0; i < work->count; i++) {
        watched_free(work->threads[i]);
    }
    work->spare = work->threads;
    work->threads = next;
    work->count = kept;
}

void round_look(sampler_work *work)
{
    const uint32_t self = (uint32_t)own_tid();
    uint32_t count = UINT32_MAX;
    for (int i = 0; i < 4 && count == UINT32_MAX; i++) {
        count = list_threads(work);
    }
    if (count != UINT32_MAX) {
        follow_list(work, count);
    }
    for (uint32_t i = 0; i < work->count; i++) {
        if (work->threads[i]->tid != self || work->reader.mode == CORE_READ_GIL) {
            look(work, work->threads[i]);
        }
    }
    work->subject.totals->rounds++;
}

void round_free(sampler_work *work)
{
    if (work) {
        for (uint32_t i = 0; work->threads && i < work->count; i++) {
            watched_free(work->threads[i]);
        }
        free(work->threads);
        free(work->spare);
        walker_free(work->walker);
        codes_free(work->codes);
        core_memory_close(&work->reader);
        free(work);
    }
}

sampler_work *round_new(const sampler_subject *subject, const char **why)
{
    const char *wanted = getenv("_STEPWATCH_SAMPLER_READER");
    enum core_read_mode best = CORE_READ_VM;
    if (wanted && strcmp(wanted, "mem") == 0) {
        best = CORE_READ_MEM;
    } else if (wanted && strcmp(wanted, "gil") == 0) {
        best = CORE_READ_GIL;
    }
    sampler_work *work = calloc(1, sizeof *work);
    if (!work) {
        return NULL;
    }
    work->subject = *subject;
    core_memory_open(&work->reader, best, why);
    work->threads = calloc(THREADS_MOST, sizeof *work->threads);
    work->spare = calloc(THREADS_MOST, sizeof *work->spare);
    work->codes = codes_new(subject->tree);
    work->walker = walker_new(&work->reader, subject->interpreter);
    if (!work->threads || !work->spare || !work->codes || !work->walker ||
        layout_thread_size > STATE_BYTES) {
        round_free(work);
        return NULL;
    }
    return work;
}

void round_begin(sampler_work *work)
{
    work->tid_offset = find_tid_offset(&work->reader);
}

enum core_read_mode round_reader(const sampler_work *work)
{
    return work->reader.mode;
}
