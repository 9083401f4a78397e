/* Tables of watched code, and the activations that run. */
#include "line_table.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Lines of one function beyond this share one cell: code made by programs may claim any line. */
#define LINES_MAX 1000000u
#define STACK_MIN 32

__thread line_thread *core_line_thread __attribute__((tls_model("initial-exec")));
line_code *core_line_codes;
unsigned core_line_forks;

/* --- threads ---------------------------------------------------------------------- */

/* The list's lock is for threads that end: they do it without the GIL. */
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static line_thread *threads;
static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static int thread_key_made;

static void thread_end(void *arg)
{
    line_thread *thread = arg;
    pthread_mutex_lock(&threads_lock);
    *thread->link = thread->next;
    if (thread->next) {
        thread->next->link = thread->link;
    }
    pthread_mutex_unlock(&threads_lock);
    core_line_thread = NULL;
    free(thread->base);
    free(thread);
}

/* Of all threads only this one came along. What the parent counted stays the parent's. */
static void forked_child(void)
{
    pthread_mutex_init(&threads_lock, NULL);
    threads = core_line_thread;
    if (threads) {
        threads->next = NULL;
        threads->link = &threads;
    }
    core_line_forks++;
    for (line_code *table = core_line_codes; table; table = table->next) {
        memset(table->cells, 0, ((size_t)table->count + 1) * sizeof *table->cells);
        memset(table->base, 0, ((size_t)table->count + 1) * sizeof *table->base);
        table->number = 0;
        table->open = 0;
    }
    if (threads) {
        const uint64_t now = core_ticks();
        for (line_frame *frame = threads->top; frame > threads->base; frame--) {
            frame->since = now;
            frame->table->open++;
        }
    }
}

static void thread_setup(void)
{
    thread_key_made = pthread_key_create(&thread_key, thread_end) == 0;
    (void)pthread_atfork(NULL, NULL, forked_child);
}

line_thread *core_line_thread_make(void)
{
    pthread_once(&thread_once, thread_setup);
    line_thread *thread = calloc(1, sizeof *thread);
    line_frame *base = calloc(STACK_MIN, sizeof *base);
    if (!thread || !base || !thread_key_made ||
        pthread_setspecific(thread_key, thread) != 0) {
        free(thread);
        free(base);
        return NULL;
    }
    thread->base = thread->top = base;
    thread->end = base + STACK_MIN;
    pthread_mutex_lock(&threads_lock);
    thread->next = threads;
    thread->link = &threads;
    if (threads) {
        threads->link = &thread->next;
    }
    threads = thread;
    pthread_mutex_unlock(&threads_lock);
    core_line_thread = thread;
    return thread;
}

static core_frame *frame_before(core_frame *frame)
{
#if PY_VERSION_HEX >= 0x030b0000
    return frame->previous;
#else
    return frame->f_back;
#endif
}

int core_line_make_room(line_thread *thread, core_frame *now)
{
    /* Both stacks have the same order, so one walk over the frames finds the activations that are alive. */
    line_frame *at = thread->top;
    line_frame *keep =
        thread->end; /* those alive are collected at the end, newest last */
    for (core_frame *frame = now; frame && at > thread->base;
         frame = frame_before(frame)) {
        for (line_frame *look = at; look > thread->base; look--) {
            if (look->frame == frame) {
                for (; at > look; at--) {
                    at->table->open--;
                }
                *--keep = *look;
                at = look - 1;
                break;
            }
        }
    }
    for (; at > thread->base; at--) {
        at->table->open--;
    }
    const size_t alive = (size_t)(thread->end - keep);
    const size_t room = (size_t)(thread->end - thread->base);
    memmove(thread->base + 1, keep, alive * sizeof *keep);
    thread->top = thread->base + alive;
    if (alive + 2 <= room / 2) {
        return 0;
    }
    line_frame *more = realloc(thread->base, room * 2 * sizeof *more);
    if (!more) {
        return thread->top + 1 < thread->end ? 0 : -1;
    }
    thread->base = more;
    thread->top = more + alive;
    thread->end = more + room * 2;
    return 0;
}

int core_line_find(line_thread *thread, core_frame *frame, PyObject *code)
{
    for (line_frame *look = thread->top; look > thread->base; look--) {
        if (look->frame == frame && look->code == code) {
            for (; thread->top > look; thread->top--) {
                thread->top->table->open--;
            }
            return 1;
        }
    }
    return 0;
}

void core_line_flush(void)
{
    const uint64_t now = core_ticks();
    pthread_mutex_lock(&threads_lock);
    for (line_thread *thread = threads; thread; thread = thread->next) {
        for (line_frame *frame = thread->top; frame > thread->base; frame--) {
            frame->cell->ticks += now - frame->since;
            frame->since = now;
        }
    }
    pthread_mutex_unlock(&threads_lock);
}

void core_line_end_all(line_code *table)
{
    const uint64_t now = core_ticks();
    pthread_mutex_lock(&threads_lock);
    for (line_thread *thread = threads; thread; thread = thread->next) {
        line_frame *to = thread->base + 1;
        for (line_frame *from = to; from <= thread->top; from++) {
            if (from->table == table) {
                from->cell->ticks += now - from->since;
            } else {
                *to++ = *from;
            }
        }
        thread->top = to - 1;
    }
    pthread_mutex_unlock(&threads_lock);
    table->open = 0;
}

/* --- tables ----------------------------------------------------------------------- */

/* Calls `visit` for each line that the code has instructions on. 0, or -1 with an exception set. */
static int each_line(PyObject *code, void (*visit)(void *arg, uint32_t line), void *arg)
{
#if PY_VERSION_HEX >= 0x030a0000
    PyObject *ranges = PyObject_CallMethod(code, "co_lines", NULL);
    PyObject *iterator = ranges ? PyObject_GetIter(ranges) : NULL;
    Py_XDECREF(ranges);
    if (!iterator) {
        return -1;
    }
    PyObject *range;
    while ((range = PyIter_Next(iterator))) {
        PyObject *line = PyTuple_Check(range) && PyTuple_GET_SIZE(range) == 3
                             ? PyTuple_GET_ITEM(range, 2)
                             : Py_None;
        const long number = line == Py_None ? 0 : PyLong_AsLong(line);
        if (number > 0 && number <= INT32_MAX) {
            visit(arg, (uint32_t)number);
        }
        Py_DECREF(range);
    }
    Py_DECREF(iterator);
    PyErr_Clear();
#else
    const PyCodeObject *object = (PyCodeObject *)code;
    const unsigned char *at = (unsigned char *)PyBytes_AS_STRING(object->co_lnotab);
    const unsigned char *end = at + PyBytes_GET_SIZE(object->co_lnotab);
    int line = object->co_firstlineno;
    for (; at + 1 < end; at += 2) {
        if (at[0] > 0 && line > 0) {
            visit(arg, (uint32_t)line);
        }
        line += (signed char)at[1];
    }
    if (line > 0) {
        visit(arg, (uint32_t)line);
    }
#endif
    return 0;
}

struct extent {
    uint32_t first, last;
};

static void widen(void *arg, uint32_t line)
{
    struct extent *extent = arg;
    extent->first = line < extent->first ? line : extent->first;
    extent->last = line > extent->last ? line : extent->last;
}

static void mark_line(void *arg, uint32_t line)
{
    const line_code *table = arg;
    if (line - table->first < table->count) {
        table->has_line[line - table->first] = 1;
    }
}

/* Widens by the code and by all that is nested in it. */
static int extent_of(PyObject *code, struct extent *extent, int depth)
{
    if (each_line(code, widen, extent) != 0) {
        return -1;
    }
    PyObject *constants = ((PyCodeObject *)code)->co_consts;
    for (Py_ssize_t i = 0; depth < 50 && i < PyTuple_GET_SIZE(constants); i++) {
        PyObject *constant = PyTuple_GET_ITEM(constants, i);
        if (PyCode_Check(constant) && extent_of(constant, extent, depth + 1) != 0) {
            return -1;
        }
    }
    return 0;
}

static void table_free(line_code *table)
{
    Py_XDECREF(table->code);
    Py_XDECREF(table->name);
    free(table->cells);
    free(table->base);
    free(table->handles);
    free(table->has_line);
    free(table);
}

static line_code *table_make(PyObject *code, PyObject *name)
{
    const int first = ((PyCodeObject *)code)->co_firstlineno;
    struct extent own = {.first = UINT32_MAX, .last = 0};
    struct extent whole = own;
    if (each_line(code, widen, &own) != 0 || extent_of(code, &whole, 0) != 0) {
        return NULL;
    }
    if (own.last == 0) {
        own.first = own.last = first > 0 ? (uint32_t)first : 1;
        widen(&whole, own.first);
    }
    line_code *table = calloc(1, sizeof *table);
    if (table) {
        table->first = own.first;
        table->last = whole.last;
        table->count = own.last - own.first + 1;
        if (table->count > LINES_MAX) {
            table->count = LINES_MAX;
        }
        table->cells = calloc((size_t)table->count + 1, sizeof *table->cells);
        table->base = calloc((size_t)table->count + 1, sizeof *table->base);
        table->has_line = calloc(table->count, 1);
        Py_INCREF(code);
        table->code = code;
        Py_INCREF(name);
        table->name = name;
    }
    if (!table || !table->cells || !table->base || !table->has_line) {
        if (table) {
            table_free(table);
        }
        PyErr_NoMemory();
        return NULL;
    }
    if (each_line(code, mark_line, table) != 0) {
        table_free(table);
        return NULL;
    }
    return table;
}

line_code *core_line_code(PyObject *code, PyObject *name, int make)
{
    for (line_code *table = core_line_codes; table; table = table->next) {
        if (table->code == code || table->watched == code) {
            table->users++;
            return table;
        }
    }
    if (!make) {
        return NULL;
    }
    line_code *table = table_make(code, name);
    if (table) {
        table->users = 1;
        table->next = core_line_codes;
        core_line_codes = table;
    }
    return table;
}

void core_line_code_release(line_code *table)
{
    if (--table->users > 0) {
        return;
    }
    for (line_code **at = &core_line_codes; *at; at = &(*at)->next) {
        if (*at == table) {
            *at = table->next;
            break;
        }
    }
    core_line_end_all(table);
    table_free(table);
}
