/* What the sampler has seen, as a tree of call paths below contexts, and the same in the trace: a row a context and a
 * row a path, which are counted up in place, so that a killed program loses nothing. */
#include "sampler.h"

#include "code_rows.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <stepwatch/clock.h>
#include <stepwatch/stepwatch.h>
#include <string.h>

#define NODE_ROOM (TREE_NODES * 2)
#define FUNCTION_ROOM (TREE_FUNCTIONS * 2)
#define TEXT_BLOCK 65536u

/* A piece of memory for texts. */
typedef struct text_block {
    struct text_block *next;
    size_t used;
    char data[TEXT_BLOCK];
} text_block;

/* Samples of a path in the open step of a thread: it may turn out to be none. */
typedef struct open_samples {
    uint32_t tid, node;
    int64_t step;
    tree_counts counts;
} open_samples;
#define OPEN_PATHS 1024u

/* Arrays grow by doubling up to their limits; places in hash tables hold index + 1, 0 is free. */
struct sampler_tree {
    pthread_mutex_t lock;
    _Atomic uint32_t owners;
    tree_node *nodes;
    uint32_t node_count, node_room;
    uint32_t *node_places;
    tree_function *functions;
    uint32_t function_count, function_room;
    uint32_t *function_places;
    tree_context *contexts;
    uint32_t context_count, context_room;
    open_samples *open;
    uint32_t open_count, open_room;
    text_block *texts;
    tree_totals totals;
    uint32_t number; /* of the recording that rows are made in */
    uint64_t totals_handle;
    tree_totals totals_before; /* what was counted before this recording began */
    uint32_t more;             /* function "(more)" */
    sw_clock_snapshot begun;   /* for the rate of ticks */
};

sampler_tree *tree_new(void)
{
    sampler_tree *tree = calloc(1, sizeof *tree);
    if (!tree) {
        return NULL;
    }
    tree->node_places = calloc(NODE_ROOM, sizeof *tree->node_places);
    tree->function_places = calloc(FUNCTION_ROOM, sizeof *tree->function_places);
    pthread_mutex_init(&tree->lock, NULL);
    atomic_store(&tree->owners, 1);
    tree->more = TREE_NONE;
    sw_clock_snap(&tree->begun);
    if (!tree->node_places || !tree->function_places) {
        tree_drop(tree);
        return NULL;
    }
    return tree;
}

void tree_keep(sampler_tree *tree)
{
    atomic_fetch_add(&tree->owners, 1);
}

void tree_drop(sampler_tree *tree)
{
    if (!tree || atomic_fetch_sub(&tree->owners, 1) > 1) {
        return;
    }
    for (text_block *block = tree->texts; block;) {
        text_block *next = block->next;
        free(block);
        block = next;
    }
    free(tree->nodes);
    free(tree->node_places);
    free(tree->functions);
    free(tree->function_places);
    free(tree->contexts);
    free(tree->open);
    pthread_mutex_destroy(&tree->lock);
    free(tree);
}

void tree_lock(sampler_tree *tree)
{
    pthread_mutex_lock(&tree->lock);
}

void tree_unlock(sampler_tree *tree)
{
    pthread_mutex_unlock(&tree->lock);
}

void tree_after_fork(sampler_tree *tree)
{
    pthread_mutex_init(&tree->lock, NULL);
}

/* Room for one more in an array. */
static bool grow(void **array, uint32_t count, uint32_t *room, uint32_t most, size_t size)
{
    if (count < *room) {
        return true;
    }
    const uint32_t wanted = *room ? *room * 2 : 256;
    if (count >= most) {
        return false;
    }
    void *larger = realloc(*array, (size_t)wanted * size);
    if (!larger) {
        return false;
    }
    *array = larger;
    *room = wanted;
    return true;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* --- Functions ------------------------------------------------------------------------- */

static bool text_keep(sampler_tree *tree, tree_text *text)
{
    text_block *block = tree->texts;
    const size_t size = text->length + 1u;
    if (size > TEXT_BLOCK) {
        return false;
    }
    if (!block || block->used + size > TEXT_BLOCK) {
        block = malloc(sizeof *block);
        if (!block) {
            return false;
        }
        block->next = tree->texts;
        block->used = 0;
        tree->texts = block;
    }
    char *at = block->data + block->used;
    memcpy(at, text->data, text->length);
    at[text->length] = '\0';
    block->used += size;
    text->data = at;
    return true;
}

static uint64_t hash_text(uint64_t hash, tree_text text)
{
    for (uint32_t i = 0; i < text.length; i++) {
        hash = (hash ^ (uint8_t)text.data[i]) * 0x100000001b3u;
    }
    return mix(hash, text.length);
}

static bool same_text(tree_text a, tree_text b)
{
    return a.length == b.length && memcmp(a.data, b.data, a.length) == 0;
}

static uint32_t function_more(sampler_tree *tree)
{
    if (tree->more == TREE_NONE &&
        grow((void **)&tree->functions, tree->function_count, &tree->function_room,
             TREE_FUNCTIONS + 1, sizeof *tree->functions)) {
        const tree_text text = {"(more)", 6}, none = {"", 0};
        tree->functions[tree->function_count] =
            (tree_function){.file = none, .qualname = text, .name = text};
        tree->more = tree->function_count++;
    }
    return tree->more;
}

uint32_t tree_function_get(sampler_tree *tree, tree_text file, tree_text qualname,
                           tree_text name, uint32_t first_line)
{
    uint64_t at = hash_text(hash_text(hash_text(first_line, file), qualname), name) >> 16;
    for (;; at++) {
        const uint32_t place = tree->function_places[at % FUNCTION_ROOM];
        if (place == 0) {
            break;
        }
        const tree_function *known = &tree->functions[place - 1];
        if (known->first_line == first_line && same_text(known->name, name) &&
            same_text(known->qualname, qualname) && same_text(known->file, file)) {
            return place - 1;
        }
    }
    if (tree->function_count >= TREE_FUNCTIONS) {
        return function_more(tree);
    }
    tree_function made = {
        .file = file, .qualname = qualname, .name = name, .first_line = first_line};
    if (!grow((void **)&tree->functions, tree->function_count, &tree->function_room,
              TREE_FUNCTIONS + 1, sizeof *tree->functions) ||
        !text_keep(tree, &made.file) || !text_keep(tree, &made.qualname) ||
        !text_keep(tree, &made.name)) {
        return TREE_NONE;
    }
    tree->functions[tree->function_count] = made;
    tree->function_places[at % FUNCTION_ROOM] = ++tree->function_count;
    return tree->function_count - 1;
}

/* Index of the function's row; CORE_NO_CODE when there can be none. */
static uint32_t function_row(sampler_tree *tree, uint32_t index)
{
    tree_function *function = &tree->functions[index];
    if (function->number != tree->number || function->row == CORE_NO_CODE) {
        function->row = core_code_row(function->file.data, function->file.length,
                                      function->qualname.data, function->qualname.length,
                                      function->name.data, function->name.length,
                                      function->first_line, 0);
        function->number = tree->number;
    }
    return function->row;
}

/* --- Contexts and nodes ---------------------------------------------------------------- */

static uint32_t context_get(sampler_tree *tree, const tree_tag *tag)
{
    /* The newest are the likeliest. */
    for (uint32_t i = tree->context_count; i-- > 0;) {
        const tree_context *at = &tree->contexts[i];
        if (at->tid == tag->tid && at->thread == tag->thread &&
            at->section == tag->section && at->phase == tag->phase &&
            at->domain == tag->domain && !at->no_step) {
            return i;
        }
    }
    if (!grow((void **)&tree->contexts, tree->context_count, &tree->context_room,
              TREE_CONTEXTS, sizeof *tree->contexts)) {
        /* Too many: to the first of the thread, whatever its section. */
        for (uint32_t i = 0; i < tree->context_count; i++) {
            if (tree->contexts[i].tid == tag->tid) {
                return i;
            }
        }
        return tree->context_count ? 0 : TREE_NONE;
    }
    tree->contexts[tree->context_count] = (tree_context){.thread = tag->thread,
                                                         .tid = tag->tid,
                                                         .section = tag->section,
                                                         .domain = tag->domain,
                                                         .phase = tag->phase};
    return tree->context_count++;
}

/* The node of a call from `parent`; TREE_NONE when there are too many. */
static uint32_t node_get(sampler_tree *tree, uint32_t parent, bool top,
                         const tree_frame *frame)
{
    uint64_t at = mix(mix(mix(top ? 1 : 2, parent), frame->function), frame->line) >> 16;
    for (;; at++) {
        const uint32_t place = tree->node_places[at % NODE_ROOM];
        if (place == 0) {
            break;
        }
        const tree_node *known = &tree->nodes[place - 1];
        if (known->parent == parent && known->top == top &&
            known->function == frame->function && known->line == frame->line) {
            return place - 1;
        }
    }
    if (!grow((void **)&tree->nodes, tree->node_count, &tree->node_room, TREE_NODES,
              sizeof *tree->nodes)) {
        return TREE_NONE;
    }
    tree->nodes[tree->node_count] = (tree_node){
        .parent = parent, .function = frame->function, .line = frame->line, .top = top};
    tree->node_places[at % NODE_ROOM] = ++tree->node_count;
    return tree->node_count - 1;
}

/* --- Rows ------------------------------------------------------------------------------ */

static void context_put(sampler_tree *tree, tree_context *context)
{
    if (context->number != tree->number) {
        context->number = tree->number;
        context->handle = 0;
        context->running = context->waiting = 0;
    }
}

static bool context_row(sampler_tree *tree, tree_context *context)
{
    context_put(tree, context);
    sw_row row = {
        .table = SW_TABLE_CONTEXT,
        .flags = context->no_step ? SW_ROW_NO_STEP : 0,
        .key = {context->thread, context->section, context->phase, context->domain},
        .value = {context->running, context->waiting}};
    context->handle = sw_row_put(context->handle, &row);
    context->row = row.index;
    return context->handle != 0;
}

void tree_forget_steps(sampler_tree *tree, uint32_t tid)
{
    for (uint32_t i = 0; i < tree->context_count; i++) {
        tree_context *context = &tree->contexts[i];
        if (context->tid == tid && context->phase != SW_PHASE_INHERIT) {
            context->no_step = true;
            if (context->handle && context->number == tree->number) {
                (void)context_row(tree, context);
            }
        }
    }
}

/* Makes or changes the row of a node whose parent has one. */
static bool node_row(sampler_tree *tree, tree_node *node)
{
    const uint32_t code = function_row(tree, node->function);
    if (code == CORE_NO_CODE) {
        return false;
    }
    const uint32_t parent =
        node->top ? tree->contexts[node->parent].row : tree->nodes[node->parent].row;
    sw_row row = {.table = SW_TABLE_STACK,
                  .flags = node->top ? SW_ROW_IN_CONTEXT : 0,
                  .key = {parent, code, node->line},
                  .value = {node->here.running, node->here.waiting, node->here.native}};
    node->handle = sw_row_put(node->handle, &row);
    node->row = row.index;
    return node->handle != 0;
}

/* Rows for a path from the root: those that are not there yet, and the last one. */
static bool path_rows(sampler_tree *tree, const uint32_t *path, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tree_node *node = &tree->nodes[path[i]];
        if (node->number != tree->number) {
            node->number = tree->number;
            node->handle = 0;
            node->here = (tree_counts){0};
        }
        if (node->handle == 0 && !node_row(tree, node)) {
            node->number = 0; /* next time again */
            return false;
        }
    }
    return true;
}

static void put_sample(sampler_tree *tree, const tree_tag *tag, const tree_frame *frames,
                       size_t depth)
{
    /* A record is at most 255 units, and the frames begin after the first. */
    enum { UNITS = 255, IN_UNIT = SW_RECORD_UNIT / sizeof(sw_record_frame) };
    union {
        sw_record_sample sample;
        sw_record_frame frame[UNITS * IN_UNIT];
        uint8_t bytes[UNITS * SW_RECORD_UNIT];
    } record;
    const size_t most = (UNITS - 1) * IN_UNIT;
    depth = depth < most ? depth : most;
    const size_t units = 1 + (depth + IN_UNIT - 1) / IN_UNIT;
    memset(&record, 0, units * SW_RECORD_UNIT);
    record.sample = (sw_record_sample){
        .head = {.kind = SW_RECORD_SAMPLE, .units = (uint8_t)units, .ticks = sw_now()},
        .thread = tag->thread,
        .node = tag->node,
        .phase = tag->phase,
        .state = (uint8_t)tag->state,
        .in_call = tag->native,
        .leaf_only = tag->leaf_only    ? 1
                     : tag->outer_only ? 2
                                       : 0,
        .depth = (uint16_t)depth,
        .domain = tag->domain};
    for (size_t i = 0; i < depth; i++) {
        record.frame[IN_UNIT + i] =
            (sw_record_frame){function_row(tree, frames[i].function), frames[i].line};
    }
    sw_record_put(&record.sample.head);
}

/* Whether there is a recording to put rows into; everything of an earlier one is forgotten. */
static bool recording(sampler_tree *tree)
{
    const uint32_t number = sw_recording_number();
    if (number != tree->number) {
        tree->number = number;
        tree->totals_handle = 0;
        tree->totals_before = tree->totals;
    }
    return number != 0;
}

/* The path from a context down; its length, 0: there is no place for it. */
static size_t path_get(sampler_tree *tree, uint32_t context, const tree_frame *frames,
                       size_t depth, uint32_t *path)
{
    size_t count = 0;
    uint32_t parent = context;
    bool top = true;
    for (size_t i = depth; i-- > 0;) {
        const uint32_t node = node_get(tree, parent, top, &frames[i]);
        if (node == TREE_NONE) {
            tree->totals.folded++; /* the parent has the sample */
            break;
        }
        path[count++] = node;
        parent = node;
        top = false;
    }
    return count;
}

static void counts_add(tree_counts *to, const tree_counts *more)
{
    to->running += more->running;
    to->waiting += more->waiting;
    to->native += more->native;
}

static void counts_take(tree_counts *from, const tree_counts *less)
{
    from->running -= less->running < from->running ? less->running : from->running;
    from->waiting -= less->waiting < from->waiting ? less->waiting : from->waiting;
    from->native -= less->native < from->native ? less->native : from->native;
}

/* Counts samples of a path, here and in the trace. */
static void path_count(sampler_tree *tree, uint32_t context, const uint32_t *path,
                       size_t count, const tree_counts *more)
{
    tree_node *leaf = &tree->nodes[path[count - 1]];
    counts_add(&leaf->all, more);
    if (recording(tree)) {
        tree_context *at = &tree->contexts[context];
        context_put(tree, at);
        at->running += more->running;
        at->waiting += more->waiting;
        if (context_row(tree, at) && path_rows(tree, path, count)) {
            counts_add(&leaf->here, more);
            (void)node_row(tree, leaf);
        }
    }
}

/* --- The open step --------------------------------------------------------------------- */

static void open_add(sampler_tree *tree, const tree_tag *tag, uint32_t node,
                     const tree_counts *more)
{
    uint32_t kept = 0;
    open_samples *found = NULL;
    for (uint32_t i = 0; i < tree->open_count; i++) {
        const open_samples *at = &tree->open[i];
        if (at->tid != tag->tid || at->step == tag->step) {
            tree->open[kept] = *at; /* Other steps of the thread have ended. */
            found = at->tid == tag->tid && at->node == node ? &tree->open[kept] : found;
            kept++;
        }
    }
    tree->open_count = kept;
    if (tag->step < 0 || tag->phase == SW_PHASE_INHERIT) {
        return;
    }
    if (!found && grow((void **)&tree->open, kept, &tree->open_room, OPEN_PATHS,
                       sizeof *tree->open)) {
        found = &tree->open[tree->open_count++];
        *found = (open_samples){.tid = tag->tid, .node = node, .step = tag->step};
    }
    if (found) {
        counts_add(&found->counts, more);
    }
}

/* Moves samples from a path to the same one in no step. */
static void move_outside(sampler_tree *tree, const open_samples *samples)
{
    tree_frame frames[WALK_FRAMES];
    uint32_t path[WALK_FRAMES];
    size_t depth = 0;
    uint32_t at = samples->node;
    for (bool top = false; !top && depth < WALK_FRAMES;) {
        const tree_node *node = &tree->nodes[at];
        frames[depth++] = (tree_frame){node->function, node->line};
        top = node->top;
        at = node->parent;
    }
    const tree_context from = tree->contexts[at];
    const tree_tag tag = {.thread = from.thread,
                          .tid = from.tid,
                          .section = from.section,
                          .domain = from.domain,
                          .phase = SW_PHASE_INHERIT};
    const uint32_t to = context_get(tree, &tag);
    const size_t count =
        to == TREE_NONE || to == at ? 0 : path_get(tree, to, frames, depth, path);
    if (count == 0) {
        return;
    }
    tree_node *leaf = &tree->nodes[samples->node];
    counts_take(&leaf->all, &samples->counts);
    if (recording(tree) && leaf->handle && leaf->number == tree->number) {
        tree_context *context = &tree->contexts[at];
        tree_counts all = {context->running, context->waiting, 0};
        counts_take(&all, &samples->counts);
        context->running = all.running;
        context->waiting = all.waiting;
        (void)context_row(tree, context);
        counts_take(&leaf->here, &samples->counts);
        (void)node_row(tree, leaf);
    }
    path_count(tree, to, path, count, &samples->counts);
}

void tree_forget_step(sampler_tree *tree, uint32_t tid)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < tree->open_count; i++) {
        if (tree->open[i].tid == tid) {
            move_outside(tree, &tree->open[i]);
        } else {
            tree->open[kept++] = tree->open[i];
        }
    }
    tree->open_count = kept;
}

uint32_t tree_add(sampler_tree *tree, const tree_tag *tag, const tree_frame *frames,
                  size_t depth)
{
    uint32_t path[WALK_FRAMES];
    const uint32_t context = context_get(tree, tag);
    if (context == TREE_NONE || depth == 0 || depth > WALK_FRAMES) {
        return TREE_NONE;
    }
    const size_t count = path_get(tree, context, frames, depth, path);
    if (count == 0) {
        return TREE_NONE;
    }
    const tree_counts one = {
        .running = tag->running, .waiting = !tag->running, .native = tag->native};
    path_count(tree, context, path, count, &one);
    open_add(tree, tag, path[count - 1], &one);
    if (recording(tree)) {
        put_sample(tree, tag, frames, depth);
    }
    return path[count - 1];
}

void tree_put_totals(sampler_tree *tree, double hz, const tree_totals *totals)
{
    const uint64_t folded = tree->totals.folded;
    tree->totals = *totals;
    tree->totals.folded = folded;
    if (recording(tree)) {
        const tree_totals *before = &tree->totals_before;
        sw_clock_snapshot now;
        sw_clock_snap(&now);
        const double ns = (double)(now.mono_ns - tree->begun.mono_ns);
        const double ticks_per_ns =
            ns > 0 ? (double)(now.ticks - tree->begun.ticks) / ns : 1;
        sw_row row = {
            .table = SW_TABLE_SAMPLER,
            .key = {(uint32_t)(hz + 0.5)},
            .value = {
                totals->looks - totals->empty - before->looks + before->empty,
                totals->kept - before->kept,
                totals->leaf_only + totals->outer_only - before->leaf_only -
                    before->outer_only,
                totals->given_up - before->given_up,
                (uint64_t)((double)(totals->cpu_ns - before->cpu_ns) * ticks_per_ns)}};
        tree->totals_handle = sw_row_put(tree->totals_handle, &row);
    }
}

static bool copy_array(void *out, const void *from, size_t size)
{
    void *made = malloc(size + 1);
    if (made && size) {
        memcpy(made, from, size);
    }
    memcpy(out, &made, sizeof made);
    return made != NULL;
}

bool tree_copy_take(const sampler_tree *tree, tree_copy *out)
{
    *out = (tree_copy){.node_count = tree->node_count,
                       .context_count = tree->context_count,
                       .function_count = tree->function_count,
                       .totals = tree->totals};
    const bool all =
        copy_array(&out->nodes, tree->nodes, out->node_count * sizeof *out->nodes) &&
        copy_array(&out->contexts, tree->contexts,
                   out->context_count * sizeof *out->contexts) &&
        copy_array(&out->functions, tree->functions,
                   out->function_count * sizeof *out->functions);
    if (!all) {
        tree_copy_free(out);
    }
    return all;
}

void tree_copy_free(tree_copy *copy)
{
    free(copy->nodes);
    free(copy->contexts);
    free(copy->functions);
    *copy = (tree_copy){0};
}

tree_totals tree_get_totals(const sampler_tree *tree)
{
    return tree->totals;
}
