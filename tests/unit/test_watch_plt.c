/* Patched calls: every way an object can be linked, objects that come and go, two clients at once, threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "record/watchers.h"
#include "watch/plt.h"
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

typedef pid_t (*ppid_function)(void);

struct plugin {
    void *handle;
    ppid_function ppid;
    int (*missing)(void);
    void *(*dlsym)(void *handle, const char *name);
    void *(*next)(void);
    void *(*taken)(void);
};

static char plugin_folder[4096];
static const char *const variants[] = {"lazy", "now", "noplt", "gnu", "sysv"};
#define VARIANTS (sizeof(variants) / sizeof(variants[0]))

static struct plugin plugin_open(const char *variant)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/libplt_%s.so", plugin_folder, variant);
    struct plugin plugin = {.handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL)};
    if (!plugin.handle) {
        fail_msg("%s", dlerror());
    }
    *(void **)&plugin.ppid = dlsym(plugin.handle, "plugin_ppid");
    *(void **)&plugin.missing = dlsym(plugin.handle, "plugin_missing");
    *(void **)&plugin.dlsym = dlsym(plugin.handle, "plugin_dlsym");
    *(void **)&plugin.next = dlsym(plugin.handle, "plugin_next");
    *(void **)&plugin.taken = dlsym(plugin.handle, "plugin_taken");
    return plugin;
}

static pid_t first_ppid(void);
static pid_t second_ppid(void);
static int first_nowhere(void)
{
    return 5;
}

static struct sw__plt_hook first_hooks[] = {
    {.name = "getppid", .replacement = (void *)first_ppid},
    {.name = "sw_test_nowhere", .replacement = (void *)first_nowhere},
};
static struct sw__plt_set first = {.hooks = first_hooks, .count = 2};
static struct sw__plt_hook second_hooks[] = {
    {.name = "getppid", .replacement = (void *)second_ppid},
};
static struct sw__plt_set second = {.hooks = second_hooks, .count = 1};

#define FIRST 1000000
#define SECOND 2000000

static pid_t first_ppid(void)
{
    return ((ppid_function)sw__plt_original(&first_hooks[0]))() + FIRST;
}

static pid_t second_ppid(void)
{
    return ((ppid_function)sw__plt_original(&second_hooks[0]))() + SECOND;
}

static void add(struct sw__plt_set *set)
{
    sw_error_info info = {0};
    errno = 4711;
    if (sw__plt_add(set, &info) != 0) {
        fail_msg("%s", info.message);
    }
    assert_int_equal(errno, 4711);
}

static void test_every_linkage(void **state)
{
    (void)state;
    struct plugin plugins[VARIANTS];
    for (size_t i = 0; i < VARIANTS; i++) {
        plugins[i] = plugin_open(variants[i]);
    }
    /* One of them has resolved its entry before. */
    assert_int_equal(plugins[0].ppid(), getppid());
    for (int round = 0; round < 2; round++) {
        add(&first);
        add(&first); /* a second time is the same */
        for (size_t i = 0; i < VARIANTS; i++) {
            assert_int_equal(plugins[i].ppid(), getppid() + FIRST);
            assert_int_equal(plugins[i].missing(), -1);
        }
        sw__plt_remove(&first);
        sw__plt_remove(&first);
        for (size_t i = 0; i < VARIANTS; i++) {
            assert_int_equal(plugins[i].ppid(), getppid());
        }
    }
    assert_null(first_hooks[1].original);
    for (size_t i = 0; i < VARIANTS; i++) {
        dlclose(plugins[i].handle);
    }
}

/* A library that has a function of that name itself means its own. */
static void test_own_function(void **state)
{
    (void)state;
    struct plugin plugin = plugin_open("defines");
    const pid_t before = plugin.ppid();
    add(&first);
    assert_int_equal(plugin.ppid() % FIRST, before);
    sw__plt_remove(&first);
    assert_int_equal(plugin.ppid(), before);
    dlclose(plugin.handle);
    /* One that is linked to itself first never asks anybody. */
    plugin = plugin_open("symbolic");
    assert_int_equal(plugin.ppid(), 77);
    add(&first);
    assert_int_equal(plugin.ppid(), 77);
    sw__plt_remove(&first);
    dlclose(plugin.handle);
}

static void test_two_clients(void **state)
{
    (void)state;
    struct plugin plugin = plugin_open("now");
    for (int order = 0; order < 2; order++) {
        add(&first);
        assert_int_equal(plugin.ppid(), getppid() + FIRST);
        add(&second);
        assert_int_equal(plugin.ppid(), getppid() + FIRST + SECOND);
        sw__plt_remove(order ? &first : &second);
        assert_int_equal(plugin.ppid(), getppid() + (order ? SECOND : FIRST));
        sw__plt_remove(order ? &second : &first);
        assert_int_equal(plugin.ppid(), getppid());
    }
    dlclose(plugin.handle);
}

/* Both at once, and one of them from within a question for a function. */
static unsigned times_asked;

static void on_asking(void)
{
    times_asked++;
    assert_int_equal(sw__plt_try_add(&second), 0);
}

static void test_together_and_when_asked(void **state)
{
    (void)state;
    struct sw__plt_set *const both[] = {&first, &second};
    struct plugin plugin = plugin_open("now");
    assert_int_equal(sw__plt_add_all(both, 2, NULL), 0);
    assert_int_equal(sw__plt_add_all(both, 2, NULL), 0);
    assert_int_equal(plugin.ppid(), getppid() + FIRST + SECOND);
    sw__plt_remove_all(both, 2);
    assert_int_equal(plugin.ppid(), getppid());
    add(&first);
    atomic_store(&sw__plt_asking, on_asking);
    assert_ptr_equal(plugin.dlsym(plugin.handle, "plugin_ppid"), (void *)plugin.ppid);
    atomic_store(&sw__plt_asking, NULL);
    assert_int_equal(times_asked, 1);
    assert_int_equal(plugin.ppid(), getppid() + FIRST + SECOND);
    sw__plt_remove_all(both, 2);
    assert_int_equal(plugin.ppid(), getppid());
    dlclose(plugin.handle);
}

/* A pointer that the program took while a set was there still works when it is not. */
static void test_kept_pointer(void **state)
{
    (void)state;
    struct plugin plugin = plugin_open("noplt");
    add(&first);
    ppid_function taken;
    *(void **)&taken = plugin.taken();
    assert_int_equal(taken(), getppid() + FIRST);
    sw__plt_remove(&first);
    assert_int_equal(taken() % FIRST, getppid());
    dlclose(plugin.handle);
}

static void test_loaded_later(void **state)
{
    (void)state;
    struct plugin early = plugin_open("lazy");
    add(&first);
    struct plugin late = plugin_open("now");
    assert_int_equal(late.ppid(), getppid());
    errno = 4711;
    sw__plt_refresh();
    assert_int_equal(errno, 4711);
    assert_int_equal(late.ppid(), getppid() + FIRST);
    /* The same by itself, when a watched object asks for something. */
    struct plugin later = plugin_open("gnu");
    assert_int_equal(later.ppid(), getppid());
    assert_ptr_equal(early.dlsym(later.handle, "plugin_ppid"), (void *)later.ppid);
    assert_int_equal(later.ppid(), getppid() + FIRST);
    assert_null(early.dlsym(later.handle, "no such thing"));
    /* What goes and comes back at the same place is patched again. */
    for (int i = 0; i < 20; i++) {
        dlclose(late.handle);
        late = plugin_open(i % 2 ? "now" : "sysv");
        sw__plt_refresh();
        assert_int_equal(late.ppid(), getppid() + FIRST);
    }
    dlclose(late.handle);
    sw__plt_remove(&first);
    assert_int_equal(later.ppid(), getppid());
    dlclose(later.handle);
    dlclose(early.handle);
}

/* dlsym looks at its caller; it must not see us. */
static void test_dlsym_knows_its_caller(void **state)
{
    (void)state;
    struct plugin plugin = plugin_open("lazy");
    void *before = plugin.next();
    (void)dlerror();
    add(&first);
    assert_ptr_equal(plugin.next(), before);
    sw__plt_remove(&first);
    dlclose(plugin.handle);
}

/* Who asks an object for a function gets what its calls would reach, as ctypes does. */
static void test_dlsym_tells_the_replacement(void **state)
{
    (void)state;
    struct plugin plugin = plugin_open("lazy");
    struct plugin own = plugin_open("symbolic");
    void *program = dlopen(NULL, RTLD_LAZY);
    assert_non_null(program);
    void *real = plugin.dlsym(program, "getppid");
    void *linker = plugin.dlsym(program, "dlsym");
    add(&first);
    ppid_function asked;
    errno = 4711;
    *(void **)&asked = plugin.dlsym(program, "getppid");
    assert_int_equal(errno, 4711);
    assert_int_equal(asked(), getppid() + FIRST);
    assert_ptr_equal(plugin.dlsym(program, "getuid"), (void *)getuid);
    /* Without an object, past others, and a library's own: the answer is the linker's. */
    assert_ptr_equal(plugin.dlsym(RTLD_DEFAULT, "getppid"), real);
    assert_ptr_equal(plugin.dlsym(RTLD_NEXT, "getppid"), real);
    assert_ptr_equal(plugin.dlsym(program, "dlsym"), linker);
    *(void **)&asked = plugin.dlsym(own.handle, "getppid");
    assert_int_equal(asked(), 77);
    *(void **)&asked = plugin.dlsym(program, "getppid");
    sw__plt_remove(&first);
    assert_int_equal(asked() % FIRST, getppid());
    assert_ptr_equal(plugin.dlsym(program, "getppid"), real);
    dlclose(program);
    dlclose(own.handle);
    dlclose(plugin.handle);
}

struct page_search {
    const char *file;
    void **slot;
};

static struct sw__plt_name any_name;

static struct sw__plt_name *is_getppid(const char *name)
{
    return strcmp(name, "getppid") == 0 ? &any_name : NULL;
}

static void keep_slot(const struct sw__plt_entry *entry, void *arg)
{
    ((struct page_search *)arg)->slot = entry->slot;
}

static int search_object(struct dl_phdr_info *object, size_t size, void *arg)
{
    (void)size;
    struct page_search *search = arg;
    if (strstr(object->dlpi_name, search->file)) {
        sw__plt_object(object, is_getppid, keep_slot, search);
    }
    return 0;
}

/* Protection of the page of an entry, as in /proc/self/maps. */
static void slot_protection(const char *file, char out[5])
{
    struct page_search search = {.file = file};
    dl_iterate_phdr(search_object, &search);
    assert_non_null(search.slot);
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    char line[4096];
    out[0] = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long begin, end;
        char protection[5];
        if (sscanf(line, "%lx-%lx %4s", &begin, &end, protection) == 3 &&
            (uintptr_t)search.slot >= begin && (uintptr_t)search.slot < end) {
            memcpy(out, protection, 5);
        }
    }
    fclose(maps);
}

static void test_protection_comes_back(void **state)
{
    (void)state;
    struct plugin plugin = plugin_open("now");
    char protection[5];
    slot_protection("libplt_now.so", protection);
    assert_string_equal(protection, "r--p");
    if (getenv("TEST_EMULATED")) {
        dlclose(plugin.handle);
        skip(); /* the kernel cannot be asked whether a page may be written to */
    }
    add(&first);
    slot_protection("libplt_now.so", protection);
    assert_string_equal(protection, "r--p");
    assert_int_equal(plugin.ppid(), getppid() + FIRST);
    sw__plt_remove(&first);
    slot_protection("libplt_now.so", protection);
    assert_string_equal(protection, "r--p");
    dlclose(plugin.handle);
}

static atomic_int over;

static void *call_much(void *arg)
{
    struct plugin *plugin = arg;
    while (!atomic_load(&over)) {
        if (plugin->ppid() % FIRST != getppid() % FIRST) {
            abort();
        }
    }
    return NULL;
}

static void *load_much(void *arg)
{
    (void)arg;
    for (unsigned i = 0; !atomic_load(&over); i++) {
        struct plugin plugin = plugin_open(variants[1 + i % (VARIANTS - 1)]);
        if (plugin.ppid() % FIRST != getppid() % FIRST) {
            abort();
        }
        sw__plt_refresh();
        dlclose(plugin.handle);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* The locks of the dynamic linker are not seen, and all it does looks like a race. */
#endif
    struct plugin plugin = plugin_open("lazy");
    pthread_t threads[4];
    atomic_store(&over, 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < 2 ? call_much : load_much, &plugin), 0);
    }
    for (int i = 0; i < 300; i++) {
        add(i % 2 ? &first : &second);
        sw__plt_refresh();
        sw__plt_remove(i % 3 ? &first : &second);
    }
    atomic_store(&over, 1);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    sw__plt_remove(&first);
    sw__plt_remove(&second);
    assert_int_equal(plugin.ppid(), getppid());
    struct sw__plt_counts counts;
    sw__plt_counts(&counts);
    assert_int_equal(counts.refused, 0);
    assert_true(counts.entries > 0 && counts.objects > 0);
    dlclose(plugin.handle);
}

static void test_after_fork(void **state)
{
    (void)state;
    struct plugin plugin = plugin_open("now");
    add(&first);
    sw__plt_watcher.before_fork();
    pid_t child = fork();
    if (child == 0) {
        /* Entries stay as they are; what is loaded here is seen when it is asked for something. */
        sw__plt_watcher.after_fork(true);
        bool good = plugin.ppid() == getppid() + FIRST;
        struct plugin later = plugin_open("lazy");
        sw__plt_refresh();
        good = good && later.ppid() == getppid();
        (void)plugin.dlsym(later.handle, "plugin_ppid");
        good = good && later.ppid() == getppid() + FIRST;
        sw__plt_remove(&first);
        good = good && plugin.ppid() == getppid() + FIRST;
        sw__plt_add(&second, NULL);
        good = good && plugin.ppid() == getppid() + FIRST + SECOND;
        sw__plt_remove(&second);
        _exit(good && plugin.ppid() == getppid() + FIRST ? 0 : 1);
    }
    sw__plt_watcher.after_fork(false);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    sw__plt_remove(&first);
    dlclose(plugin.handle);
}

/* More names than there is room for: said, and nothing is changed. */
static void test_too_many(void **state)
{
    (void)state;
    struct plugin plugin = plugin_open("now");
    static struct sw__plt_hook hooks[SW__PLT_MEMBERS + 2];
    static struct sw__plt_set sets[SW__PLT_MEMBERS + 2];
    int refused = 0;
    for (size_t i = 0; i < SW__PLT_MEMBERS + 2; i++) {
        hooks[i] = (struct sw__plt_hook){.name = "getppid",
                                         .replacement = (char *)(void *)first_ppid + i};
        sets[i] = (struct sw__plt_set){.hooks = &hooks[i], .count = 1};
        sw_error_info info = {0};
        /* Not called: each is removed before. */
        int result = sw__plt_add(&sets[i], &info);
        if (result != 0) {
            assert_int_equal(result, SW_ELIMIT);
            assert_string_not_equal(info.message, "");
            refused++;
        }
        sw__plt_remove(&sets[i]);
    }
    assert_true(refused > 0);
    assert_int_equal(plugin.ppid(), getppid());
    /* Where one of several does not fit, none is there. */
    struct sw__plt_set *const pair[] = {&first, &sets[SW__PLT_MEMBERS + 1]};
    assert_int_equal(sw__plt_add_all(pair, 2, NULL), SW_ELIMIT);
    assert_int_equal(plugin.ppid(), getppid());
    assert_false(first.added);
    dlclose(plugin.handle);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s PLUGIN\n", argv[0]);
        return 2;
    }
    snprintf(plugin_folder, sizeof plugin_folder, "%s", argv[1]);
    char *slash = strrchr(plugin_folder, '/');
    if (slash) {
        *slash = 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_linkage),
        cmocka_unit_test(test_own_function),
        cmocka_unit_test(test_two_clients),
        cmocka_unit_test(test_together_and_when_asked),
        cmocka_unit_test(test_kept_pointer),
        cmocka_unit_test(test_loaded_later),
        cmocka_unit_test(test_dlsym_knows_its_caller),
        cmocka_unit_test(test_dlsym_tells_the_replacement),
        cmocka_unit_test(test_protection_comes_back),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_after_fork),
        cmocka_unit_test(test_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
