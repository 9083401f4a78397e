/* Modules of models: what they are, from their rows; how long they took, from the call trees. */
#include <stdlib.h>
#include <string.h>

#include "analyze/summary.h"
#include "analyze/training.h"

static const struct sw__bag_key *key_of(sw_training *training, const char *text)
{
    struct sw__bag_key *key = sw__key_begin(training);
    sw__key_text(key, text);
    return key;
}

/* Copies of a model (ranks, folds of a cross-validation) have the same parameters: they count once. */
static void add_row(const struct sw__training_source *source, const sw_row *row,
                    sw_training_module *module)
{
    const char *dtype = sw__row_text(source->trace, row->key[2]);
    module->root |= (row->flags & SW_ROW_MODEL) != 0;
    module->loss |= (row->flags & SW_ROW_LOSS) != 0;
    module->dtype = module->dtype ? module->dtype : dtype;
    module->site = module->site ? module->site : sw__row_site(source, row->key[3]);
    sw__most(&module->parameters, row->value[0]);
    sw__most(&module->bytes, row->value[1]);
    sw__most(&module->trainable, row->value[2]);
    module->backward_ns = sw__add(module->backward_ns, sw__row_ns(source, row->value[3]));
    module->backward_calls = sw__add(module->backward_calls, row->value[4]);
}

static int add_rows(const struct sw__training_source *source)
{
    sw_training *training = source->training;
    const size_t count = sw_trace_row_count(source->trace, SW_TABLE_MODULE);
    for (size_t i = 0; i < count; i++) {
        const sw_row *row = sw_trace_get_row(source->trace, SW_TABLE_MODULE, i);
        const char *name = row ? sw__row_text(source->trace, row->key[0]) : NULL;
        bool fresh;
        if (!name) {
            continue; /* nothing could be said of it */
        }
        sw_training_module *module =
            sw__bag_put(&training->modules, key_of(training, name), &fresh);
        if (!module) {
            return SW_ENOMEM;
        }
        if (fresh) {
            *module =
                (sw_training_module){.name = name,
                                     .type = sw__row_text(source->trace, row->key[1]),
                                     .min_ns = SW_UNKNOWN,
                                     .max_ns = SW_UNKNOWN};
        }
        add_row(source, row, module);
    }
    return SW_OK;
}

/* --- the call trees --- */

struct tree {
    const struct sw__training_source *source;
    const sw_trace_lane *lane;
    const uint32_t *module_of; /* by name id: place in the bag + 1, 0 none */
    uint32_t *first, *next;    /* children of a node; 0: none */
    uint32_t *inside;          /* by module: times it is open on the way down */
};

static sw_training_module *module_of(const struct tree *tree, size_t node, size_t *index)
{
    const uint32_t section = tree->lane->nodes[node].section;
    const uint32_t found =
        section < sw_trace_name_limit(tree->source->trace) ? tree->module_of[section] : 0;
    *index = found - 1u;
    return found ? sw__bag_at(&tree->source->training->modules, found - 1) : NULL;
}

static bool evaluates(const struct tree *tree, size_t node)
{
    const sw_trace_name *name =
        sw_trace_get_name(tree->source->trace, tree->lane->nodes[node].section);
    return name && name->phase == SW_PHASE_VALIDATION;
}

static void enter(struct tree *tree, size_t node, size_t validations)
{
    const sw_trace_node *from = &tree->lane->nodes[node];
    size_t index;
    sw_training_module *module = module_of(tree, node, &index);
    if (!module || from->kind != 0) {
        return;
    }
    const uint64_t total = tree->inside[index]++ == 0 ? from->inclusive_ns : 0;
    if (validations > 0) {
        module->validation_calls = sw__add(module->validation_calls, from->calls);
        module->validation_ns = sw__add(module->validation_ns, total);
        return;
    }
    module->calls = sw__add(module->calls, from->calls);
    module->total_ns = sw__add(module->total_ns, total);
    module->self_ns = sw__add(module->self_ns, from->self_ns);
    if (from->calls > 0) {
        sw__least(&module->min_ns, from->min_ns);
        sw__most(&module->max_ns, from->max_ns);
    }
}

static void leave(struct tree *tree, size_t node)
{
    size_t index;
    if (module_of(tree, node, &index) && tree->lane->nodes[node].kind == 0) {
        tree->inside[index]--;
    }
}

/* Goes down and up the tree once; parents come before their children in the array, so there are no circles. */
static void walk(struct tree *tree)
{
    const sw_trace_lane *lane = tree->lane;
    size_t validations = 0;
    for (size_t i = lane->node_count; i-- > 1;) {
        const uint32_t parent = lane->nodes[i].parent < i ? lane->nodes[i].parent : 0;
        tree->next[i] = tree->first[parent];
        tree->first[parent] = (uint32_t)i;
    }
    size_t node = 0;
    for (;;) {
        if (tree->first[node]) {
            node = tree->first[node];
            validations += evaluates(tree, node);
            enter(tree, node, validations);
            continue;
        }
        while (node != 0 && !tree->next[node]) {
            validations -= evaluates(tree, node);
            leave(tree, node);
            node = lane->nodes[node].parent < node ? lane->nodes[node].parent : 0;
            tree->first[node] = 0; /* all of them are done */
        }
        if (node == 0) {
            return;
        }
        validations -= evaluates(tree, node);
        leave(tree, node);
        node = tree->next[node];
        validations += evaluates(tree, node);
        enter(tree, node, validations);
    }
}

static int add_lane(const struct sw__training_source *source, const sw_trace_lane *lane,
                    const uint32_t *modules)
{
    struct tree tree = {.source = source, .lane = lane, .module_of = modules};
    tree.first = sw__alloc_zero(lane->node_count + 1, sizeof *tree.first);
    tree.next = sw__alloc_zero(lane->node_count + 1, sizeof *tree.next);
    tree.inside =
        sw__alloc_zero(source->training->modules.count + 1, sizeof *tree.inside);
    const bool good = tree.first && tree.next && tree.inside;
    if (good && lane->node_count > 1) {
        walk(&tree);
    }
    sw__free(tree.first);
    sw__free(tree.next);
    sw__free(tree.inside);
    return good ? SW_OK : SW_ENOMEM;
}

int sw__training_modules(const struct sw__training_source *source)
{
    sw_training *training = source->training;
    const uint32_t limit = sw_trace_name_limit(source->trace);
    int error = add_rows(source);
    if (error || training->modules.count == 0) {
        return error;
    }
    uint32_t *modules = sw__alloc_zero((size_t)limit + 1, sizeof *modules);
    bool any = false;
    for (uint32_t id = 1; modules && id < limit; id++) {
        const sw_trace_name *name = sw_trace_get_name(source->trace, id);
        /* Other domains are profilers of the program's own. */
        if (name && name->use == 1 && name->domain == 0 && name->text) {
            modules[id] = sw__bag_find(&training->modules, key_of(training, name->text));
            any |= modules[id] != 0;
        }
    }
    error = modules ? SW_OK : SW_ENOMEM;
    for (size_t i = 0; any && !error && i < sw_trace_lane_count(source->trace); i++) {
        const sw_trace_lane *lane = sw_trace_get_lane(source->trace, i);
        if (lane->domain == 0) {
            error = add_lane(source, lane, modules);
        }
    }
    sw__free(modules);
    return error;
}

/* --- when all are in --- */

static int by_self(const void *left, const void *right)
{
    const sw_training_module *a = left;
    const sw_training_module *b = right;
    if (a->self_ns != b->self_ns) {
        return a->self_ns > b->self_ns ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

static int by_bytes(const void *left, const void *right)
{
    const sw_training_dtype *a = left;
    const sw_training_dtype *b = right;
    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    return strcmp(a->dtype, b->dtype);
}

int sw__training_finish_modules(sw_training *training)
{
    struct sw__bag *modules = &training->modules;
    for (size_t i = 0; i < modules->count; i++) {
        const sw_training_module *module = sw__bag_at(modules, i);
        bool fresh;
        if (!module->dtype) {
            continue;
        }
        sw_training_dtype *dtype =
            sw__bag_put(&training->dtypes, key_of(training, module->dtype), &fresh);
        if (!dtype) {
            return SW_ENOMEM;
        }
        dtype->dtype = module->dtype;
        dtype->modules++;
        dtype->parameters = sw__add(dtype->parameters, module->parameters);
        dtype->bytes = sw__add(dtype->bytes, module->bytes);
        dtype->trainable = sw__add(dtype->trainable, module->trainable);
    }
    if (modules->count > 1) {
        qsort(modules->items, modules->count, modules->size, by_self);
    }
    if (training->dtypes.count > 1) {
        qsort(training->dtypes.items, training->dtypes.count, training->dtypes.size,
              by_bytes);
    }
    return SW_OK;
}

const sw_training_module *sw_training_modules(const sw_training *training, size_t *count)
{
    *count = training->modules.count;
    return sw__bag_at(&training->modules, 0);
}

const sw_training_dtype *sw_training_dtypes(const sw_training *training, size_t *count)
{
    *count = training->dtypes.count;
    return sw__bag_at(&training->dtypes, 0);
}
