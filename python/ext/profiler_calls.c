/* What is open on which thread, and what a call that ends adds to its section and its path.
 *
 * A thread has a stack of entries in each profiler while it has calls open there. A call's parent is the newest entry of the
 * thread that was opened in the same context or in one that is being left for it: tasks of an event loop have a context
 * each, so what one task has open is no parent of what another one does. */
#include "frames.h"
#include "profiler.h"
#include "ticks.h"
#include <internal/pycore_context.h>
#include <stdlib.h>
#include <stepwatch/heap.h>
#include <stepwatch/host.h>
#include <string.h>

/* Beyond this many paths the names still count, their paths together. */
enum { MOST_NODES = 1 << 18, OTHER_PATHS = 1 };

/* What a call sees of the memory. */
typedef struct memory_look {
    bool on;
    int window;         /* of the allocation counters; -1: they do not run */
    uint64_t rss, peak; /* at its begin: resident, and the most there ever was */
    uint64_t most;      /* that was seen meanwhile */
} memory_look;

struct profiler_entry {
    profiler_entry *older; /* on its stack; free entries: the next one */
    profiler_entry *next;  /* of all entries of the profiler */
    profiler_entry *parent;
    uint64_t serial, parent_serial; /* the parent is open if it still has this number */
    profiler_section *section;
    profiler_key key;
    const void *context;
    uint64_t begin;    /* ticks */
    uint64_t children; /* ns */
    uint32_t node;
    uint32_t recording; /* number of the one that it is a section of, too; 0: none */
    bool outermost; /* no call of the same section is among those it was called from */
    memory_look memory;
};

struct profiler_stack {
    profiler_stack *next;
    uint64_t thread; /* whose it is while something is open on it */
    profiler_entry *newest;
};

/* --- Threads ---------------------------------------------------------------------- */

static uint64_t threads;
CORE_THREAD_LOCAL uint64_t thread_number; /* 0: none yet; never used again */

/* Stacks that this thread had last, by profiler. */
enum { KNOWN_STACKS = 4 };
CORE_THREAD_LOCAL struct {
    uint64_t profiler;
    profiler_stack *stack;
} known_stacks[KNOWN_STACKS];

/* The calling thread's stack; NULL: it has nothing open. A stack on which nothing is open belongs to nobody. */
static profiler_stack *stack_find(profiler_object *self)
{
    const size_t slot = self->id % KNOWN_STACKS;
    if (known_stacks[slot].profiler == self->id &&
        known_stacks[slot].stack->thread == thread_number) {
        return known_stacks[slot].stack;
    }
    for (profiler_stack *stack = self->stacks; stack; stack = stack->next) {
        if (stack->newest && stack->thread == thread_number) {
            known_stacks[slot].profiler = self->id;
            known_stacks[slot].stack = stack;
            return stack;
        }
    }
    return NULL;
}

static profiler_stack *stack_get(profiler_object *self)
{
    if (thread_number == 0) {
        thread_number = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
    }
    profiler_stack *stack = stack_find(self);
    if (stack) {
        return stack;
    }
    for (stack = self->stacks; stack && stack->newest; stack = stack->next) {
    }
    if (!stack) {
        stack = calloc(1, sizeof *stack);
        if (!stack) {
            return NULL;
        }
        stack->next = self->stacks;
        self->stacks = stack;
    }
    stack->thread = thread_number;
    known_stacks[self->id % KNOWN_STACKS].profiler = self->id;
    known_stacks[self->id % KNOWN_STACKS].stack = stack;
    return stack;
}

/* --- Entries ---------------------------------------------------------------------- */

static profiler_entry *entry_new(profiler_object *self)
{
    profiler_entry *entry = self->free_entries;
    if (entry) {
        self->free_entries = entry->older;
    } else {
        entry = calloc(1, sizeof *entry);
        if (!entry) {
            return NULL;
        }
        entry->next = self->all_entries;
        self->all_entries = entry;
    }
    entry->serial = ++self->serial;
    return entry;
}

static profiler_entry *entry_parent(const profiler_entry *entry)
{
    profiler_entry *parent = entry->parent;
    return parent && parent->serial == entry->parent_serial ? parent : NULL;
}

/* Takes an entry off its stack. Its contents stay until the next one is made. */
static void entry_remove(profiler_object *self, profiler_entry **link)
{
    profiler_entry *entry = *link;
    *link = entry->older;
    entry->older = self->free_entries;
    self->free_entries = entry;
    entry->serial = 0;
    __atomic_sub_fetch(&entry->section->open, 1, __ATOMIC_RELAXED);
}

/* Where the call hangs that ends; NULL: it is not on this stack. `exact`: it ended where it began. */
static profiler_entry **entry_find(profiler_stack *stack, const profiler_section *section,
                                   profiler_key key, bool exact)
{
    for (profiler_entry **link = &stack->newest; *link; link = &(*link)->older) {
        const profiler_entry *entry = *link;
        if (entry->section == section &&
            (exact ? entry->key.where == key.where
                   : !entry->key.suspends && !key.suspends)) {
            return link;
        }
    }
    return NULL;
}

static profiler_entry **entry_find_anywhere(profiler_section *section, profiler_key key)
{
    profiler_object *self = section->profiler;
    profiler_stack *own = stack_find(self);
    profiler_entry **found = own ? entry_find(own, section, key, true) : NULL;
    /* Opened and closed by hand, in functions of their own. While the profiler is off, a call that was never opened ends
     * like this, and the one around it goes on. */
    if (!found && own && profiler_is_enabled(self)) {
        found = entry_find(own, section, key, false);
    }
    /* A generator that another thread ends. */
    for (profiler_stack *stack = self->stacks; !found && key.suspends && stack;
         stack = stack->next) {
        found = entry_find(stack, section, key, true);
    }
    return found;
}

/* Whether what was opened in `context` is around what runs in `now`. */
static bool context_is_around(const void *context, const void *now)
{
    if (!context) {
        return true; /* the thread had none yet: it is around everything */
    }
    for (const PyContext *each = now; each; each = each->ctx_prev) {
        if (each == context) {
            return true;
        }
    }
    return false;
}

static profiler_entry *parent_of(const profiler_stack *stack, const void *context)
{
    for (profiler_entry *entry = stack->newest; entry; entry = entry->older) {
        if (entry->context == context || context_is_around(entry->context, context)) {
            return entry;
        }
    }
    return NULL;
}

/* --- Paths ------------------------------------------------------------------------ */

static size_t table_slot(const profiler_object *self, uint32_t parent,
                         const profiler_section *section)
{
    uint64_t hash = ((uint64_t)(uintptr_t)section >> 4) * 0x9e3779b97f4a7c15u;
    hash ^= (uint64_t)parent * 0xc2b2ae3d27d4eb4fu;
    size_t slot = (size_t)((hash ^ (hash >> 29)) * 0x9e3779b97f4a7c15u >> 20) &
                  (self->table_size - 1);
    for (;;) {
        const uint32_t node = self->table[slot];
        if (node == 0 || (self->nodes[node].parent == parent &&
                          self->nodes[node].section == section)) {
            return slot;
        }
        slot = (slot + 1) & (self->table_size - 1);
    }
}

/* Room for one more node. */
static bool nodes_grow(profiler_object *self)
{
    if (self->node_count < self->node_room) {
        return true;
    }
    const uint32_t room = self->node_room ? self->node_room * 2 : 64;
    profiler_node *nodes =
        room <= MOST_NODES ? realloc(self->nodes, room * sizeof *nodes) : NULL;
    if (!nodes) {
        return false;
    }
    self->nodes = nodes;
    uint32_t *table = calloc((size_t)room * 2, sizeof *table);
    if (!table) {
        return false;
    }
    free(self->table);
    self->table = table;
    self->table_size = (size_t)room * 2;
    self->node_room = room;
    for (uint32_t i = OTHER_PATHS + 1; i < self->node_count; i++) {
        table[table_slot(self, nodes[i].parent, nodes[i].section)] = i;
    }
    return true;
}

static uint32_t node_get(profiler_object *self, uint32_t parent,
                         profiler_section *section)
{
    if (section->last_node && section->last_parent == parent) {
        return section->last_node;
    }
    uint32_t node = self->table[table_slot(self, parent, section)];
    if (node == 0 && parent != OTHER_PATHS && nodes_grow(self)) {
        node = self->node_count++;
        self->nodes[node] = (profiler_node){.parent = parent, .section = section};
        self->table[table_slot(self, parent, section)] = node;
    }
    if (node == 0) {
        return OTHER_PATHS;
    }
    section->last_parent = parent;
    section->last_node = node;
    return node;
}

/* The path of a call. A recursive one has that of the call it lies in. */
static void entry_place(profiler_object *self, profiler_entry *entry)
{
    profiler_section *section = entry->section;
    const profiler_entry *parent = entry_parent(entry);
    entry->outermost = true;
    for (const profiler_entry *each = profiler_is_open(section) ? parent : NULL; each;
         each = entry_parent(each)) {
        if (each->section == section) {
            entry->outermost = false;
            entry->node = each->node;
            return;
        }
    }
    entry->node = node_get(self, parent ? parent->node : 0, section);
}

/* --- Memory ----------------------------------------------------------------------- */

static void memory_begin(memory_look *look)
{
    look->on = true;
    look->rss = sw_host_resident(0);
    look->peak = sw_host_resident_peak();
    look->most = look->rss;
    look->window = sw_heap_is_on() ? sw_heap_window_open() : -1;
}

/* What a call's memory came to. */
typedef struct memory_result {
    bool known, exact;
    int64_t change;
    uint64_t peak, most;
} memory_result;

static void memory_end(memory_look *look, memory_result *result)
{
    sw_heap_window window = {0};
    if (look->window >= 0) {
        sw_heap_window_read(look->window, &window);
        sw_heap_window_close(look->window);
    }
    const uint64_t rss = sw_host_resident(0);
    const uint64_t peak = sw_host_resident_peak();
    result->known = rss != UINT64_MAX && look->rss != UINT64_MAX;
    if (!result->known) {
        return;
    }
    result->most = look->most > rss ? look->most : rss;
    /* The kernel's mark went up meanwhile: that was now. */
    if (peak != UINT64_MAX && look->peak != UINT64_MAX && peak > look->peak &&
        peak > result->most) {
        result->most = peak;
    }
    result->change = (int64_t)(rss - look->rss);
    result->exact = look->window >= 0;
    result->peak = result->most - look->rss;
    if (result->exact) {
        const int64_t beyond = window.peak - window.begin;
        result->peak = beyond > 0 ? (uint64_t)beyond : 0;
    }
}

static void memory_add(profiler_stats *stats, const memory_result *result)
{
    if (result->known) {
        stats->looked++;
        stats->exact += result->exact;
        stats->memory += result->change;
        stats->peak = stats->peak > result->peak ? stats->peak : result->peak;
        stats->peak_rss = stats->peak_rss > result->most ? stats->peak_rss : result->most;
    }
}

/* --- Begin and end ---------------------------------------------------------------- */

static const void *context_now(void)
{
#if PY_VERSION_HEX >= 0x030d0000
    return PyThreadState_GetUnchecked()->context;
#else
    return _PyThreadState_UncheckedGet()->context;
#endif
}

/* As a section of the recording. */
static uint32_t record_begin(profiler_section *section, profiler_key key)
{
    if (!section->handle) {
        core_text text;
        if (core_text_get(section->name, "name", &text) != 0) {
            PyErr_Clear();
            return 0;
        }
        section->handle =
            sw_section_get_n(text.data, (size_t)text.length, section->phase);
        core_text_release(&text);
    }
    sw_section_begin(section->handle, key.suspends ? (uint64_t)(uintptr_t)key.where : 0);
    return sw_recording_number();
}

static void record_end(profiler_section *section, const profiler_entry *entry,
                       unsigned flags)
{
    if (entry->recording && entry->recording == sw_recording_number()) {
        const profiler_key key = entry->key;
        sw_section_end(section->handle, key.suspends ? (uint64_t)(uintptr_t)key.where : 0,
                       flags);
    }
}

void profiler_enter(profiler_section *section, profiler_key key, bool record)
{
    profiler_object *self = section->profiler;
    memory_look look = {.window = -1};
    if (self->memory) {
        memory_begin(&look);
    }
    const uint32_t recording =
        record && SW_GATE(self->gate) ? record_begin(section, key) : 0;
    const void *context = context_now();
    pthread_mutex_lock(&self->lock);
    profiler_stack *stack = stack_get(self);
    profiler_entry *entry = stack ? entry_new(self) : NULL;
    if (entry) {
        profiler_entry *parent = parent_of(stack, context);
        entry->parent = parent;
        entry->parent_serial = parent ? parent->serial : 0;
        entry->section = section;
        entry->key = key;
        entry->context = context;
        entry->children = 0;
        entry->recording = recording;
        entry->memory = look;
        entry_place(self, entry);
        entry->older = stack->newest;
        stack->newest = entry;
        __atomic_add_fetch(&section->open, 1, __ATOMIC_RELAXED);
        entry->begin = core_ticks();
    }
    pthread_mutex_unlock(&self->lock);
    if (!entry) {
        /* No memory: the call is not counted. */
        if (recording) {
            sw_section_end(section->handle,
                           key.suspends ? (uint64_t)(uintptr_t)key.where : 0, 0);
        }
        if (look.window >= 0) {
            sw_heap_window_close(look.window);
        }
    }
}

static uint64_t ns_of(profiler_object *self, uint64_t begin, uint64_t now)
{
    /* The longer the clock is watched, the better its rate is known. */
    if (now >= self->measure_at) {
        const double measured = core_ticks_ns();
        self->tick_ns = measured > 0 ? measured : self->tick_ns;
        self->measure_at =
            measured > 0 ? now + (now - self->started_tick) / 4 : self->measure_at;
    }
    return now > begin ? (uint64_t)((double)(now - begin) * self->tick_ns + 0.5) : 0;
}

/* A stretch of `ns` is over: everything but the call itself. */
static void stretch_add(profiler_object *self, const profiler_entry *entry, uint64_t ns)
{
    profiler_stats *both[] = {&entry->section->stats, &self->nodes[entry->node].stats};
    profiler_entry *parent = entry_parent(entry);
    if (parent) {
        parent->children += ns;
    }
    for (size_t i = 0; i < 2; i++) {
        both[i]->self += ns > entry->children ? ns - entry->children : 0;
        both[i]->total += entry->outermost ? ns : 0;
    }
}

static void call_add(profiler_object *self, const profiler_entry *entry, uint64_t ns,
                     unsigned flags, const memory_result *memory)
{
    profiler_section *section = entry->section;
    profiler_stats *both[] = {&section->stats, &self->nodes[entry->node].stats};
    if (section->stats.calls == 0) {
        section->order = ++self->orders;
    }
    for (size_t i = 0; i < 2; i++) {
        profiler_stats_add(both[i], ns, 1);
        both[i]->recursive += !entry->outermost;
        both[i]->errors += (flags & SW_RECORD_ERROR) != 0;
        memory_add(both[i], memory);
    }
    profiler_ring_put(&section->values, (int64_t)ns, self->most_values);
    if (memory->known) {
        profiler_entry *parent = entry_parent(entry);
        if (parent && parent->memory.most < memory->most) {
            parent->memory.most = memory->most;
        }
        profiler_ring_put(&section->memory, memory->change, self->most_values);
    }
}

enum how { CALL, STRETCH, NOTHING };

static void end(profiler_section *section, profiler_key key, unsigned flags,
                uint64_t *spent, enum how how)
{
    const uint64_t now = core_ticks();
    profiler_object *self = section->profiler;
    memory_result memory = {0};
    memory_look look = {.window = -1};
    profiler_entry ended = {0};
    pthread_mutex_lock(&self->lock);
    profiler_entry **link = entry_find_anywhere(section, key);
    if (link) {
        look = (*link)->memory;
        if (look.on) {
            /* The files of /proc are read without the lock; nobody else ends this call. */
            pthread_mutex_unlock(&self->lock);
            memory_end(&look, &memory);
            pthread_mutex_lock(&self->lock);
            link = entry_find_anywhere(section, key);
        }
    }
    if (link) {
        ended = **link;
        entry_remove(self, link);
        const uint64_t ns = ns_of(self, ended.begin, now);
        *spent += ns;
        if (how != NOTHING) {
            stretch_add(self, &ended, ns);
        }
        if (how == CALL) {
            call_add(self, &ended, *spent, flags, &memory);
        }
    }
    pthread_mutex_unlock(&self->lock);
    record_end(section, &ended, flags);
}

void profiler_leave(profiler_section *section, profiler_key key, unsigned flags)
{
    uint64_t spent = 0;
    end(section, key, flags, &spent, CALL);
}

void profiler_forget(profiler_section *section, profiler_key key)
{
    uint64_t spent = 0;
    end(section, key, 0, &spent, NOTHING);
}

void profiler_suspend(profiler_section *section, profiler_key key, uint64_t *spent)
{
    end(section, key, 0, spent, STRETCH);
}

void profiler_finish(profiler_section *section, profiler_key key, unsigned flags,
                     uint64_t *spent)
{
    end(section, key, flags, spent, CALL);
}

void profiler_put(profiler_section *section, uint64_t ns, uint64_t count)
{
    profiler_object *self = section->profiler;
    const uint64_t each = (ns + count / 2) / count;
    pthread_mutex_lock(&self->lock);
    if (section->stats.calls == 0) {
        section->order = ++self->orders;
    }
    const uint32_t node = node_get(self, 0, section);
    profiler_stats *both[] = {&section->stats, &self->nodes[node].stats};
    for (size_t i = 0; i < 2; i++) {
        profiler_stats_add(both[i], each, count);
        both[i]->total += ns;
        both[i]->self += ns;
    }
    profiler_ring_put(&section->values, (int64_t)each, self->most_values);
    pthread_mutex_unlock(&self->lock);
}

/* --- All of it -------------------------------------------------------------------- */

static uint64_t profilers;

static void nodes_begin(profiler_object *self)
{
    for (uint32_t i = 0; i < self->node_count; i++) {
        profiler_stats_clear(&self->nodes[i].stats);
    }
    memset(self->table, 0, self->table_size * sizeof *self->table);
    memset(self->nodes, 0, (OTHER_PATHS + 1) * sizeof *self->nodes);
    self->node_count = OTHER_PATHS + 1;
}

int profiler_calls_init(profiler_object *self)
{
    self->id = __atomic_add_fetch(&profilers, 1, __ATOMIC_RELAXED);
    self->gate = sw_section_get_n("", 0, SW_PHASE_INHERIT);
    core_ticks_init();
    self->tick_ns = 1.0;
    self->started_tick = core_ticks();
    if (pthread_mutex_init(&self->lock, NULL) != 0 || !nodes_grow(self)) {
        PyErr_NoMemory();
        return -1;
    }
    nodes_begin(self);
    return 0;
}

void profiler_calls_free(profiler_object *self)
{
    for (uint32_t i = 0; i < self->node_count; i++) {
        profiler_stats_clear(&self->nodes[i].stats);
    }
    free(self->nodes);
    free(self->table);
    while (self->stacks) {
        profiler_stack *stack = self->stacks;
        self->stacks = stack->next;
        free(stack);
    }
    while (self->all_entries) {
        profiler_entry *entry = self->all_entries;
        self->all_entries = entry->next;
        free(entry);
    }
    pthread_mutex_destroy(&self->lock);
}

/* Turns a stack around. */
static profiler_entry *entries_turn(profiler_entry *newest)
{
    profiler_entry *turned = NULL;
    while (newest) {
        profiler_entry *older = newest->older;
        newest->older = turned;
        turned = newest;
        newest = older;
    }
    return turned;
}

/* Entries older ones first: a path needs its parent's. There may be one of each of very many tasks, so nothing recurses. */
static void places_renew(profiler_object *self, profiler_stack *stack, uint64_t now)
{
    profiler_entry *oldest = entries_turn(stack->newest);
    for (profiler_entry *entry = oldest; entry; entry = entry->older) {
        entry->begin = now;
        entry->children = 0;
        entry_place(self, entry);
    }
    stack->newest = entries_turn(oldest);
}

/* The sections' own statistics are cleared by the caller, which knows them. */
void profiler_calls_reset(profiler_object *self)
{
    nodes_begin(self);
    self->orders = 0;
    self->started_tick = core_ticks();
    for (profiler_stack *stack = self->stacks; stack; stack = stack->next) {
        places_renew(self, stack, self->started_tick);
    }
}

void profiler_calls_drop(profiler_object *self)
{
    for (profiler_stack *stack = self->stacks; stack; stack = stack->next) {
        while (stack->newest) {
            /* There are few of them for the whole process. */
            sw_heap_window_close(stack->newest->memory.window);
            entry_remove(self, &stack->newest);
        }
    }
    nodes_begin(self);
}
