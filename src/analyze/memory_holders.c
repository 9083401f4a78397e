/* Who holds tensors with their graphs, and the line that puts them there, as its source reads. */
#include "analyze/memory.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/line_profile.h"
#include "analyze/source_loops.h"

enum { LINES_MOST = 5000, TEXT_MOST = 60 };

static const char *text_of(const sw_trace *trace, uint64_t id)
{
    const sw_trace_name *name =
        id && id <= UINT32_MAX ? sw_trace_get_name(trace, (uint32_t)id) : NULL;
    return name && name->text && *name->text ? name->text : NULL;
}

static bool in_name(char letter)
{
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '_' || (letter & 0x80);
}

/* What follows `word` and spaces around it; NULL: it is not there, or nothing is behind it. */
static const char *behind(const char *from, const char *end, const char *word)
{
    const size_t length = strlen(word);
    while (from && from < end && *from == ' ') {
        from++;
    }
    if (!from || (size_t)(end - from) <= length || memcmp(from, word, length) != 0) {
        return NULL;
    }
    for (from += length; from < end && *from == ' '; from++) {
    }
    return from < end ? from : NULL;
}

/* What is kept by a line, `rest` being what follows the name in it; NULL: this one keeps nothing under that name. */
static const char *kept(const char *rest, const char *end, const char *name)
{
    static const char *const ways[] = {".append(", ".appendleft(", ".extend(", ".add(",
                                       "+="};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const char *value = behind(rest, end, ways[i]);
        if (value) {
            return value;
        }
    }
    /* A sum grows: total = total + loss */
    const char *value = behind(behind(behind(rest, end, "="), end, name), end, "+");
    if (value) {
        return value;
    }
    /* An element is set: history[step] = loss */
    const char *closed = *rest == '[' ? memchr(rest, ']', (size_t)(end - rest)) : NULL;
    value = closed ? behind(closed + 1, end, "=") : NULL;
    return value && *value != '=' ? value : NULL;
}

/* The same for the whole line. */
static const char *keeps(const struct sw__source_line *line, const char *name)
{
    const size_t length = strlen(name);
    const char *end = line->text + line->length;
    for (const char *at = line->text; at + length < end; at++) {
        const bool whole = (at == line->text || !in_name(at[-1])) && !in_name(at[length]);
        const char *value =
            whole && memcmp(at, name, length) == 0 ? kept(at + length, end, name) : NULL;
        if (value) {
            return value;
        }
    }
    return NULL;
}

/* A plain name that is kept, copied; NULL: it is something else, or a number already. */
static const char *plain_value(sw_summary *summary, const char *from, const char *end)
{
    size_t length = 0;
    while (from + length < end && length < TEXT_MOST && in_name(from[length])) {
        length++;
    }
    const char *after = from + length;
    const bool ends = after == end || *after == ')' || *after == '\r' || *after == ' ' ||
                      *after == '#' || *after == '\n';
    return length && ends && !(*from >= '0' && *from <= '9')
               ? sw__summary_copy(summary, from, length)
               : NULL;
}

/* Looks for the line in the function, or the whole module, where the variable lives. */
static void find_line(sw_summary *summary, sw_memory_holder *holder)
{
    size_t length = 0;
    if (holder->line == 0 || holder->line > UINT32_MAX - LINES_MOST) {
        return;
    }
    char *text =
        holder->file && holder->name ? sw__source_text(holder->file, &length) : NULL;
    const char *dot = text ? strrchr(holder->name, '.') : NULL;
    const char *name = dot ? dot + 1 : holder->name;
    struct sw__source_line line;
    for (uint32_t i = 0; text && i < LINES_MOST; i++) {
        if (!sw__source_line_get(text, length, holder->line + i, &line)) {
            break;
        }
        const char *value = line.length && *line.text != '#' ? keeps(&line, name) : NULL;
        if (value) {
            holder->line += i;
            holder->keeps = true;
            holder->value = plain_value(summary, value, line.text + line.length);
            break;
        }
    }
    if (!holder->keeps && !holder->function) {
        holder->line = 0; /* Somewhere in the file: its first line is no place. */
    }
    sw__free(text);
}

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The same holder may have been seen more than once. Its file may not be known each time. */
static sw_memory_holder *place_of(sw_memory *memory, const sw_memory_holder *it)
{
    for (size_t i = 0; i < memory->holder_count; i++) {
        sw_memory_holder *at = &memory->holders[i];
        const bool alike = same(at->file, it->file) ||
                           (at->name && (at->file == NULL || it->file == NULL));
        if (alike && same(at->name, it->name) && same(at->kind, it->kind)) {
            return at;
        }
    }
    return &memory->holders[memory->holder_count++];
}

/* The time when it had most counts, and what is known of its place. */
static void join(sw_memory_holder *to, const sw_memory_holder *it)
{
    const sw_memory_holder before = *to;
    if (it->tensors + it->chain >= to->tensors + to->chain) {
        *to = *it;
    }
    const sw_memory_holder *known = before.file ? &before : it;
    if (!to->file && known->file) {
        to->file = known->file;
        to->line = known->line;
        to->function = known->function;
    }
}

static int by_tensors(const void *left, const void *right)
{
    const sw_memory_holder *a = left;
    const sw_memory_holder *b = right;
    const uint64_t x = a->tensors + a->chain;
    const uint64_t y = b->tensors + b->chain;
    return (x < y) - (x > y);
}

int sw__memory_holders(sw_summary *summary, sw_memory *memory, const sw_trace *trace)
{
    const size_t count = sw_trace_row_count(trace, SW_TABLE_HOLDER);
    memory->holders = sw__summary_take(summary, count + 1, sizeof *memory->holders);
    if (!memory->holders) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_HOLDER, i);
        if (!row || row->value[0] > UINT32_MAX || row->value[1] > UINT32_MAX) {
            continue;
        }
        const sw_memory_holder it = {.name = text_of(trace, row->key[0]),
                                     .file = text_of(trace, row->key[1]),
                                     .line = row->key[2],
                                     .kind = text_of(trace, row->key[3]),
                                     .tensors = row->value[0],
                                     .chain = row->value[1],
                                     .function = text_of(trace, row->value[2]),
                                     .whole = row->value[3] == 0,
                                     .step = row->value[4]};
        join(place_of(memory, &it), &it);
    }
    qsort(memory->holders, memory->holder_count, sizeof *memory->holders, by_tensors);
    for (size_t i = 0; i < memory->holder_count; i++) {
        find_line(summary, &memory->holders[i]);
    }
    return SW_OK;
}

const sw_memory_holder *sw_memory_holders(const sw_memory *memory, size_t *count)
{
    *count = memory->holder_count;
    return memory->holders;
}
