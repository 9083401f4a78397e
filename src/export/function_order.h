/* Orders of a function profile that the exporters share. */
#ifndef SW_EXPORT_FUNCTION_ORDER_H
#define SW_EXPORT_FUNCTION_ORDER_H

#include <stepwatch/export.h>

/* Indexes of all functions, largest first (names: in order). Freed with sw__free; NULL when out of memory. */
uint32_t *sw__functions_sorted(const sw_functions *functions,
                               enum sw_functions_sort sort);

/* Calls of known callers by callee: those of function i are order[first[i]] … order[first[i + 1] - 1]. */
struct sw__callers {
    size_t *first;
    uint32_t *order;
};
/* 0 or SW_ENOMEM; free both ways. */
int sw__callers_find(struct sw__callers *callers, const sw_functions *functions);
void sw__callers_free(struct sw__callers *callers);

#endif
