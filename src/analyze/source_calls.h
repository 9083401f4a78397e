/* Calls that a line makes with plain names, told from the source. */
#ifndef SW_ANALYZE_SOURCE_CALLS_H
#define SW_ANALYZE_SOURCE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `model(x, mask)`: what is called, and the names in the brackets as they stand. */
struct sw__source_call {
    const char *name, *inside;
    size_t name_length, inside_length;
};

/* The only call of the line that is given nothing but names; with `wanted`, the only one of that function or method. False: there is none, or
 * more than one. */
bool sw__source_call_get(const char *text, size_t length, uint32_t line,
                         const char *wanted, struct sw__source_call *out);
bool sw__source_call_same(const struct sw__source_call *a,
                          const struct sw__source_call *b);

/* Whether lines `from` to `to` - 1 give none of the names in a call another value, and train nothing. `metric`: one of two calls is there
 * to look at the model, for which it is the same before and after an update. */
bool sw__source_call_keeps(const char *text, size_t length, uint32_t from, uint32_t to,
                           const struct sw__source_call *call, bool metric);

/* Whether all names in a call are arguments at the same places of the functions that begin at `first` and `second`. */
bool sw__source_call_given(const char *text, size_t length, uint32_t first,
                           uint32_t second, const struct sw__source_call *call);

/* Whether the function that begins at `first`, called by `call`, asks with `inner` what `outer` asks beside that call. */
bool sw__source_call_passed(const char *text, size_t length, uint32_t first,
                            const struct sw__source_call *inner,
                            const struct sw__source_call *call,
                            const struct sw__source_call *outer);

/* Whether nobody goes back through what a line of the function that begins at `first` computes: it stands below `no_grad` or the
 * like, or makes of it what has no gradient. */
bool sw__source_without_grad(const char *text, size_t length, uint32_t first,
                             uint32_t line);

/* Whether the function that begins at `first` names something that is left to chance. */
bool sw__source_has_chance(const char *text, size_t length, uint32_t first);
/* Whether it goes back through a model, or updates one. */
bool sw__source_trains(const char *text, size_t length, uint32_t first);

#endif
