/* Tables whose rows are all used. */
#include "analyze/source_tables.h"

#include <stdint.h>
#include <string.h>

#include "analyze/source_loops.h"
#include "analyze/source_names.h"

typedef struct sw__source_line line;

static bool computes(const line *at)
{
    static const char *const words[] = {
        " @ ",   "matmul(", "linear(", "mm(",     "einsum(",  "cdist(", "norm(",
        ".pow(", "** 2",    "**2",     "square(", "softmax(", ".T",     ".t()"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (memmem(at->text, at->length, words[i], strlen(words[i]))) {
            return true;
        }
    }
    return false;
}

/* Whether what stands before `.tokens.weight` gives it a name: `rows = self`. */
static bool is_named(const char *begin, const char *dot)
{
    while (dot > begin && (sw__source_in_name(dot[-1]) || dot[-1] == '.')) {
        dot--;
    }
    while (dot > begin && dot[-1] == ' ') {
        dot--;
    }
    return dot > begin + 1 && dot[-1] == '=' && dot[-2] == ' ';
}

bool sw__source_whole_table(const char *text, size_t length, const char *attribute)
{
    static const char weight[] = ".weight";
    const size_t name = strlen(attribute);
    const char *const end = text + length;
    for (const char *begin = text; begin < end;) {
        const char *stop = memchr(begin, '\n', (size_t)(end - begin));
        stop = stop ? stop : end;
        const line at = {.text = begin, .length = (size_t)(stop - begin)};
        const char *from = begin;
        while ((from = memmem(from, (size_t)(stop - from), weight, sizeof weight - 1))) {
            const char *after = from + sizeof weight - 1;
            const char *dot = (size_t)(from - begin) > name ? from - name - 1 : NULL;
            if (dot && *dot == '.' && memcmp(dot + 1, attribute, name) == 0 &&
                (after == stop || !sw__source_in_name(*after)) &&
                (computes(&at) || is_named(begin, dot))) {
                return true;
            }
            from = after;
        }
        begin = stop + 1;
    }
    return false;
}
