/* Looking at a comparison. */
#include "analyze/compare.h"

void sw_comparison_free(sw_comparison *comparison)
{
    if (comparison) {
        sw__free(comparison->results);
        sw__arena_free(comparison->arena);
        sw__free(comparison);
    }
}

const char *sw_verdict_name(enum sw_verdict verdict)
{
    static const char *const names[] = {"same", "faster", "slower", "incomparable"};
    return (size_t)verdict < 4 ? names[verdict] : NULL;
}

const char *sw_compare_basis_name(enum sw_compare_basis basis)
{
    static const char *const names[] = {"steps", "samples", "duration", "functions"};
    return (size_t)basis < 4 ? names[basis] : NULL;
}

const sw_compared_side *sw_comparison_baseline(const sw_comparison *comparison)
{
    return &comparison->baseline;
}

double sw_comparison_threshold(const sw_comparison *comparison)
{
    return comparison->threshold;
}

bool sw_comparison_regression(const sw_comparison *comparison)
{
    for (size_t i = 0; i < comparison->count; i++) {
        if (comparison->results[i].compared.regression) {
            return true;
        }
    }
    return false;
}

size_t sw_comparison_count(const sw_comparison *comparison)
{
    return comparison->count;
}

const sw_compared *sw_comparison_get(const sw_comparison *comparison, size_t index)
{
    return index < comparison->count ? &comparison->results[index].compared : NULL;
}

const sw_compared_part *sw_comparison_parts(const sw_comparison *comparison, size_t index,
                                            enum sw_compared_kind kind, size_t *count)
{
    *count = 0;
    if (index >= comparison->count || (size_t)kind >= SW_COMPARED_KINDS) {
        return NULL;
    }
    *count = comparison->results[index].part_count[kind];
    return comparison->results[index].parts[kind];
}

const char *sw_comparison_note(const sw_comparison *comparison, size_t index, size_t note)
{
    const struct sw__compare_note *at =
        index < comparison->count ? comparison->results[index].notes.first : NULL;
    while (at && note > 0) {
        at = at->next;
        note--;
    }
    return at ? at->text : NULL;
}
