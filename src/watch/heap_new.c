/* Whether operator new and delete are those of the GNU C++ library, and what it calls for them is what it has itself and malloc and
 * free: then a hook may go there in their place. A program that has operators of its own, or somebody else who stands before malloc
 * in that library (another profiler), keeps them. */
#include "watch/heap.h"

#include "watch/plt.h"
#include <dlfcn.h>
#include <link.h>
#include <string.h>

struct look {
    const struct sw__plt_hook *operators;
    bool right;
};

/* What the library calls: names that any entry of it is looked up by, one after the other. */
enum { MALLOC, FREE, NEW, DELETE };
static struct sw__plt_name calls[] = {[MALLOC] = {.name = "malloc"},
                                      [FREE] = {.name = "free"},
                                      [NEW] = {.name = "_Znwm"},
                                      [DELETE] = {.name = "_ZdlPv"}};

static struct sw__plt_name *is_call(const char *name)
{
    for (size_t i = 0; i < SW__COUNTOF(calls); i++) {
        if (strcmp(calls[i].name, name) == 0) {
            return &calls[i];
        }
    }
    return NULL;
}

/* Its own function, or not bound yet, which comes to the same; or the malloc in force, or ours, which has taken its place. */
static void see_entry(const struct sw__plt_entry *entry, void *arg)
{
    struct look *look = arg;
    const void *value = __atomic_load_n(entry->slot, __ATOMIC_RELAXED);
    look->right = look->right && (entry->own_code || value == entry->name->function ||
                                  value == entry->name->top);
}

static int see_object(struct dl_phdr_info *object, size_t size, void *arg)
{
    (void)size;
    struct look *look = arg;
    if (!sw__plt_holds(object, look->operators[SW__HEAP_NEW].function)) {
        return 0;
    }
    look->right = true;
    for (size_t i = 0; i < SW__HEAP_OPERATORS; i++) {
        look->right = look->right && sw__plt_holds(object, look->operators[i].function);
    }
    sw__plt_object(object, is_call, see_entry, look);
    return 1;
}

enum sw__heap_operators_are sw__heap_operators(struct sw__plt_hook *operators,
                                               const struct sw__heap_stand_ins *ours)
{
    /* By its name, for modules of Python have their libraries to themselves. */
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (!library) {
        return SW__HEAP_OPERATORS_ABSENT;
    }
    struct look look = {.operators = operators, .right = false};
    bool same = true;
    for (size_t i = 0; i < SW__HEAP_OPERATORS; i++) {
        const void *in_force = dlsym(RTLD_DEFAULT, operators[i].name);
        operators[i].function = dlsym(library, operators[i].name);
        same = same && (!in_force || in_force == operators[i].function);
    }
    calls[MALLOC].function = ours->malloc;
    calls[MALLOC].top = ours->hook_malloc;
    calls[FREE].function = ours->free;
    calls[FREE].top = ours->hook_free;
    calls[NEW].function = calls[NEW].top = operators[SW__HEAP_NEW].function;
    calls[DELETE].function = calls[DELETE].top = operators[SW__HEAP_DELETE].function;
    if (same) {
        dl_iterate_phdr(see_object, &look);
    }
    (void)dlclose(library);
    return look.right ? SW__HEAP_OPERATORS_PLAIN : SW__HEAP_OPERATORS_OTHER;
}

static int see_count(struct dl_phdr_info *object, size_t size, void *arg)
{
    (void)size;
    *(uint64_t *)arg = object->dlpi_adds;
    return 1;
}

uint64_t sw__heap_objects(void)
{
    uint64_t adds = 0;
    dl_iterate_phdr(see_count, &adds);
    return adds;
}
