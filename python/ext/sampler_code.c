/* Code objects as the sampler knows them: by address, with what they said of themselves when they were first seen.
 *
 * An address says nothing for sure: the object may have been freed and another one made in its place. Each look reads the
 * head of the code objects of its stack again and compares all that tells them apart; and because the texts may have been
 * freed and made anew in the same places as well, the hash of the name too. Frames that are where they were at the look
 * before hold their code object alive, so these are not asked again, except for code that did not come from a file. */
#include <Python.h>

#include "sampler.h"

#include <stdlib.h>
#include <string.h>

#define CODES_MOST 16384u
#define ROOM (CODES_MOST * 2)
#define TEXT_MOST 1000u
#define TABLE_MOST (256u * 1024u)
#define LINES_MOST 32768u
#define CODE_BYTES 512u

typedef struct code_entry {
    uint64_t address; /* 0: free */
    layout_code head;
    int64_t name_hash;
    uint32_t function;
    uint32_t line_count;
    layout_line *lines;
    bool volatile_code; /* not from a file: its place is likely to be used again */
} code_entry;

struct sampler_codes {
    sampler_tree *tree;
    code_entry *entries; /* open addressing, ROOM places */
    uint32_t count;
    uint32_t left_out;
    uint8_t heads[WALK_FRAMES][CODE_BYTES];
    uint8_t names[WALK_FRAMES][sizeof(PyASCIIObject)];
    core_extent extents[WALK_FRAMES];
    uint32_t which[WALK_FRAMES];
    uint8_t table[TABLE_MOST];
    layout_line lines[LINES_MOST];
};

sampler_codes *codes_new(sampler_tree *tree)
{
    sampler_codes *codes = calloc(1, sizeof *codes);
    if (codes) {
        codes->entries = calloc(ROOM, sizeof *codes->entries);
        codes->tree = tree;
        codes->left_out = TREE_NONE;
    }
    if (codes && (!codes->entries || layout_code_size > CODE_BYTES)) {
        codes_free(codes);
        codes = NULL;
    }
    return codes;
}

static void forget_all(sampler_codes *codes)
{
    for (uint32_t i = 0; i < ROOM; i++) {
        free(codes->entries[i].lines);
    }
    memset(codes->entries, 0, ROOM * sizeof *codes->entries);
    codes->count = 0;
}

void codes_free(sampler_codes *codes)
{
    if (codes) {
        if (codes->entries) {
            forget_all(codes);
        }
        free(codes->entries);
        free(codes);
    }
}

uint32_t codes_left_out(sampler_codes *codes)
{
    if (codes->left_out == TREE_NONE) {
        const tree_text none = {"", 0}, text = {"(frames left out)", 17};
        codes->left_out = tree_function_get(codes->tree, none, text, text, 0);
    }
    return codes->left_out;
}

static code_entry *entry_at(sampler_codes *codes, uint64_t address)
{
    uint64_t at = (address >> 4) * 0x9e3779b97f4a7c15u >> 32;
    for (;; at++) {
        code_entry *entry = &codes->entries[at % ROOM];
        if (entry->address == address || entry->address == 0) {
            return entry;
        }
    }
}

/* --- Texts --------------------------------------------------------------------------- */

/* Copies a string of Python as UTF-8, its beginning if it is very long. */
static bool read_text(core_memory *reader, uint64_t address, char out[TEXT_MOST],
                      tree_text *text)
{
    PyASCIIObject head;
    uint8_t raw[TEXT_MOST];
    if (address % sizeof(void *) != 0 ||
        core_read(reader, address, &head, sizeof head) != 0 ||
        head.ob_base.ob_type != &PyUnicode_Type || !head.state.compact ||
        head.length < 0) {
        return false;
    }
    const unsigned width = head.state.kind;
    /* A string that is just being made may still have a flag of the one that was there before. */
    if ((width != 1 && width != 2 && width != 4) || (head.state.ascii && width != 1)) {
        return false;
    }
    size_t count = (size_t)head.length;
    if (count > TEXT_MOST / 4) {
        count = head.state.ascii && count < TEXT_MOST ? count
                : head.state.ascii                    ? TEXT_MOST
                                                      : TEXT_MOST / 4;
    }
    const uint64_t data = address + (head.state.ascii ? sizeof(PyASCIIObject)
                                                      : sizeof(PyCompactUnicodeObject));
    if (count > 0 && core_read(reader, data, raw, count * width) != 0) {
        return false;
    }
    size_t length = 0;
    for (size_t i = 0; i < count && length + 4 <= TEXT_MOST; i++) {
        uint32_t c = raw[i];
        if (width == 2) {
            uint16_t wide;
            memcpy(&wide, raw + 2 * i, sizeof wide);
            c = wide;
        } else if (width == 4) {
            memcpy(&c, raw + 4 * i, sizeof c);
            c = c <= 0x10ffff ? c : 0xfffd;
        }
        /* Texts of the trace and of stacks hold no NUL. */
        length += layout_put_utf8(out + length, c ? c : 0xfffd);
    }
    *text = (tree_text){out, (uint32_t)length};
    return true;
}

/* --- Entries --------------------------------------------------------------------------- */

static void read_lines(sampler_codes *codes, core_memory *reader, code_entry *entry)
{
    struct {
        PyObject_VAR_HEAD
    } head;
    const uint64_t at = entry->head.lines;
    if (core_read(reader, at, &head, sizeof head) != 0 ||
        head.ob_base.ob_base.ob_type != &PyBytes_Type || head.ob_base.ob_size <= 0 ||
        (size_t)head.ob_base.ob_size > TABLE_MOST) {
        return;
    }
    const size_t size = (size_t)head.ob_base.ob_size;
    if (core_read(reader, at + offsetof(PyBytesObject, ob_sval), codes->table, size)) {
        return;
    }
    const size_t count = layout_lines(codes->table, size, (int32_t)entry->head.first_line,
                                      codes->lines, LINES_MOST);
    entry->lines = malloc(count * sizeof *entry->lines + 1);
    if (entry->lines) {
        memcpy(entry->lines, codes->lines, count * sizeof *entry->lines);
        entry->line_count = (uint32_t)count;
    }
}

/* Makes or renews an entry from what the code object says now. */
static code_entry *read_code(sampler_codes *codes, core_memory *reader, uint64_t address,
                             const layout_code *head, int64_t name_hash)
{
    char file_bytes[TEXT_MOST], name_bytes[TEXT_MOST], qualname_bytes[TEXT_MOST];
    tree_text file, name, qualname;
    uint8_t again[CODE_BYTES];
    layout_code check;
    if (!read_text(reader, head->file, file_bytes, &file) ||
        !read_text(reader, head->name, name_bytes, &name) ||
        !read_text(reader, head->qualname, qualname_bytes, &qualname)) {
        return NULL;
    }
    if (codes->count >= CODES_MOST) {
        forget_all(codes);
    }
    code_entry *entry = entry_at(codes, address);
    if (entry->address == 0) {
        codes->count++;
    }
    free(entry->lines);
    *entry = (code_entry){.address = address, .head = *head, .name_hash = name_hash};
    read_lines(codes, reader, entry);
    entry->function =
        tree_function_get(codes->tree, file, qualname, name,
                          head->first_line > 0 ? (uint32_t)head->first_line : 0);
    entry->volatile_code = file.length == 0 || file.data[0] == '<';
    /* If it was freed while it was read, it is nobody's code any more. */
    if (core_read(reader, address, again, layout_code_size) == 0) {
        layout_code_parse(again, address, &check);
        if (memcmp(&check, head, sizeof check) == 0) {
            return entry;
        }
    }
    entry->head = (layout_code){0};
    return NULL;
}

static uint32_t line_of(const code_entry *entry, const layout_frame *frame)
{
    return layout_line_find(entry->lines, entry->line_count,
                            layout_offset(frame, &entry->head), entry->head.first_line);
}

/* The entries of the frames numbered codes->which[0…count) are asked again, or made. */
static int check_codes(sampler_codes *codes, core_memory *reader, const walk_stack *stack,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t code = stack->frames[codes->which[i]].frame.code;
        if (code % sizeof(void *) != 0) {
            return -1;
        }
        codes->extents[i] =
            (core_extent){code, (uint32_t)layout_code_size, codes->heads[i]};
    }
    if (core_read_all(reader, codes->extents, count) != count) {
        return -1;
    }
    for (uint32_t i = 0; i < count; i++) {
        layout_code head = {0};
        layout_code_parse(codes->heads[i], codes->extents[i].address, &head);
        if (head.type != (uint64_t)(uintptr_t)&PyCode_Type) {
            return -1;
        }
        codes->extents[i] =
            (core_extent){head.name, sizeof codes->names[i], codes->names[i]};
    }
    if (core_read_all(reader, codes->extents, count) != count) {
        return -1;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t address = stack->frames[codes->which[i]].frame.code;
        layout_code head = {0};
        PyASCIIObject name;
        layout_code_parse(codes->heads[i], address, &head);
        memcpy(&name, codes->names[i], sizeof name);
        const code_entry *entry = entry_at(codes, address);
        if (entry->address && entry->name_hash == (int64_t)name.hash &&
            memcmp(&entry->head, &head, sizeof head) == 0) {
            continue;
        }
        if (!read_code(codes, reader, address, &head, (int64_t)name.hash)) {
            return -1;
        }
    }
    return 0;
}

static bool is_native(const code_entry *entry, core_memory *reader,
                      const walk_stack *stack)
{
    uint8_t opcode = 0;
    const layout_frame *leaf = &stack->frames[0].frame;
    if (layout_offset(leaf, &entry->head) < 0 ||
        core_read(reader, layout_instruction(leaf, &entry->head), &opcode, 1) != 0) {
        return false;
    }
    const enum layout_op op = layout_op(opcode);
    return op == LAYOUT_OP_CALL || (op == LAYOUT_OP_OPERATOR && stack->still);
}

int codes_resolve(sampler_codes *codes, core_memory *reader, const walk_stack *stack,
                  const walk_stack *last, tree_frame *out, bool *native)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < stack->depth; i++) {
        const walk_frame *frame = &stack->frames[i];
        /* Counted from the root, is it where it was, doing the same call? */
        bool same = false;
        if (last && last->depth + i >= stack->depth) {
            const uint32_t k = last->depth + i - stack->depth;
            const walk_frame *before = &last->frames[k];
            const code_entry *entry = entry_at(codes, frame->frame.code);
            same = i > 0 && k > 0 && before->address == frame->address &&
                   before->frame.code == frame->frame.code &&
                   before->frame.instruction == frame->frame.instruction &&
                   entry->address && !entry->volatile_code;
        }
        if (!same) {
            codes->which[count++] = i;
        }
    }
    if (check_codes(codes, reader, stack, count) != 0) {
        return -1;
    }
    for (uint32_t i = 0; i < stack->depth; i++) {
        const code_entry *entry = entry_at(codes, stack->frames[i].frame.code);
        if (!entry->address || entry->function == TREE_NONE) {
            return -1; /* all were forgotten meanwhile, or no memory */
        }
        out[i] = (tree_frame){entry->function, line_of(entry, &stack->frames[i].frame)};
    }
    *native = is_native(entry_at(codes, stack->frames[0].frame.code), reader, stack);
    return 0;
}
