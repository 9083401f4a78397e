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
static struct sw__plt_name calls[] = {
    {.name = "malloc"}, {.name = "free"}, {.name = "_Znwm"}, {.name = "_ZdlPv"}};

static struct sw__plt_name *is_call(const char *name)
{
    for (size_t i = 0; i < SW__COUNTOF(calls); i++) {
        if (strcmp(calls[i].name, name) == 0) {
            return &calls[i];
        }
    }
    return NULL;
}

/* Its own function, or not bound yet, which comes to the same; or the malloc in force. */
static void see_entry(const struct sw__plt_entry *entry, void *arg)
{
    struct look *look = arg;
    const void *value = __atomic_load_n(entry->slot, __ATOMIC_RELAXED);
    look->right = look->right && (entry->own_code || value == entry->name->function);
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

bool sw__heap_operators(struct sw__plt_hook *operators)
{
    /* By its name, for modules of Python have their libraries to themselves. */
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (!library) {
        return false;
    }
    struct look look = {.operators = operators, .right = false};
    bool same = true;
    for (size_t i = 0; i < SW__HEAP_OPERATORS; i++) {
        const void *in_force = dlsym(RTLD_DEFAULT, operators[i].name);
        operators[i].function = dlsym(library, operators[i].name);
        same = same && (!in_force || in_force == operators[i].function);
    }
    /* Before the list of objects is locked: others look at it with the lock of entries held. */
    for (size_t i = 0; i < SW__COUNTOF(calls); i++) {
        calls[i].function = sw__plt_resolve(calls[i].name);
    }
    if (same) {
        dl_iterate_phdr(see_object, &look);
    }
    (void)dlclose(library);
    return look.right;
}
