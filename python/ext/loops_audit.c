/* Modules of the program, seen just before they run: by an audit hook of Python's, for those who look for loops and for the
 * program's own code.
 *
 * A hook that is there costs each event that anybody is told of, and torch asks for the identity of every parameter in every
 * step, which Python tells its hooks: some 5,000 instructions a step of a small network. Python has no way to take a hook back. It
 * keeps hooks in a list, though, whose entries nobody changes, so ours is taken out of that list while nobody looks for loops, and put
 * in again. The place where the list begins is found by comparing Python's state before and after the hook is added; where it cannot be
 * found, or somebody has a hook already, the hook stays. Only with the GIL. */
#include "loops.h"
#include "memory_read.h"
#include "unseen.h"
#include "user_code.h"
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* As Python has them. */
struct entry {
    struct entry *next;
    Py_AuditHookFunction function;
    void *data;
};

static struct {
    bool added;
    bool listed;
    struct entry *entry; /* NULL: it was not found */
    struct entry **first;
} hook;

/* Waits for the program's own code, see _await_main; NULL: nobody does. */
static PyObject *waits_for_main;

/* Lets it look at the code; the one that it waits for is the last. */
static void look_for_main(PyObject *code)
{
    PyObject *waits = waits_for_main;
    Py_INCREF(waits);
    PyObject *found = PyObject_CallFunctionObjArgs(waits, code, NULL);
    if (found == Py_True && waits_for_main == waits) {
        Py_CLEAR(waits_for_main);
        if (!core_loops_on) {
            core_loops_unlisten();
        }
    }
    Py_XDECREF(found);
    Py_DECREF(waits);
    core_error_forget();
}

static int audit(const char *event, PyObject *args, void *module)
{
    if ((!core_loops_on && !waits_for_main) || event[0] != 'e' ||
        strcmp(event, "exec") != 0 || !args || !PyTuple_Check(args) ||
        PyTuple_GET_SIZE(args) != 1) {
        return 0;
    }
    if (!core_in_main_interpreter()) {
        return 0; /* Every interpreter calls the hook. */
    }
    PyObject *code = PyTuple_GET_ITEM(args, 0);
    if (!PyCode_Check(code)) {
        return 0;
    }
    core_unseen_begin();
    if (core_loops_on && core_loops_here() && core_is_user_code((PyCodeObject *)code) &&
        core_loop_events_watch(module, code) != 0) {
        core_error_forget(); /* A loop that is not seen is no harm. */
    }
    if (waits_for_main) {
        look_for_main(code);
    }
    core_unseen_end();
    return 0;
}

/* The state of Python as words; NULL: where it ends is not known. */
static struct entry **runtime_words(size_t *count)
{
    void *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    if (!runtime || !dladdr1(runtime, &info, (void **)(void *)&symbol, RTLD_DL_SYMENT) ||
        !symbol || info.dli_saddr != runtime || symbol->st_size < sizeof(void *)) {
        return NULL;
    }
    *count = symbol->st_size / sizeof(void *);
    return runtime;
}

/* Whether this is the address of our entry. It may be anything. */
static bool is_ours(struct entry *address, const void *module)
{
    const char *why = NULL;
    core_memory reader;
    core_memory_open(&reader, CORE_READ_VM, &why);
    struct entry found = {0};
    const bool read =
        reader.mode != CORE_READ_GIL &&
        core_read(&reader, (uint64_t)(uintptr_t)address, &found, sizeof found) == 0;
    core_memory_close(&reader);
    return read && found.function == audit && found.data == module && !found.next;
}

static int hook_add(PyObject *module)
{
    size_t count = 0;
    struct entry **words = runtime_words(&count);
    struct entry **before = words ? malloc(count * sizeof *before) : NULL;
    if (before) {
        memcpy(before, words, count * sizeof *before);
    }
    Py_INCREF(module); /* for ever, like the hook */
    if (PySys_AddAuditHook(audit, module) != 0) {
        Py_DECREF(module);
        free(before);
        return -1;
    }
    for (size_t i = 0; before && i < count && !hook.entry; i++) {
        if (!before[i] && words[i] && is_ours(words[i], module)) {
            hook.first = &words[i];
            hook.entry = words[i];
        }
    }
    free(before);
    hook.added = hook.listed = true;
    return 0;
}

int core_loops_listen(PyObject *module)
{
    if (!hook.added) {
        return hook_add(module);
    }
    if (!hook.listed) {
        hook.entry->next = *hook.first;
        *hook.first = hook.entry;
        hook.listed = true;
    }
    return 0;
}

void core_loops_unlisten(void)
{
    /* It is not the first any more where others were added: they stand behind it. */
    if (!waits_for_main && hook.listed && hook.entry && *hook.first == hook.entry) {
        *hook.first = hook.entry->next;
        hook.listed = false;
    }
}

bool core_loops_listens(void)
{
    return hook.listed;
}

PyObject *core_await_main(PyObject *module, PyObject *function)
{
    if (core_loops_listen(module) != 0) {
        return NULL;
    }
    Py_INCREF(function);
    Py_XSETREF(waits_for_main, function);
    Py_RETURN_NONE;
}
