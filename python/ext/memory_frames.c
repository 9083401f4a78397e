/* The Python stack of the thread that is allocating, and what its functions are called.
 *
 * The thread looks at its own frames, which nobody else changes, and each frame holds its code object: so all that is read is there,
 * with the GIL or without. Nothing of Python is called, and nothing is changed. What a code object says of itself is copied when it is
 * first seen. Its address may be that of another one later: who it is is told by what it points to.
 *
 * The allocation that is looked at may be a malloc's own, made with its locks held: no memory comes from the heap. */
#include "memory.h"

#include "frame_layout.h"
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum {
    CODES = 32768, /* places, a power of two */
    FUNCTIONS = 16384,
    LINES = 32768,
    TEXT = 1000,
    PIECE = 1 << 20 /* bytes that are mapped at a time */
};

struct code {
    const void *address; /* NULL: free */
    layout_code head;
    uint32_t function, line_count, line_room;
    uint32_t last_line; /* that was looked up last, and where */
    int64_t last_offset;
    layout_line *lines;
};

static struct {
    atomic_flag lock;
    struct code *codes; /* NULL: not used yet */
    size_t code_count;
    memory_function *functions;
    uint32_t count;
    layout_line scratch[LINES];
    char *piece; /* rest of the one that was mapped last */
    size_t piece_left;
} known = {.lock = ATOMIC_FLAG_INIT};

static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&known.lock, memory_order_acquire)) {
        sched_yield();
    }
}

static void unlock(void)
{
    atomic_flag_clear_explicit(&known.lock, memory_order_release);
}

/* --- memory, which is never given back --- */

static void *pages(size_t size)
{
    void *found = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return found == MAP_FAILED ? NULL : found;
}

static void *keep(size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (size > known.piece_left) {
        char *piece = pages(size > PIECE ? size : PIECE);
        if (!piece) {
            return NULL;
        }
        known.piece = piece;
        known.piece_left = size > PIECE ? size : PIECE;
    }
    void *found = known.piece;
    known.piece += size;
    known.piece_left -= size;
    return found;
}

/* --- texts --- */

static const char *text_copy(const PyObject *object)
{
    char bytes[TEXT + 4];
    size_t length = 0;
    const PyASCIIObject *head = (const PyASCIIObject *)object;
    if (!object || Py_TYPE(object) != &PyUnicode_Type || !head->state.compact) {
        return "";
    }
    const void *data = head->state.ascii
                           ? (const void *)(head + 1)
                           : (const void *)((const PyCompactUnicodeObject *)object + 1);
    for (Py_ssize_t i = 0; i < head->length && length + 4 <= TEXT; i++) {
        const Py_UCS4 letter = PyUnicode_READ(head->state.kind, data, i);
        length += layout_put_utf8(bytes + length, letter ? letter : 0xfffd);
    }
    char *copy = keep(length + 1);
    if (!copy) {
        return "";
    }
    memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}

/* --- code objects --- */

static void lines_read(struct code *code)
{
    const PyBytesObject *table = (const PyBytesObject *)(uintptr_t)code->head.lines;
    code->line_count = 0;
    if (!table || Py_TYPE(table) != &PyBytes_Type) {
        return;
    }
    const size_t count =
        layout_lines((const uint8_t *)table->ob_sval, (size_t)Py_SIZE(table),
                     (int32_t)code->head.first_line, known.scratch, LINES);
    if (count > code->line_room) {
        /* Twice as many as before at least: addresses that are used again and again cost no more than that. */
        const size_t room =
            count > 2 * (size_t)code->line_room ? count : 2 * (size_t)code->line_room;
        layout_line *lines = keep(room * sizeof *lines);
        code->lines = lines ? lines : code->lines;
        code->line_room = lines ? (uint32_t)room : code->line_room;
    }
    if (code->lines && count <= code->line_room) {
        memcpy(code->lines, known.scratch, count * sizeof *code->lines);
        code->line_count = (uint32_t)count;
    }
}

static bool make_room(void)
{
    if (!known.codes) {
        memory_function *functions = pages(FUNCTIONS * sizeof *functions);
        known.codes = functions ? pages(CODES * sizeof *known.codes) : NULL;
        if (!known.codes) {
            if (functions) {
                munmap(functions, FUNCTIONS * sizeof *functions);
            }
            return false;
        }
        known.functions = functions;
        /* Number 0 is for those that there is no room for. */
        known.functions[0] = (memory_function){"", "(more)", "(more)", 0};
        known.count = 1;
    }
    return true;
}

static void code_read(struct code *code, const layout_code *head)
{
    code->head = *head;
    code->function = 0;
    code->last_offset = INT64_MIN;
    lines_read(code);
    if (known.count < FUNCTIONS) {
        known.functions[known.count] =
            (memory_function){text_copy((const PyObject *)(uintptr_t)head->file),
                              text_copy((const PyObject *)(uintptr_t)head->qualname),
                              text_copy((const PyObject *)(uintptr_t)head->name),
                              head->first_line > 0 ? (uint32_t)head->first_line : 0};
        code->function = known.count++;
    }
}

/* The code object, as it is known; NULL: no memory. The lock is held. */
static struct code *code_get(const void *address)
{
    layout_code head = {0};
    layout_code_parse(address, (uint64_t)(uintptr_t)address, &head);
    size_t at = (size_t)(((uintptr_t)address >> 4) * 0x9E3779B97F4A7C15ull >> 49);
    while (known.codes[at].address && known.codes[at].address != address) {
        at = (at + 1) & (CODES - 1);
    }
    struct code *code = &known.codes[at];
    if (!code->address) {
        if (known.code_count >= CODES / 4 * 3) {
            return NULL;
        }
        known.code_count++;
        code->address = address;
        code_read(code, &head);
    } else if (memcmp(&code->head, &head, sizeof head) != 0) {
        code_read(code, &head);
    }
    return code;
}

/* --- the walk --- */

/* Most stacks are taken where others were: a search through a table that is in no cache is spared. */
static uint32_t line_of(struct code *code, const layout_frame *frame)
{
    const int64_t offset = layout_offset(frame, &code->head);
    if (offset != code->last_offset) {
        code->last_line = layout_line_find(code->lines, code->line_count, offset,
                                           code->head.first_line);
        code->last_offset = offset;
    }
    return code->last_line;
}

static uint64_t innermost_frame(void)
{
    const PyThreadState *state = PyGILState_GetThisThreadState();
    if (!state) {
        return 0;
    }
    layout_thread thread = {0};
    layout_thread_parse(state, &thread);
    if (layout_cframe_size && thread.cframe) {
        return layout_cframe_parse((const void *)(uintptr_t)thread.cframe);
    }
    return thread.frame;
}

size_t memory_walk(sw_heap_frame *out, size_t most)
{
    size_t depth = 0;
    uint64_t address = innermost_frame();
    if (!address) {
        return 0;
    }
    lock();
    for (unsigned walked = 0; make_room() && address && depth < most && walked < 1000;
         walked++) {
        layout_frame frame = {0};
        layout_frame_parse((const void *)(uintptr_t)address, &frame);
        if (frame.kind == LAYOUT_BAD) {
            break;
        }
        if (frame.kind == LAYOUT_PYTHON && frame.code) {
            const void *at = (const void *)(uintptr_t)frame.code;
            if (Py_TYPE((const PyObject *)at) != &PyCode_Type) {
                break;
            }
            struct code *code = code_get(at);
            out[depth++] = (sw_heap_frame){code ? code->function : 0,
                                           code ? line_of(code, &frame) : 0};
        }
        address = frame.previous;
    }
    unlock();
    return depth;
}

/* --- names --- */

static bool native_function(uint32_t number, memory_function *out)
{
    void *address = sw_heap_caller(number);
    Dl_info info;
    *out = (memory_function){"", "(native code)", "(native code)", 0};
    if (address && dladdr(address, &info)) {
        const char *slash = info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
        out->file = slash ? slash + 1 : "";
        if (info.dli_sname) {
            out->qualname = out->name = info.dli_sname;
        }
    }
    return true;
}

bool memory_function_get(uint32_t number, memory_function *out)
{
    if (number & SW_HEAP_CALLER) {
        return native_function(number, out);
    }
    lock();
    const bool there = known.functions && number < known.count;
    if (there) {
        *out = known.functions[number];
    }
    unlock();
    return there;
}
