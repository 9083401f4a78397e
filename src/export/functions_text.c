/* A function profile as a table for people, in the form that pstats prints. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/writer_internal.h"
#include "export/function_order.h"

static const struct {
    const char *word;
    enum sw_functions_sort sort;
} sort_words[] = {
    {"cumulative", SW_FUNCTIONS_BY_TOTAL},
    {"cumtime", SW_FUNCTIONS_BY_TOTAL},
    {"total", SW_FUNCTIONS_BY_TOTAL},
    {"time", SW_FUNCTIONS_BY_SELF},
    {"tottime", SW_FUNCTIONS_BY_SELF},
    {"self", SW_FUNCTIONS_BY_SELF},
    {"calls", SW_FUNCTIONS_BY_CALLS},
    {"ncalls", SW_FUNCTIONS_BY_CALLS},
    {"pcalls", SW_FUNCTIONS_BY_PRIMITIVE_CALLS},
    {"errors", SW_FUNCTIONS_BY_ERRORS},
    {"name", SW_FUNCTIONS_BY_NAME},
    {"file", SW_FUNCTIONS_BY_FILE},
    {"filename", SW_FUNCTIONS_BY_FILE},
};

int sw_functions_sort_of(const char *word, enum sw_functions_sort *sort)
{
    for (size_t i = 0; i < sizeof sort_words / sizeof sort_words[0]; i++) {
        if (strcmp(word, sort_words[i].word) == 0) {
            *sort = sort_words[i].sort;
            return SW_OK;
        }
    }
    return SW_ENOTFOUND;
}

static const char *sort_text(enum sw_functions_sort sort)
{
    switch (sort) {
    case SW_FUNCTIONS_BY_TOTAL:
        return "cumulative time";
    case SW_FUNCTIONS_BY_SELF:
        return "internal time";
    case SW_FUNCTIONS_BY_CALLS:
        return "call count";
    case SW_FUNCTIONS_BY_PRIMITIVE_CALLS:
        return "primitive call count";
    case SW_FUNCTIONS_BY_ERRORS:
        return "calls left by an exception";
    case SW_FUNCTIONS_BY_NAME:
        return "function name";
    case SW_FUNCTIONS_BY_FILE:
        return "file name and line";
    }
    return "";
}

struct page {
    sw_writer *writer;
    const sw_functions *functions;
    size_t columns; /* 0: no limit */
    bool errors;    /* there is something to say about them */
};

static double seconds_of(const struct page *page, uint64_t time)
{
    return (double)time * sw_functions_unit_ns(page->functions) / 1e9;
}

static size_t print_time(const struct page *page, double seconds)
{
    char text[32];
    const int length = snprintf(text, sizeof text, "%8.3f", seconds);
    sw_write_format(page->writer, " %s", text);
    return (size_t)length + 1;
}

/* Bytes of a program within the columns that are left; returns those it took. */
static size_t print_bytes(const struct page *page, const char *bytes, size_t length,
                          size_t used)
{
    if (page->columns && used >= page->columns) {
        return 0;
    }
    return sw_write_visible(page->writer, bytes, length,
                            page->columns ? page->columns - used : 0, false);
}

static void print_name(const struct page *page, const sw_function *function, size_t used)
{
    if (function->native && function->name_length > 2 && function->name[0] == '<') {
        /* As pstats does: {built-in method builtins.len}. */
        used += print_bytes(page, "{", 1, used);
        used += print_bytes(page, function->name + 1, function->name_length - 2, used);
        print_bytes(page, "}", 1, used);
        return;
    }
    /* The end of a path and the name say most: what does not fit is cut from the path's beginning. */
    char line[32];
    const int digits = snprintf(line, sizeof line, ":%u(", (unsigned)function->line);
    const char *file = function->file;
    size_t length = function->file_length;
    const size_t rest = (size_t)digits + 1 +
                        sw_text_columns(function->name, function->name_length) + used;
    if (page->columns && rest + sw_text_columns(file, length) > page->columns) {
        while (length && rest + 3 + sw_text_columns(file, length) > page->columns) {
            const char *slash = memchr(file + 1, '/', length - 1);
            if (!slash) {
                break;
            }
            length -= (size_t)(slash - file);
            file = slash;
        }
        if (file != function->file) {
            sw_write_text(page->writer, "...");
            used += 3;
        }
    }
    used += print_bytes(page, file, length, used);
    used += print_bytes(page, line, (size_t)digits, used);
    used += print_bytes(page, function->name, function->name_length, used);
    print_bytes(page, ")", 1, used);
}

static void print_function(const struct page *page, const sw_function *function)
{
    const sw_function_totals *totals = &function->totals;
    char calls[48];
    if (totals->calls != totals->primitive_calls) {
        snprintf(calls, sizeof calls, "%llu/%llu", (unsigned long long)totals->calls,
                 (unsigned long long)totals->primitive_calls);
    } else {
        snprintf(calls, sizeof calls, "%llu", (unsigned long long)totals->calls);
    }
    sw_write_format(page->writer, "%9s", calls);
    size_t used = strlen(calls) > 9 ? strlen(calls) : 9;
    const double self = seconds_of(page, totals->self);
    const double total = seconds_of(page, totals->total);
    used += print_time(page, self);
    used += print_time(page, totals->calls ? self / (double)totals->calls : 0);
    used += print_time(page, total);
    used += print_time(
        page, totals->primitive_calls ? total / (double)totals->primitive_calls : 0);
    if (page->errors) {
        char errors[32];
        snprintf(errors, sizeof errors, " %6llu", (unsigned long long)totals->errors);
        sw_write_text(page->writer, errors);
        used += strlen(errors);
    }
    sw_write_text(page->writer, " ");
    print_name(page, function, used + 1);
    sw_write_text(page->writer, "\n");
}

void sw_export_functions_text(sw_writer *writer, const sw_functions *functions,
                              const sw_functions_text_options *options)
{
    const sw_functions_text_options standard = {.sort = SW_FUNCTIONS_BY_TOTAL};
    options = options ? options : &standard;
    if (!sw__writer_is_good(writer)) {
        return;
    }
    const size_t count = sw_functions_count(functions);
    const size_t shown =
        options->limit && options->limit < count ? options->limit : count;
    const sw_function_totals sum = sw_functions_sum(functions);
    struct page page = {writer, functions, options->columns, sum.errors > 0};
    uint32_t *order = sw__functions_sorted(functions, options->sort);
    if (!order) {
        sw__writer_fail(writer, SW_ENOMEM, 0);
        return;
    }
    sw_write_format(writer,
                    "%17llu function calls (%llu primitive calls) in %.3f seconds\n\n",
                    (unsigned long long)sum.calls,
                    (unsigned long long)sum.primitive_calls, seconds_of(&page, sum.self));
    sw_write_format(writer, "   Ordered by: %s\n", sort_text(options->sort));
    if (shown < count) {
        sw_write_format(writer, "   List reduced from %zu to %zu\n", count, shown);
    }
    sw_write_format(writer,
                    "\n   ncalls  tottime  percall  cumtime  percall%s "
                    "filename:lineno(function)\n",
                    page.errors ? " errors" : "");
    for (size_t i = 0; i < shown; i++) {
        print_function(&page, sw_functions_get(functions, order[i]));
    }
    sw_write_text(writer, "\n");
    sw__free(order);
}
