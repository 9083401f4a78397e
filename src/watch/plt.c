/* Sets of hooks, and bringing the entries of all objects in line with them. Nothing is remembered
 * of an entry: what it may hold follows from its name, so that objects may come and go. */
#include "watch/plt.h"

#include "base/compiler.h"
#include "base/os.h"
#include "record/watchers.h"
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>

#define SW__PLT_SETS 8
#define SW__PLT_NAMES 256  /* a power of two, at most three quarters used */
#define SW__PLT_SEEN 4096u /* a power of two */

static struct {
    atomic_flag lock;
    struct sw__plt_set
        *sets[SW__PLT_SETS]; /* in the order in which they are called last */
    size_t set_count;
    struct sw__plt_name names[SW__PLT_NAMES];
    size_t name_count;
    /* Objects that are in line, by load address; emptied whenever one may have gone. */
    uintptr_t seen[SW__PLT_SEEN];
    size_t seen_count;
    unsigned long long adds, subs; /* of the linker at the last look */
    const void *malloc, *libc;     /* an address in the object of each */
    bool tsan;                     /* a thread sanitizer is there */
    bool again;                    /* an object was not ready yet */
    bool child;                    /* of a fork */
    bool forking;                  /* the lock is held for a fork */
    struct sw__plt_counts counts;
} sw__plt = {.lock = ATOMIC_FLAG_INIT};

void (*_Atomic sw__plt_asking)(void);

static bool sw__plt_try(void)
{
    return !atomic_flag_test_and_set_explicit(&sw__plt.lock, memory_order_acquire);
}

/* Not for ever: who has the lock may wait for the linker, which may wait for who asks. */
static bool sw__plt_try_long(void)
{
    bool locked = sw__plt_try();
    for (unsigned round = 0; round < 1000 && !locked; round++) {
        sched_yield();
        locked = sw__plt_try();
    }
    return locked;
}

static void sw__plt_lock(void)
{
    while (!sw__plt_try()) {
        sched_yield();
    }
}

static void sw__plt_unlock(void)
{
    atomic_flag_clear_explicit(&sw__plt.lock, memory_order_release);
}

/* ---- names ---- */

static size_t sw__plt_place(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name; name++) {
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    }
    return hash & (SW__PLT_NAMES - 1);
}

static struct sw__plt_name *sw__plt_find(const char *name)
{
    /* Most symbols of a large library are C++, of which only operators like new and delete can be ours. */
    if (name[0] == '_' && name[1] == 'Z' && name[2] != 'n' && name[2] != 'd') {
        return NULL;
    }
    for (size_t i = sw__plt_place(name);; i = (i + 1) & (SW__PLT_NAMES - 1)) {
        struct sw__plt_name *at = &sw__plt.names[i];
        if (!at->name || strcmp(at->name, name) == 0) {
            return at->name ? at : NULL;
        }
    }
}

struct sw__plt_main {
    const char *name;
    const void *address;
    bool stub;
};

static struct sw__plt_name sw__plt_any;
static const char *sw__plt_asked; /* under the lock */

static struct sw__plt_name *sw__plt_is_asked(const char *name)
{
    return strcmp(name, sw__plt_asked) == 0 ? &sw__plt_any : NULL;
}

static void sw__plt_see_undefined(const struct sw__plt_entry *entry, void *arg)
{
    ((struct sw__plt_main *)arg)->stub |= entry->undefined;
}

static int sw__plt_look_at_main(struct dl_phdr_info *object, size_t size, void *arg)
{
    (void)size;
    struct sw__plt_main *look = arg;
    if (sw__plt_holds(object, look->address)) {
        sw__plt_asked = look->name;
        sw__plt_object(object, sw__plt_is_asked, sw__plt_see_undefined, look);
    }
    return 1; /* the program comes first */
}

/* The function that a call would reach without us. A program at a fixed address that takes the address of
 * a function has a stub stand for it everywhere; the stub goes through an entry that will be ours. */
static void *sw__plt_function(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    struct sw__plt_main look = {.name = name, .address = found};
    if (found) {
        dl_iterate_phdr(sw__plt_look_at_main, &look);
    }
    return look.stub ? dlsym(RTLD_NEXT, name) : found;
}

void *sw__plt_resolve(const char *name)
{
    sw__plt_lock();
    const struct sw__plt_name *known = sw__plt_find(name);
    void *found = known ? known->function : sw__plt_function(name);
    sw__plt_unlock();
    return found;
}

/* The entry of the table, a new one if need be; NULL when there is no such function or no room. */
static struct sw__plt_name *sw__plt_name_of(const struct sw__plt_hook *hook)
{
    const char *name = hook->name;
    struct sw__plt_name *found = sw__plt_find(name);
    if (found || sw__plt.name_count >= SW__PLT_NAMES * 3 / 4) {
        return found;
    }
    void *function = hook->function ? hook->function : sw__plt_function(name);
    if (!function) {
        return NULL;
    }
    size_t i = sw__plt_place(name);
    while (sw__plt.names[i].name) {
        i = (i + 1) & (SW__PLT_NAMES - 1);
    }
    sw__plt.names[i] = (struct sw__plt_name){.name = name,
                                             .function = function,
                                             .top = function,
                                             .bound = hook->function != NULL};
    sw__plt.name_count++;
    return &sw__plt.names[i];
}

static bool sw__plt_is_member(const struct sw__plt_name *name, const void *value)
{
    for (unsigned i = 0; i < name->member_count; i++) {
        if (name->members[i] == value) {
            return true;
        }
    }
    return false;
}

/* Says which replacement follows which, from the sets that are there. */
static void sw__plt_chain(void)
{
    for (size_t i = 0; i < SW__PLT_NAMES; i++) {
        sw__plt.names[i].top = sw__plt.names[i].function;
    }
    for (size_t s = 0; s < sw__plt.set_count; s++) {
        struct sw__plt_set *set = sw__plt.sets[s];
        for (size_t h = 0; h < set->count; h++) {
            struct sw__plt_hook *hook = &set->hooks[h];
            struct sw__plt_name *name = sw__plt_find(hook->name);
            if (name && sw__plt_is_member(name, hook->replacement)) {
                __atomic_store_n(&hook->original, name->top, __ATOMIC_RELEASE);
                name->top = hook->replacement;
            }
        }
    }
}

/* ---- objects ---- */

static void sw__plt_visit_entry(const struct sw__plt_entry *entry, void *arg)
{
    (void)arg;
    const struct sw__plt_name *name = entry->name;
    void *value = __atomic_load_n(entry->slot, __ATOMIC_RELAXED);
    sw__plt.again = sw__plt.again || entry->raw;
    const bool ours = sw__plt_is_member(name, value);
    const bool lazy = entry->undefined && entry->own_code && !name->bound;
    /* An object that is bound to another function of this name keeps it. */
    const bool known =
        ours || value == name->function || (lazy && name->top != name->function);
    if (!known || value == name->top) {
        return;
    }
    if (!sw__plt_store(entry, name->top)) {
        sw__plt.counts.refused++;
    } else if (name->top != name->function) {
        sw__plt.counts.entries++;
    }
}

/* Whether the object is a library with the malloc in force (jemalloc, tcmalloc). It holds its locks while it maps memory, and
 * what it maps it gives out: that is counted where it is asked for. */
static bool sw__plt_is_malloc(const struct dl_phdr_info *object)
{
    const bool program = !object->dlpi_name || !*object->dlpi_name;
    return !program && sw__plt_holds(object, sw__plt.malloc) &&
           !sw__plt_holds(object, sw__plt.libc);
}

static bool sw__plt_leave_alone(const struct dl_phdr_info *object)
{
    if (sw__plt_holds(object, &sw__plt) || sw__plt_is_malloc(object) ||
        sw__plt_holds(object, (const void *)getauxval(AT_SYSINFO_EHDR))) {
        return true;
    }
    /* It has the C library allocate for threads that it does not know yet, and code that it checks must not run there. */
    if (sw__plt.tsan && sw__plt_holds(object, sw__plt.libc)) {
        return true;
    }
    const char *name = object->dlpi_name ? object->dlpi_name : "";
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
    /* The linker holds its locks while it reads and allocates, sanitizers theirs; ours are our own calls. */
    static const char *const own[] = {"ld-",         "libstepwatch.", "libasan.",
                                      "libtsan.",    "libubsan.",     "liblsan.",
                                      "libclang_rt."};
    for (size_t i = 0; i < SW__COUNTOF(own); i++) {
        if (strncmp(base, own[i], strlen(own[i])) == 0) {
            return true;
        }
    }
    return strstr(name, "/stepwatch/_core.") != NULL;
}

/* Whether the object is not yet in line; remembers that it is. */
static bool sw__plt_is_new(uintptr_t key)
{
    if (sw__plt.seen_count >= SW__PLT_SEEN / 2) {
        return true;
    }
    size_t i = (size_t)((key >> 12) * 0x9E3779B97F4A7C15ull >> 32) & (SW__PLT_SEEN - 1);
    for (; sw__plt.seen[i]; i = (i + 1) & (SW__PLT_SEEN - 1)) {
        if (sw__plt.seen[i] == key) {
            return false;
        }
    }
    sw__plt.seen[i] = key;
    sw__plt.seen_count++;
    return true;
}

static int sw__plt_visit_object(struct dl_phdr_info *object, size_t size, void *arg)
{
    (void)size, (void)arg;
    sw__plt.adds = object->dlpi_adds;
    sw__plt.subs = object->dlpi_subs;
    /* The headers of a program at a fixed address tell it from "no address". */
    if (sw__plt_is_new((uintptr_t)object->dlpi_phdr) && !sw__plt_leave_alone(object)) {
        sw__plt.counts.objects++;
        sw__plt_object(object, sw__plt_find, sw__plt_visit_entry, NULL);
    }
    return 0;
}

static void sw__plt_forget_objects(void)
{
    memset(sw__plt.seen, 0, sizeof(sw__plt.seen));
    sw__plt.seen_count = 0;
}

/* Brings all objects in line that are not. */
static void sw__plt_scan(void)
{
    sw__plt.again = false;
    dl_iterate_phdr(sw__plt_visit_object, NULL);
    if (sw__plt.again) {
        sw__plt_forget_objects();
    }
}

static int sw__plt_changes(struct dl_phdr_info *object, size_t size, void *arg)
{
    (void)size;
    unsigned long long *changes = arg;
    changes[0] = object->dlpi_adds;
    changes[1] = object->dlpi_subs;
    return 1;
}

static void sw__plt_look(void)
{
    const int error = errno;
    if (sw__plt_try()) {
        unsigned long long changes[2] = {0, 0};
        dl_iterate_phdr(sw__plt_changes, changes);
        const bool gone = changes[1] != sw__plt.subs;
        if (gone) {
            sw__plt_forget_objects();
        }
        if (sw__plt.set_count && (gone || sw__plt.again || changes[0] != sw__plt.adds)) {
            sw__plt_scan();
        }
        sw__plt_unlock();
    }
    errno = error;
}

void sw__plt_refresh(void)
{
    if (!sw__plt.child) {
        sw__plt_look();
    }
}

/* ---- dlsym ---- */

/* Who loads a library asks it for something next. dlsym and dlopen look at where they are called from, so a
 * function of ours must not stand in between: it runs before, and the call goes on with the caller's frame, unless the answer
 * is one of our functions, which ctypes and compilers at run time get. That is also why dlopen itself cannot be hooked, for
 * there something would have to be done after it. */
void *sw__plt_dlsym __attribute__((visibility("hidden")));
void *sw__plt_dlvsym __attribute__((visibility("hidden")));
void sw__plt_to_dlsym(void) __attribute__((visibility("hidden")));
void sw__plt_to_dlvsym(void) __attribute__((visibility("hidden")));
void *sw__plt_asked_for(void *handle, const char *name)
    __attribute__((visibility("hidden"), used));
void *sw__plt_asked_version(void) __attribute__((visibility("hidden"), used));

/* What a call of this function through an entry reaches, where the object that is asked has the function itself; else NULL.
 * Without an object the answer depends on who asks, and belongs to those who want to see past others (RTLD_NEXT). */
static void *sw__plt_stand_in(void *handle, const char *name)
{
    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT || !name) {
        return NULL;
    }
    if (!sw__plt_try_long()) {
        return NULL;
    }
    const struct sw__plt_name *known = sw__plt_find(name);
    void *const function = known ? known->function : NULL;
    void *const top = known ? known->top : NULL;
    sw__plt_unlock();
    const bool own = top == (void *)sw__plt_to_dlsym || top == (void *)sw__plt_to_dlvsym;
    return top != function && !own && dlsym(handle, name) == function ? top : NULL;
}

static void sw__plt_ask(void)
{
    void (*asking)(void) = atomic_load_explicit(&sw__plt_asking, memory_order_acquire);
    if (asking) {
        asking();
    }
    sw__plt_look();
}

void *sw__plt_asked_for(void *handle, const char *name)
{
    const int error = errno;
    sw__plt_ask();
    void *found = sw__plt_stand_in(handle, name);
    errno = error;
    return found;
}

void *sw__plt_asked_version(void)
{
    const int error = errno;
    sw__plt_ask();
    errno = error;
    return NULL;
}

#if defined(__x86_64__)
#define SW__PLT_DETOUR(name, target, before)                                             \
    __asm__(".text\n.p2align 4\n.hidden " #name "\n.globl " #name "\n.type " #name       \
            ", @function\n" #name ":\n"                                                  \
            "  endbr64\n  push %rdi\n  push %rsi\n  push %rdx\n"                         \
            "  call " #before "\n"                                                       \
            "  pop %rdx\n  pop %rsi\n  pop %rdi\n"                                       \
            "  test %rax, %rax\n  jne 1f\n"                                              \
            "  mov " #target "(%rip), %rax\n  jmp *%rax\n1: ret\n"                       \
            ".size " #name ", .-" #name "\n")
#elif defined(__aarch64__)
#define SW__PLT_DETOUR(name, target, before)                                             \
    __asm__(".text\n.p2align 4\n.hidden " #name "\n.globl " #name "\n.type " #name       \
            ", %function\n" #name ":\n"                                                  \
            "  hint #34\n  stp x0, x1, [sp, #-32]!\n  stp x2, x30, [sp, #16]\n"          \
            "  bl " #before "\n  cbnz x0, 1f\n"                                          \
            "  ldp x2, x30, [sp, #16]\n  ldp x0, x1, [sp], #32\n"                        \
            "  adrp x16, " #target "\n  ldr x16, [x16, :lo12:" #target "]\n  br x16\n"   \
            "1: ldr x30, [sp, #24]\n  add sp, sp, #32\n  ret\n"                          \
            ".size " #name ", .-" #name "\n")
#else
#define SW__PLT_DETOUR(name, target, before)                                             \
    void name(void) {}                                                                   \
    _Static_assert(1, "")
#endif
SW__PLT_DETOUR(sw__plt_to_dlsym, sw__plt_dlsym, sw__plt_asked_for);
SW__PLT_DETOUR(sw__plt_to_dlvsym, sw__plt_dlvsym, sw__plt_asked_version);

static struct sw__plt_hook sw__plt_own_hooks[] = {
    {.name = "dlsym", .replacement = (void *)sw__plt_to_dlsym},
    {.name = "dlvsym", .replacement = (void *)sw__plt_to_dlvsym},
};
static struct sw__plt_set sw__plt_own = {.hooks = sw__plt_own_hooks,
                                         .count = SW__COUNTOF(sw__plt_own_hooks)};

/* ---- sets ---- */

/* Makes room for the names of a set. The lock is held. */
static int sw__plt_enter(struct sw__plt_set *set, sw_error_info *info)
{
    if (sw__plt.set_count == SW__PLT_SETS) {
        return sw_error_set(info, SW_ELIMIT, "too many watchers want to see calls");
    }
    for (size_t i = 0; i < set->count; i++) {
        const struct sw__plt_hook *hook = &set->hooks[i];
        struct sw__plt_name *name = sw__plt_name_of(hook);
        if (!name || sw__plt_is_member(name, hook->replacement)) {
            if (!name && sw__plt.name_count >= SW__PLT_NAMES * 3 / 4) {
                return sw_error_set(info, SW_ELIMIT, "too many functions to watch");
            }
            continue;
        }
        if (name->member_count == SW__PLT_MEMBERS) {
            return sw_error_set(info, SW_ELIMIT, "too many watchers want to see %s",
                                hook->name);
        }
        name->members[name->member_count++] = hook->replacement;
    }
    sw__plt.sets[sw__plt.set_count++] = set;
    set->added = true;
    return 0;
}

static void sw__plt_leave(struct sw__plt_set *set)
{
    size_t kept = 0;
    for (size_t i = 0; i < sw__plt.set_count; i++) {
        if (sw__plt.sets[i] != set) {
            sw__plt.sets[kept++] = sw__plt.sets[i];
        }
    }
    sw__plt.set_count = kept;
    set->added = false;
}

/* Brings all entries in line with the sets. */
static void sw__plt_apply(void)
{
    sw__plt_chain();
    __atomic_store_n(&sw__plt_dlsym, sw__plt_own_hooks[0].original, __ATOMIC_RELEASE);
    __atomic_store_n(&sw__plt_dlvsym, sw__plt_own_hooks[1].original, __ATOMIC_RELEASE);
    sw__plt_forget_objects();
    sw__plt_scan();
}

/* The lock is held. */
static int sw__plt_add_locked(struct sw__plt_set *const *sets, size_t count,
                              sw_error_info *info)
{
    struct sw__plt_set *entered[SW__PLT_SETS];
    size_t entered_count = 0;
    int result = 0;
    if (!sw__plt.malloc) {
        sw__plt.malloc = sw__plt_function("malloc");
        sw__plt.libc = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
        sw__plt.tsan = dlsym(RTLD_DEFAULT, "__tsan_init") != NULL;
    }
    for (size_t i = 0; i < count && result == 0; i++) {
        if (!sets[i]->added) {
            result = sw__plt_own.added ? 0 : sw__plt_enter(&sw__plt_own, info);
            result = result ? result : sw__plt_enter(sets[i], info);
            if (result == 0) {
                entered[entered_count++] = sets[i];
            }
        }
    }
    if (result == 0 && entered_count) {
        sw__plt_apply();
    }
    while (result && entered_count) {
        sw__plt_leave(entered[--entered_count]);
    }
    return result;
}

int sw__plt_add_all(struct sw__plt_set *const *sets, size_t count, sw_error_info *info)
{
    if (!sw__plt_supported()) {
        return sw_error_set(info, SW_EUNSUPPORTED,
                            "calls cannot be watched on this processor");
    }
    const int error = errno;
    sw__plt_lock();
    const int result = sw__plt_add_locked(sets, count, info);
    sw__plt_unlock();
    errno = error;
    return result;
}

int sw__plt_add(struct sw__plt_set *set, sw_error_info *info)
{
    return sw__plt_add_all(&set, 1, info);
}

int sw__plt_try_add(struct sw__plt_set *set)
{
    if (!sw__plt_try_long()) {
        return SW_ELIMIT;
    }
    const int result = sw__plt_add_locked(&set, 1, NULL);
    sw__plt_unlock();
    return result;
}

void sw__plt_remove_all(struct sw__plt_set *const *sets, size_t count)
{
    const int error = errno;
    bool some = false;
    sw__plt_lock();
    for (size_t s = 0; s < count; s++) {
        struct sw__plt_set *set = sets[s];
        if (!set->added || set->inherited) {
            continue;
        }
        some = true;
        sw__plt_leave(set);
        /* Its hooks keep their originals, for calls that are inside and pointers that were taken; those of a
         * set that is gone too may be skipped, since what it replaced is what counts. */
        for (size_t i = 0; i < set->count; i++) {
            struct sw__plt_name *name = sw__plt_find(set->hooks[i].name);
            if (name) {
                __atomic_store_n(&set->hooks[i].original, name->function,
                                 __ATOMIC_RELEASE);
            }
        }
    }
    if (some) {
        if (sw__plt.set_count == 1 && sw__plt.sets[0] == &sw__plt_own) {
            sw__plt_leave(&sw__plt_own);
        }
        sw__plt_apply();
    }
    sw__plt_unlock();
    errno = error;
}

void sw__plt_remove(struct sw__plt_set *set)
{
    sw__plt_remove_all(&set, 1);
}

/* Waits for a thread that is looking, but not for ever: a handler of a signal that forks may have interrupted it. */
static void sw__plt_before_fork(void)
{
    for (unsigned round = 0; round < 1000 && !sw__plt.forking; round++) {
        sw__plt.forking = sw__plt_try();
        if (!sw__plt.forking) {
            sw__os_sleep_ns(100000);
        }
    }
}

static void sw__plt_after_fork(bool child)
{
    const bool held = sw__plt.forking;
    sw__plt.forking = false;
    if (child) {
        sw__plt.child = true;
        for (size_t i = 0; i < sw__plt.set_count; i++) {
            sw__plt.sets[i]->inherited = true;
        }
        sw__plt_forget_objects();
        sw__plt.again = true;
    }
    if (child || held) {
        sw__plt_unlock();
    }
}

const struct sw__watcher sw__plt_watcher = {
    .before_fork = sw__plt_before_fork,
    .after_fork = sw__plt_after_fork,
};

void sw__plt_counts(struct sw__plt_counts *out)
{
    sw__plt_lock();
    *out = sw__plt.counts;
    sw__plt_unlock();
}
