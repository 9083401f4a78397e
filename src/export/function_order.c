#include "export/function_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct ranked {
    const sw_function *function;
    enum sw_functions_sort sort;
    uint32_t index;
};

static int by_text(const char *a, size_t a_length, const char *b, size_t b_length)
{
    const size_t shorter = a_length < b_length ? a_length : b_length;
    const int order = shorter ? memcmp(a, b, shorter) : 0;
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int by_file(const sw_function *a, const sw_function *b)
{
    return by_text(a->file, a->file_length, b->file, b->file_length);
}

static int by_line(const sw_function *a, const sw_function *b)
{
    return (a->line > b->line) - (a->line < b->line);
}

static int by_name(const sw_function *a, const sw_function *b)
{
    return by_text(a->name, a->name_length, b->name, b->name_length);
}

static int larger_first(uint64_t a, uint64_t b)
{
    return (a < b) - (a > b);
}

static int by_sort(const sw_function *a, const sw_function *b,
                   enum sw_functions_sort sort)
{
    switch (sort) {
    case SW_FUNCTIONS_BY_TOTAL:
        return larger_first(a->totals.total, b->totals.total);
    case SW_FUNCTIONS_BY_SELF:
        return larger_first(a->totals.self, b->totals.self);
    case SW_FUNCTIONS_BY_CALLS:
        return larger_first(a->totals.calls, b->totals.calls);
    case SW_FUNCTIONS_BY_PRIMITIVE_CALLS:
        return larger_first(a->totals.primitive_calls, b->totals.primitive_calls);
    case SW_FUNCTIONS_BY_ERRORS:
        return larger_first(a->totals.errors, b->totals.errors);
    case SW_FUNCTIONS_BY_NAME:
        return by_name(a, b);
    case SW_FUNCTIONS_BY_FILE:
        break;
    }
    return 0;
}

/* Whatever the first order is, no two functions are equal in the end: file, line and name are the key. */
static int by_rank(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;
    int order = by_sort(a->function, b->function, a->sort);
    order = order ? order : by_file(a->function, b->function);
    order = order ? order : by_line(a->function, b->function);
    return order ? order : by_name(a->function, b->function);
}

uint32_t *sw__functions_sorted(const sw_functions *functions, enum sw_functions_sort sort)
{
    const size_t count = sw_functions_count(functions);
    struct ranked *ranked = sw__alloc_zero(count + 1, sizeof *ranked);
    uint32_t *order = sw__alloc_zero(count + 1, sizeof *order);
    if (!ranked || !order) {
        sw__free(ranked);
        sw__free(order);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        ranked[i] = (struct ranked){sw_functions_get(functions, i), sort, i};
    }
    qsort(ranked, count, sizeof *ranked, by_rank);
    for (size_t i = 0; i < count; i++) {
        order[i] = ranked[i].index;
    }
    sw__free(ranked);
    return order;
}

/* Counting sort: the calls keep the order in which they were added. */
int sw__callers_find(struct sw__callers *callers, const sw_functions *functions)
{
    const size_t count = sw_functions_count(functions);
    const size_t calls = sw_functions_call_count(functions);
    callers->first = sw__alloc_zero(count + 2, sizeof *callers->first);
    callers->order = sw__alloc_zero(calls + 1, sizeof *callers->order);
    if (!callers->first || !callers->order) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < calls; i++) {
        const sw_function_call *call = sw_functions_get_call(functions, i);
        if (call->caller != SW_FUNCTION_UNKNOWN) {
            callers->first[call->callee + 2]++;
        }
    }
    for (size_t i = 2; i < count + 2; i++) {
        callers->first[i] += callers->first[i - 1];
    }
    for (size_t i = 0; i < calls; i++) {
        const sw_function_call *call = sw_functions_get_call(functions, i);
        if (call->caller != SW_FUNCTION_UNKNOWN) {
            callers->order[callers->first[call->callee + 1]++] = (uint32_t)i;
        }
    }
    return SW_OK;
}

void sw__callers_free(struct sw__callers *callers)
{
    sw__free(callers->first);
    sw__free(callers->order);
}
